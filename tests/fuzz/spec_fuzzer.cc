// Feed specs as text: whatever comes, the parsers give a spec or an error that names the source;
// and a spec that was read is written and read again as the same one. The first byte chooses the
// format: 'j' is JSON, anything else textproto.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/text_format.h"
#include "google/protobuf/util/json_util.h"
#include "proto/text/message_text.h"
#include "systole/v1/feed.pb.h"

namespace {

void Require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "spec: %s\n", what);
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const bool json = data[0] == 'j';
  const absl::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);
  systole::v1::FeedSpec spec;
  const absl::Status status = json ? systole::ParseJson(text, "source", spec)
                                   : systole::ParseTextproto(text, "source", spec);
  if (!status.ok()) {
    Require(status.code() == absl::StatusCode::kInvalidArgument, "another code");
    Require(absl::StartsWith(status.message(), "source:"),
            "an error that does not name the source");
    return 0;
  }
  std::string written;
  if (json) {
    // Fails where a string is no UTF-8, which the parser lets pass.
    if (!google::protobuf::util::MessageToJsonString(spec, &written).ok()) return 0;
  } else {
    Require(google::protobuf::TextFormat::PrintToString(spec, &written), "cannot be written");
  }
  systole::v1::FeedSpec again;
  Require((json ? systole::ParseJson(written, "written", again)
                : systole::ParseTextproto(written, "written", again))
              .ok(),
          "what was written is not read");
  std::string rewritten;
  if (json) {
    Require(google::protobuf::util::MessageToJsonString(again, &rewritten).ok(), "not twice");
  } else {
    google::protobuf::TextFormat::PrintToString(again, &rewritten);
  }
  Require(written == rewritten, "changes on the way");
  return 0;
}
