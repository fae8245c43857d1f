// Reads ten steps of a feed and prints what came: example SERVER[,SERVER..] SPEC.textproto
// README.md shows the lines between the marks.
#include <fstream>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "client/feed/feed_client.h"
#include "google/protobuf/io/zero_copy_stream_impl.h"
#include "google/protobuf/text_format.h"

int Fail(const absl::Status& status) {
  std::cerr << status << "\n";
  return 1;
}

void Train(int core, const systole::TensorView& image, absl::Span<const int64_t> labels) {
  std::cout << "core " << core << ": " << image.num_bytes() << " bytes of images, first label "
            << labels[0] << "\n";
}

int main(int argc, char** argv) {
  if (argc != 3) return Fail(absl::InvalidArgumentError("usage: example SERVER[,SERVER..] SPEC"));
  std::ifstream file(argv[2]);
  google::protobuf::io::IstreamInputStream text(&file);
  systole::v1::FeedSpec spec;
  if (!google::protobuf::TextFormat::Parse(&text, &spec)) return 2;
  const std::vector<std::string> servers = absl::StrSplit(argv[1], ',');
  // [README]
  auto client = systole::FeedClient::Create(spec, {.servers = servers, .steps = 10});
  if (!client.ok()) return Fail(client.status());
  while (true) {
    absl::StatusOr<std::optional<systole::Step>> step = (*client)->Next();  // In order. Waits.
    if (!step.ok()) return Fail(step.status());  // No server for 10 minutes, a damaged record ..
    if (!step->has_value()) return 0;            // The feed's end.
    for (int core = (*step)->core_begin(); core < (*step)->core_end(); ++core) {
      const systole::TensorView image = (*step)->Tensor(core, "image");  // bf16 [16, 64, 64, 3]
      Train(core, image, (*step)->Tensor(core, "label").As<int64_t>());
    }
  }
  // [/README]
}
