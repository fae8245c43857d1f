// Reads feed specs as text. The parsers give a spec or an error that names the source. An accepted
// spec stays the same when it is written and read again. The first byte chooses the format: 'j' is
// JSON, anything else textproto.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "core/textproto/message_text.h"
#include "google/protobuf/text_format.h"
#include "google/protobuf/util/json_util.h"
#include "systole/v1/feed.pb.h"
#include "tests/fuzz/fuzzer.h"

namespace {

void Require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "spec: %s\n", what);
  std::abort();
}

bool HasMinusZero(absl::string_view json) {
  return absl::StrContains(json, "-0,") || absl::StrContains(json, "-0]") ||
         absl::StrContains(json, "-0}");
}

}  // namespace

SYSTOLE_FUZZER(spec, const uint8_t* data, size_t size) {
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
  const auto write = [json](const systole::v1::FeedSpec& from, std::string& to) {
    to.clear();
    return json ? google::protobuf::util::MessageToJsonString(from, &to).ok()
                : google::protobuf::TextFormat::PrintToString(from, &to);
  };
  const auto read = [json](absl::string_view from, systole::v1::FeedSpec& to) {
    return (json ? systole::ParseJson(from, "written", to)
                 : systole::ParseTextproto(from, "written", to))
        .ok();
  };
  std::string written, rewritten;
  if (!write(spec, written)) {
    // The JSON parser accepts strings that are not UTF-8, but they cannot be written as JSON.
    Require(json, "the spec cannot be written");
    return 0;
  }
  systole::v1::FeedSpec again;
  Require(read(written, again), "the written spec cannot be read again");
  if (json && HasMinusZero(written)) {
    // protobuf's JSON parser takes the integer -0 for 0, and a 0 may be left out of the written
    // spec. So the second text may differ from the first one. Later texts must equal the second.
    Require(write(again, written) && read(written, again), "-0 is not written and read again");
  }
  Require(write(again, rewritten), "the spec cannot be written again");
  Require(written == rewritten, "the text changes when it is read and written again");
  return 0;
}
