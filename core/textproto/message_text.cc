#include "core/textproto/message_text.h"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"
#include "core/text/did_you_mean.h"
#include "core/text/foreign_text.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/text_format.h"
#include "google/protobuf/util/json_util.h"

namespace systole {
namespace {

// The most errors that one status lists. A hostile text could have an error at every byte.
constexpr size_t kMaxErrors = 20;

// Every message type that a message of `type` can contain; `type` itself comes first. The search is
// slow for many types, but our messages contain few.
std::vector<const google::protobuf::Descriptor*> TypesIn(const google::protobuf::Descriptor* type) {
  std::vector<const google::protobuf::Descriptor*> types = {type};
  for (size_t i = 0; i < types.size(); ++i) {
    for (int f = 0; f < types[i]->field_count(); ++f) {
      const google::protobuf::Descriptor* const inner = types[i]->field(f)->message_type();
      if (inner != nullptr && std::find(types.begin(), types.end(), inner) == types.end()) {
        types.push_back(inner);
      }
    }
  }
  return types;
}

void AddFieldNames(const google::protobuf::Descriptor& type, std::vector<std::string>& names) {
  for (int f = 0; f < type.field_count(); ++f) names.push_back(type.field(f)->name());
}

// A text that says in which messages of `types` the field may stand. The outermost message is the
// first of `types`. Empty if no message has the field.
std::string WhereItBelongs(const std::string& field,
                           absl::Span<const google::protobuf::Descriptor* const> types) {
  std::vector<std::string> inside;
  if (types.front()->FindFieldByName(field) != nullptr) inside.push_back("the outermost message");
  for (const google::protobuf::Descriptor* type : types) {
    for (int f = 0; f < type->field_count(); ++f) {
      const google::protobuf::Descriptor* const inner = type->field(f)->message_type();
      if (inner == nullptr || inner->FindFieldByName(field) == nullptr) continue;
      std::string place = absl::StrCat("'", type->field(f)->name(), "'");
      if (std::find(inside.begin(), inside.end(), place) == inside.end()) {
        inside.push_back(std::move(place));
      }
    }
  }
  return inside.empty()
             ? ""
             : absl::StrCat("; '", field, "' belongs inside ", absl::StrJoin(inside, " or "));
}

// The part of `message` between `before` and `after`; nullopt if `message` lacks one of the two.
std::optional<std::string> Between(absl::string_view message, absl::string_view before,
                                   absl::string_view after) {
  const size_t begin = message.find(before);
  if (begin == absl::string_view::npos) return std::nullopt;
  message.remove_prefix(begin + before.size());
  const size_t end = message.find(after);
  if (end == absl::string_view::npos) return std::nullopt;
  return std::string(message.substr(0, end));
}

// A text that suggests fields or values, to be appended to `message`, an error message of protobuf.
// Empty for errors that are not about an unknown field or value. protobuf gives its errors no
// codes, so this function recognizes them by their words. If a version of protobuf uses other
// words, only the suggestions are lost.
std::string Help(absl::string_view message, const google::protobuf::Descriptor* root) {
  const std::vector<const google::protobuf::Descriptor*> types = TypesIn(root);
  // The field is unknown, in textproto. The error names the type of the message.
  if (const auto field = Between(message, "has no field named \"", "\"")) {
    const auto name = Between(message, "Message type \"", "\"");
    std::vector<std::string> names;
    for (const google::protobuf::Descriptor* type : types) {
      if (type->full_name() == name) AddFieldNames(*type, names);
    }
    if (names.empty()) return "; it has no fields";
    const std::string meant = DidYouMean(*field, names);
    return meant.empty() ? absl::StrCat("; it has ", absl::StrJoin(names, ", ")) : meant;
  }
  // The field is unknown, in JSON. The error names no type, so all types are searched.
  if (absl::EndsWith(message, ": Cannot find field.")) {
    message.remove_suffix(absl::string_view(": Cannot find field.").size());
    std::vector<std::string> names;
    for (const google::protobuf::Descriptor* type : types) AddFieldNames(*type, names);
    const std::string field(message.substr(message.find_last_of(" :.)") + 1));
    const std::string where = WhereItBelongs(field, types);
    return where.empty() ? DidYouMean(field, names) : where;
  }
  // The value of an enum is unknown. An error of textproto names the field, and an error of JSON
  // names the enum's type.
  std::optional<std::string> field;
  std::optional<std::string> type_name;
  if (absl::StartsWith(message, "Unknown enumeration value of ")) {
    field = Between(message, "for field \"", "\"");
  } else if (const size_t at = message.find("for type type.googleapis.com/");
             at != absl::string_view::npos) {
    type_name = std::string(message.substr(message.find('/', at) + 1));
  }
  std::string help;
  for (const google::protobuf::Descriptor* type : types) {
    for (int f = 0; f < type->field_count(); ++f) {
      const google::protobuf::EnumDescriptor* const values = type->field(f)->enum_type();
      if (values == nullptr ||
          (type->field(f)->name() != field && values->full_name() != type_name)) {
        continue;
      }
      std::vector<std::string> names;
      for (int i = 0; i < values->value_count(); ++i) {
        // X_UNSPECIFIED means that the field is left out, so X_UNSPECIFIED is not suggested.
        const std::string& name = values->value(i)->name();
        if (!absl::EndsWith(name, "_UNSPECIFIED")) names.push_back(name);
      }
      const std::string wanted = absl::StrCat("; want ", absl::StrJoin(names, ", "));
      // Several fields may match. If they have the same type, their suggestion is added once.
      if (!absl::StrContains(help, wanted)) absl::StrAppend(&help, wanted);
    }
  }
  return help;
}

class ErrorList : public google::protobuf::io::ErrorCollector {
 public:
  ErrorList(absl::string_view source, const google::protobuf::Descriptor* root)
      : source_(source), root_(root) {}

  void AddError(int line, google::protobuf::io::ColumnNumber column,
                const std::string& message) override {
    if (errors_.size() >= kMaxErrors) return;
    const std::string help = Help(message, root_);
    const std::string text =
        absl::StrCat(ForeignText(help.empty() ? message : absl::StripSuffix(message, ".")), help);
    // The parser counts from 0; line -1 means the message as a whole.
    errors_.push_back(line < 0 ? absl::StrCat(source_, ": ", text)
                               : absl::StrCat(source_, ":", line + 1, ":", column + 1, ": ", text));
  }
  // protobuf warns only of deprecated fields, and our messages have none.
  void AddWarning(int, google::protobuf::io::ColumnNumber, const std::string&) override {}

  std::string Joined() const { return absl::StrJoin(errors_, "\n"); }

 private:
  const absl::string_view source_;
  const google::protobuf::Descriptor* const root_;
  std::vector<std::string> errors_;
};

enum class UnknownFields { kRefused, kSkipped };

absl::Status ParseJsonText(absl::string_view text, absl::string_view source, UnknownFields unknown,
                           google::protobuf::Message& message) {
  if (static_cast<int64_t>(text.size()) > kMaxTextBytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat(source, ": ", text.size(), " bytes, want at most ", kMaxTextBytes));
  }
  message.Clear();
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = unknown == UnknownFields::kSkipped;
  const google::protobuf::util::Status status = google::protobuf::util::JsonStringToMessage(
      google::protobuf::StringPiece(text.data(), text.size()), &message, options);
  if (!status.ok()) {
    const std::string what = status.message().ToString();
    const std::string help = Help(what, message.GetDescriptor());
    return absl::InvalidArgumentError(absl::StrCat(
        source, ": ", ForeignText(help.empty() ? what : absl::StripSuffix(what, ".")), help));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ParseTextproto(absl::string_view text, absl::string_view source,
                            google::protobuf::Message& message) {
  if (static_cast<int64_t>(text.size()) > kMaxTextBytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat(source, ": ", text.size(), " bytes, want at most ", kMaxTextBytes));
  }
  ErrorList errors(source, message.GetDescriptor());
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&errors);
  google::protobuf::io::ArrayInputStream stream(text.data(), static_cast<int>(text.size()));
  if (!parser.Parse(&stream, &message)) {
    // Our textprotos never begin with a brace.
    if (absl::StartsWith(absl::StripLeadingAsciiWhitespace(text), "{")) {
      return absl::InvalidArgumentError(
          absl::StrCat(source, ": this looks like JSON; JSON is read from files named .json"));
    }
    return absl::InvalidArgumentError(errors.Joined());
  }
  return absl::OkStatus();
}

absl::Status ParseJson(absl::string_view text, absl::string_view source,
                       google::protobuf::Message& message) {
  return ParseJsonText(text, source, UnknownFields::kRefused, message);
}

absl::Status ParseForeignJson(absl::string_view text, absl::string_view source,
                              google::protobuf::Message& message) {
  return ParseJsonText(text, source, UnknownFields::kSkipped, message);
}

absl::Status LoadMessage(const std::string& path, google::protobuf::Message& message) {
  errno = EIO;  // The reason in the error, if the library sets no errno.
  std::ifstream in(path, std::ios::binary);
  std::string text;
  if (in) {
    text.resize(static_cast<size_t>(kMaxTextBytes) + 1);
    in.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<size_t>(in.gcount()));
  }
  if (!in.is_open() || in.bad()) {
    const absl::Status status =
        absl::ErrnoToStatus(errno, absl::StrCat("cannot read '", ForeignText(path), "'"));
    if (absl::IsNotFound(status) || absl::IsPermissionDenied(status)) return status;
    return absl::InvalidArgumentError(status.message());  // `path` is a folder, for example.
  }
  return absl::EndsWith(path, ".json") ? ParseJson(text, path, message)
                                       : ParseTextproto(text, path, message);
}

}  // namespace systole
