#include "proto/textproto/textproto.h"

#include <fstream>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/text_format.h"
#include "google/protobuf/util/json_util.h"

namespace systole {
namespace {

// A hostile text could hold one error a byte.
constexpr size_t kMaxErrors = 20;

class ErrorList : public google::protobuf::io::ErrorCollector {
 public:
  explicit ErrorList(absl::string_view source) : source_(source) {}

  void AddError(int line, google::protobuf::io::ColumnNumber column,
                const std::string& message) override {
    if (errors_.size() >= kMaxErrors) return;
    // The parser counts from 0; line -1 means the message as a whole.
    errors_.push_back(line < 0
                          ? absl::StrCat(source_, ": ", message)
                          : absl::StrCat(source_, ":", line + 1, ":", column + 1, ": ", message));
  }
  // Only deprecated fields warn, and there are none.
  void AddWarning(int, google::protobuf::io::ColumnNumber, const std::string&) override {}

  std::string Joined() const { return absl::StrJoin(errors_, "\n"); }

 private:
  const absl::string_view source_;
  std::vector<std::string> errors_;
};

}  // namespace

absl::Status ParseTextproto(absl::string_view text, absl::string_view source,
                            google::protobuf::Message& message) {
  if (static_cast<int64_t>(text.size()) > kMaxTextBytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat(source, ": ", text.size(), " bytes, want at most ", kMaxTextBytes));
  }
  ErrorList errors(source);
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&errors);
  google::protobuf::io::ArrayInputStream stream(text.data(), static_cast<int>(text.size()));
  if (!parser.Parse(&stream, &message)) return absl::InvalidArgumentError(errors.Joined());
  return absl::OkStatus();
}

absl::Status ParseJson(absl::string_view text, absl::string_view source,
                       google::protobuf::Message& message) {
  if (static_cast<int64_t>(text.size()) > kMaxTextBytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat(source, ": ", text.size(), " bytes, want at most ", kMaxTextBytes));
  }
  message.Clear();
  const google::protobuf::util::Status status = google::protobuf::util::JsonStringToMessage(
      google::protobuf::StringPiece(text.data(), text.size()), &message);
  if (!status.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(source, ": ", status.message().ToString()));
  }
  return absl::OkStatus();
}

absl::Status LoadMessage(const std::string& path, google::protobuf::Message& message) {
  std::ifstream in(path, std::ios::binary);
  std::string text;
  if (in) {
    text.resize(static_cast<size_t>(kMaxTextBytes) + 1);
    in.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<size_t>(in.gcount()));
  }
  if (in.bad() || (text.empty() && !in.is_open())) {
    return absl::NotFoundError(absl::StrCat("cannot read '", path, "': no such file, or no leave"));
  }
  return absl::EndsWith(path, ".json") ? ParseJson(text, path, message)
                                       : ParseTextproto(text, path, message);
}

}  // namespace systole
