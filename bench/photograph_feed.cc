#include "bench/photograph_feed.h"

#include <unistd.h>

#include <fstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "bench/corpora.h"
#include "core/status/check.h"

namespace systole::bench {
namespace {

// Whitespace-separated words of a file of /proc.
std::vector<std::string> WordsOf(const std::string& path) {
  std::ifstream in(path);
  SYSTOLE_CHECK(in.good());
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

}  // namespace

std::shared_ptr<const Dataset> OpenPhotographs() {
  absl::StatusOr<std::shared_ptr<Dataset>> dataset =
      Dataset::Open("photographs", PhotographShards());
  SYSTOLE_CHECK(dataset.ok());
  return *dataset;
}

std::unique_ptr<ServerProcess> ServePhotographs(const std::vector<std::string>& flags) {
  std::vector<std::string> args = flags;
  for (const std::string& shard : PhotographShards()) {
    args.push_back("--dataset");
    args.push_back(absl::StrCat("photographs=", shard));
  }
  absl::StatusOr<std::unique_ptr<ServerProcess>> server = ServerProcess::Start(args);
  SYSTOLE_CHECK(server.ok());
  return *std::move(server);
}

v1::FeedSpec SpecOf(const PhotographFeed& feed) {
  v1::FeedSpec spec;
  spec.set_dataset("photographs");
  spec.set_seed(feed.seed);
  spec.mutable_shuffle()->set_mode(v1::Shuffle::GLOBAL);
  spec.set_global_batch(feed.global_batch);
  spec.set_num_cores(8);
  v1::Output& image = *spec.add_outputs();
  image.set_name("image");
  image.set_feature("image");
  image.add_transforms()->mutable_decode_jpeg();
  v1::RandomResizedCrop& crop = *image.add_transforms()->mutable_random_resized_crop();
  crop.set_height(feed.edge_px);
  crop.set_width(feed.edge_px);
  image.add_transforms()->mutable_random_flip();
  if (feed.dtype != v1::UINT8) {
    v1::Normalize& normalize = *image.add_transforms()->mutable_normalize();
    for (const double mean : {123.675, 116.28, 103.53}) normalize.add_mean(mean);
    for (const double stddev : {58.395, 57.12, 57.375}) normalize.add_stddev(stddev);
  }
  image.set_dtype(feed.dtype);
  v1::Output& label = *spec.add_outputs();
  label.set_name("label");
  label.set_feature("label");
  label.set_dtype(v1::INT64);
  return spec;
}

ServerUse UseOf(ServerProcess& server) {
  const std::string folder = absl::StrCat("/proc/", server.process().pid());
  ServerUse use;
  // The CPU time is in fields 14 and 15, in clock ticks (proc_pid_stat(5)). Every word is a field,
  // because the program's name holds no blank.
  const std::vector<std::string> stat = WordsOf(absl::StrCat(folder, "/stat"));
  double ticks = 0;
  for (const size_t field : {13, 14}) {
    double value = 0;
    SYSTOLE_CHECK(stat.size() > field && absl::SimpleAtod(stat[field], &value));
    ticks += value;
  }
  use.cpu_seconds = ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
  const std::vector<std::string> status = WordsOf(absl::StrCat(folder, "/status"));
  for (size_t i = 0; i + 1 < status.size(); ++i) {
    double* const kib = status[i] == "VmRSS:"   ? &use.resident_bytes
                        : status[i] == "VmHWM:" ? &use.peak_bytes
                                                : nullptr;
    if (kib == nullptr) continue;
    SYSTOLE_CHECK(absl::SimpleAtod(status[i + 1], kib));
    *kib *= 1024;
  }
  return use;
}

}  // namespace systole::bench
