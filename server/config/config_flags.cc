#include "server/config/config_flags.h"

#include <sys/stat.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "core/status/check.h"
#include "core/text/duration_text.h"
#include "core/text/foreign_text.h"
#include "core/text/size_text.h"
#include "server/config/shown_config.h"

namespace systole {
namespace {

using ::google::protobuf::EnumValueDescriptor;
using ::google::protobuf::FieldDescriptor;
using ::google::protobuf::Message;

void AddFlagsOf(const google::protobuf::Descriptor& message, const FieldDescriptor* inside,
                std::vector<ConfigFlag>& flags) {
  for (int i = 0; i < message.field_count(); ++i) {
    const FieldDescriptor* const field = message.field(i);
    if (field->options().HasExtension(v1::flag)) {
      const v1::Flag& about = field->options().GetExtension(v1::flag);
      const std::string& name = about.name().empty() ? field->name() : about.name();
      flags.push_back({.name = absl::StrCat("--", absl::StrReplaceAll(name, {{"_", "-"}})),
                       .field = inside == nullptr
                                    ? field->name()
                                    : absl::StrCat(inside->name(), ".", field->name()),
                       .about = &about,
                       .inside = inside,
                       .value = field});
    } else if (inside == nullptr && field->message_type() != nullptr && !field->is_repeated()) {
      AddFlagsOf(*field->message_type(), field, flags);
    }
  }
}

// The value of the flag's enum that is called `name`, in upper or lower case. Null if there is
// none.
const EnumValueDescriptor* EnumValueNamed(const ConfigFlag& flag, absl::string_view name) {
  return flag.value->enum_type()->FindValueByName(absl::AsciiStrToUpper(name));
}

std::vector<std::string> ChoicesOf(const ConfigFlag& flag) {
  if (flag.value->enum_type() == nullptr) {
    return {flag.about->choices().begin(), flag.about->choices().end()};
  }
  std::vector<std::string> names;
  for (int i = 0; i < flag.value->enum_type()->value_count(); ++i) {
    names.push_back(absl::AsciiStrToLower(flag.value->enum_type()->value(i)->name()));
  }
  return names;
}

// How the text of a number, TIME or SIZE is read. All three become durations, so that bounds are
// compared in one way.
struct Measure {
  const char* wanted;
  // Nullopt if `text` is not such a value. A number or SIZE of n becomes n seconds.
  std::optional<absl::Duration> (*read)(absl::string_view text);
};

std::optional<absl::Duration> Whole(std::optional<int64_t> number) {
  if (!number.has_value()) return std::nullopt;
  return absl::Seconds(*number);
}

std::optional<Measure> MeasureOf(const ConfigFlag& flag) {
  if (flag.about->value() == "TIME") {
    return Measure{.wanted = "a time, such as 3s or 500ms", .read = ParseDurationText};
  }
  if (flag.about->value() == "SIZE") {
    return Measure{.wanted = "a size, such as 512MB or 4GB",
                   .read = [](absl::string_view text) { return Whole(ParseSizeText(text)); }};
  }
  if (flag.value->cpp_type() == FieldDescriptor::CPPTYPE_INT64) {
    return Measure{.wanted = "a whole number",
                   .read = [](absl::string_view text) -> std::optional<absl::Duration> {
                     int64_t number;
                     if (!absl::SimpleAtoi(text, &number)) return std::nullopt;
                     return absl::Seconds(number);
                   }};
  }
  return std::nullopt;
}

absl::Status Wanted(absl::string_view text, absl::string_view wanted) {
  return absl::InvalidArgumentError(
      absl::StrCat("'", ForeignText(ShownText(text)), "', want ", wanted));
}

// NAME and GLOB of the text "NAME=GLOB". Nullopt if one of them is missing.
std::optional<std::pair<std::string, std::string>> NameAndGlob(absl::string_view text) {
  const size_t equals = text.find('=');
  if (equals == text.npos || equals == 0 || equals + 1 == text.size()) return std::nullopt;
  return std::pair(std::string(text.substr(0, equals)), std::string(text.substr(equals + 1)));
}

// The dataset `name` of `config`. If `config` has no dataset of this name, adds one.
v1::DatasetConfig& DatasetNamed(const std::string& name, v1::ServerConfig& config) {
  for (v1::DatasetConfig& known : *config.mutable_datasets()) {
    if (known.name() == name) return known;
  }
  v1::DatasetConfig& added = *config.add_datasets();
  added.set_name(name);
  return added;
}

// The flag's value in `config`, as the text that would set it. Nullopt if `config` has none.
std::optional<std::string> TextIn(const v1::ServerConfig& config, const ConfigFlag& flag) {
  const Message* message = &config;
  if (flag.inside != nullptr) {
    if (!config.GetReflection()->HasField(config, flag.inside)) return std::nullopt;
    message = &config.GetReflection()->GetMessage(config, flag.inside);
  }
  const google::protobuf::Reflection& fields = *message->GetReflection();
  if (flag.is_list() || !fields.HasField(*message, flag.value)) return std::nullopt;
  switch (flag.value->cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return fields.GetBool(*message, flag.value) ? "true" : "false";
    case FieldDescriptor::CPPTYPE_INT64:
      return absl::StrCat(fields.GetInt64(*message, flag.value));
    case FieldDescriptor::CPPTYPE_ENUM: {
      // Textproto and JSON may set a number that belongs to no value of the enum.
      const int number = fields.GetEnumValue(*message, flag.value);
      const EnumValueDescriptor* const known = flag.value->enum_type()->FindValueByNumber(number);
      return known != nullptr ? known->name() : absl::StrCat(number);
    }
    default:
      return fields.GetString(*message, flag.value);
  }
}

}  // namespace

const std::vector<ConfigFlag>& ConfigFlags() {
  static const auto& flags = *[] {
    auto* const all = new std::vector<ConfigFlag>;
    AddFlagsOf(*v1::ServerConfig::descriptor(), nullptr, *all);
    return all;
  }();
  return flags;
}

absl::Status CheckFlagText(const ConfigFlag& flag, absl::string_view text) {
  if (flag.is_list()) {
    if (NameAndGlob(text).has_value()) return absl::OkStatus();
    return Wanted(text, "NAME=GLOB, such as flowers='data/*.tfrecord'");
  }
  if (flag.is_switch() && text != "true" && text != "false") return Wanted(text, "true or false");
  if (const std::vector<std::string> choices = ChoicesOf(flag); !choices.empty()) {
    const bool known = flag.value->enum_type() != nullptr
                           ? EnumValueNamed(flag, text) != nullptr
                           : std::find(choices.begin(), choices.end(), text) != choices.end();
    if (!known) return Wanted(text, absl::StrCat("one of: ", absl::StrJoin(choices, ", ")));
  }
  if (const std::optional<Measure> measure = MeasureOf(flag); measure.has_value()) {
    const std::optional<absl::Duration> value = measure->read(text);
    if (!value.has_value()) return Wanted(text, measure->wanted);
    if (*value < measure->read(flag.about->least()) || *value > measure->read(flag.about->most())) {
      return Wanted(text, absl::StrCat(flag.about->least(), " to ", flag.about->most()));
    }
  }
  struct stat file;
  if (flag.about->folder() &&
      (::stat(std::string(text).c_str(), &file) != 0 || !S_ISDIR(file.st_mode))) {
    return Wanted(text, "an existing folder");
  }
  return absl::OkStatus();
}

void SetFlag(const ConfigFlag& flag, absl::string_view text, v1::ServerConfig& config) {
  if (flag.is_list()) {
    auto [name, glob] = NameAndGlob(text).value();
    DatasetNamed(name, config).add_shards(std::move(glob));
    return;
  }
  Message* const message = flag.inside == nullptr
                               ? &config
                               : config.GetReflection()->MutableMessage(&config, flag.inside);
  const google::protobuf::Reflection& fields = *message->GetReflection();
  switch (flag.value->cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return fields.SetBool(message, flag.value, text == "true");
    case FieldDescriptor::CPPTYPE_INT64: {
      int64_t number = 0;
      SYSTOLE_CHECK(absl::SimpleAtoi(text, &number));
      return fields.SetInt64(message, flag.value, number);
    }
    case FieldDescriptor::CPPTYPE_ENUM:
      return fields.SetEnum(message, flag.value, EnumValueNamed(flag, text));
    default:
      return fields.SetString(message, flag.value, std::string(text));
  }
}

void Override(const v1::ServerConfig& flags, v1::ServerConfig& config) {
  v1::ServerConfig rest = flags;
  rest.clear_datasets();
  config.MergeFrom(rest);
  for (const v1::DatasetConfig& dataset : flags.datasets()) {
    DatasetNamed(dataset.name(), config).mutable_shards()->MergeFrom(dataset.shards());
  }
}

absl::StatusOr<v1::ServerConfig> CompleteConfig(v1::ServerConfig config) {
  for (const ConfigFlag& flag : ConfigFlags()) {
    if (const std::optional<std::string> text = TextIn(config, flag); text.has_value()) {
      const absl::Status status = CheckFlagText(flag, *text);
      if (status.ok()) continue;
      return absl::InvalidArgumentError(absl::StrCat(flag.field, ": ", status.message()));
    }
    if (!flag.about->default_value().empty()) SetFlag(flag, flag.about->default_value(), config);
  }
  for (v1::DatasetConfig& dataset : *config.mutable_datasets()) {
    if (!dataset.has_compression()) dataset.set_compression(config.compression());
  }
  return config;
}

absl::Duration TimeOf(absl::string_view text) { return ParseDurationText(text).value(); }

int64_t SizeOf(absl::string_view text) { return ParseSizeText(text).value(); }

}  // namespace systole
