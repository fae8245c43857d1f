#include "tests/proto/spec_page/spec_page.h"

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "core/operations/ops/operation_table.h"

namespace systole {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::EnumValueDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptor;
using google::protobuf::SourceLocation;

constexpr char kHead[] = R"(# The feed spec

Every field of a feed spec, and every operation. `systole` and `systole-server` read a spec as textproto or JSON; in
Python each message is a class of the same name, and enum values are strings in lower case (`tail="pad"`). This page is
made from [feed.proto](systole/v1/feed.proto) and the table of operations. If it is out of date, a test
fails and names the command that makes it anew.

)";

// Examples of fields, with arbitrary numbers and names. A bool or an enum needs no example here:
// ExampleOf() then takes a value that is not the default.
const std::map<std::string, std::string>& Examples() {
  static const auto* const examples = new std::map<std::string, std::string>{
      {"FeedSpec.dataset", "dataset: 'flowers'"},
      {"FeedSpec.seed", "seed: 7"},
      {"FeedSpec.epochs", "epochs: 90"},
      {"FeedSpec.shuffle", "shuffle { mode: GLOBAL }"},
      {"FeedSpec.global_batch", "global_batch: 1024"},
      {"FeedSpec.num_cores", "num_cores: 8"},
      {"FeedSpec.outputs", "outputs { name: 'label' feature: 'label' dtype: INT64 }"},
      {"FeedSpec.select", "select { skip: 1000 } select { take: 200 }"},
      {"FeedSpec.mixture",
       "mixture { dataset: 'photos' weight: 3 } mixture { dataset: 'drawings' weight: 1 }"},
      {"FeedSpec.concatenation",
       "concatenation { dataset: 'photos' } concatenation { dataset: 'drawings' }"},
      {"FeedSpec.mix",
       "mix { group: 8 images: 'image' labels: 'label' mixup { alpha: 0.2 } cutmix {} }"},
      {"FeedSpec.weights",
       "weights { from_step: 10000 weights: [1, 3] } weights { from_step: 50000 weights: [0, 1] }"},
      {"FeedSpec.zip", "zip { dataset: 'photos' } zip { dataset: 'depths' prefix: 'depth/' }"},
      {"Weights.from_step", "from_step: 10000"},
      {"Weights.weights", "weights: [1, 3]"},
      {"Weights.from_example", "from_example: 320000"},
      {"Member.dataset", "dataset: 'photos'"},
      {"Member.select", "select { take: 5000 }"},
      {"Member.weight", "weight: 3"},
      {"Member.prefix", "prefix: 'depth/'"},
      {"Mix.group", "group: 8"},
      {"Mix.images", "images: 'image'"},
      {"Mix.labels", "labels: 'label'"},
      {"Mix.mixup", "mixup { alpha: 0.2 }"},
      {"Mix.cutmix", "cutmix {}"},
      {"Mixup.alpha", "alpha: 0.2"},
      {"Mixup.probability", "probability: 0.5"},
      {"Cutmix.alpha", "alpha: 1"},
      {"Cutmix.probability", "probability: 0.5"},
      {"Select.skip", "skip: 1000"},
      {"Select.take", "take: 50000"},
      {"Select.shard", "shard { count: 4 index: 1 }"},
      {"Select.interleave", "interleave { cycle_length: 16 }"},
      {"Select.auto_shard", "auto_shard { policy: FILE count: 4 index: 1 }"},
      {"Select.where", "where { feature: 'label' not_in: [3] }"},
      {"Where.feature", "feature: 'label'"},
      {"Where.in", "in: [1, 5, 7]"},
      {"Where.not_in", "not_in: [3]"},
      {"Where.less", "less: 0.5"},
      {"Where.less_equal", "less_equal: 0.5"},
      {"Where.greater", "greater: 640"},
      {"Where.greater_equal", "greater_equal: 640"},
      {"Where.present", "present: true"},
      {"Where.min_length", "min_length: 1"},
      {"Where.max_length", "max_length: 16"},
      {"Where.all",
       "all { feature: 'label' in: [1, 2] } all { feature: 'width' greater_equal: 640 }"},
      {"Where.any", "any { feature: 'width' greater: 640 } any { feature: 'height' greater: 640 }"},
      {"Part.count", "count: 4"},
      {"Part.index", "index: 1"},
      {"Interleave.cycle_length", "cycle_length: 16"},
      {"Interleave.block_length", "block_length: 4"},
      {"AutoShard.count", "count: 4"},
      {"AutoShard.index", "index: 1"},
      {"Shuffle.block_records", "block_records: 1024"},
      {"Shuffle.window_records", "window_records: 65536"},
      {"Output.name", "name: 'image'"},
      {"Output.feature", "feature: 'image/encoded'"},
      {"Output.transforms",
       "transforms { decode_jpeg {} } transforms { resize { height: 224 width: 224 } }"},
      {"Output.dtype", "dtype: BFLOAT16"},
      {"Output.shape", "shape: [28, 28, 1]"},
      {"Output.default_value", "default_value { int64s: -1 }"},
      {"Output.padded", "padded { length: 64 }"},
      {"DefaultValue.int64s", "int64s: -1"},
      {"DefaultValue.floats", "floats: [0, 0, 1, 1]"},
      {"DefaultValue.bytes", "bytes: 'none'"},
      {"Padded.length", "length: 64"},
      {"Padded.value", "value: -1"},
      {"Transform.key", "transforms { random_flip {} key: 'second view' }"},
      {"Transform.tf_seed", "transforms { random_flip {} tf_seed: [1, 2] }"},
      {"DecodeJpeg.channels", "channels: 1"},
      {"DecodePng.channels", "channels: 1"},
      {"DecodeImage.channels", "channels: 1"},
      {"RandomResizedCrop.area_min", "area_min: 0.35"},
      {"RandomResizedCrop.area_max", "area_max: 0.9"},
      {"RandomResizedCrop.aspect_min", "aspect_min: 0.8"},
      {"RandomResizedCrop.aspect_max", "aspect_max: 1.25"},
      {"RandomResizedCrop.attempts", "attempts: 20"},
      {"RandomResizedCrop.min_object_covered", "min_object_covered: 0.2"},
      {"Normalize.scale", "scale: 0.00392156862745098"},
      {"Gamma.gain", "gain: 1.1"},
      {"RandomErasing.area_min", "area_min: 0.05"},
      {"RandomErasing.area_max", "area_max: 0.2"},
      {"RandomErasing.aspect_min", "aspect_min: 0.5"},
      {"RandomErasing.aspect_max", "aspect_max: 2"},
      {"RandomErasing.value", "value: [124, 116, 104]"},
      {"OneHot.on_value", "on_value: 0.9"},
      {"OneHot.off_value", "off_value: 0.0001"},
  };
  return *examples;
}

// The row of the operation whose parameters are a `message`, or null if there is none.
const OperationRow* RowOf(const Descriptor& message) {
  for (const OperationRow& row : Operations()) {
    const auto number = static_cast<int>(row.kind);
    const Descriptor& parameters =
        *v1::Transform::descriptor()->FindFieldByNumber(number)->message_type();
    if (parameters.full_name() == message.full_name()) return &row;
  }
  return nullptr;
}

// The text of the field `name` in `example`, or "" if `example` does not have the field. For the
// field "fraction" of "center_crop { height: 224 width: 224 fraction: 0.875 }", returns
// "fraction: 0.875".
std::string FieldIn(absl::string_view example, const std::string& name) {
  const std::string key = absl::StrCat(" ", name, ": ");
  const size_t at = example.find(key);
  if (at == absl::string_view::npos) return "";
  const size_t value = at + key.size();
  const size_t end =
      example[value] == '[' ? example.find(']', value) + 1 : example.find(' ', value);
  return std::string(example.substr(at + 1, end - at - 1));
}

// The comment as Markdown, with `indent` before each line. Indented lines become code.
std::string Markdown(absl::string_view comment, absl::string_view indent) {
  std::string text;
  bool code = false;
  for (absl::string_view line : absl::StrSplit(absl::StripTrailingAsciiWhitespace(comment), '\n')) {
    if (absl::StartsWith(line, " ")) line.remove_prefix(1);
    line = absl::StripTrailingAsciiWhitespace(line);
    const bool set_in = absl::StartsWith(line, "  ");
    if (set_in != code && !line.empty()) {
      absl::StrAppend(&text, indent, "```", set_in ? "text" : "", "\n");
      code = set_in;
    }
    if (line.empty()) {
      absl::StrAppend(&text, "\n");
    } else {
      absl::StrAppend(&text, indent, line, "\n");
    }
  }
  if (code) absl::StrAppend(&text, indent, "```\n");
  return text;
}

template <typename Described>
std::string CommentOf(const Described& described) {
  SourceLocation place;
  if (!described.GetSourceLocation(&place)) return "";
  return place.leading_comments + place.trailing_comments;
}

std::string LinkTo(absl::string_view name) {
  return absl::StrCat("[", name, "](#", absl::AsciiStrToLower(name), ")");
}

std::string TypeOf(const FieldDescriptor& field) {
  std::string type = field.type_name();
  if (field.enum_type() != nullptr) type = LinkTo(field.enum_type()->name());
  if (field.message_type() != nullptr) type = LinkTo(field.message_type()->name());
  return absl::StrCat(type, field.is_repeated() ? ", any number" : "");
}

void AddField(const FieldDescriptor& field, std::string& page) {
  absl::StrAppend(&page, "* **`", field.name(), "`** (", TypeOf(field), "): `", ExampleOf(field),
                  "`\\\n", Markdown(CommentOf(field), "  "));
}

void AddEnum(const EnumDescriptor& values, std::string& page) {
  absl::StrAppend(&page, "\n### ", values.name(), "\n\n", Markdown(CommentOf(values), ""));
  for (int i = 0; i < values.value_count(); ++i) {
    const EnumValueDescriptor& value = *values.value(i);
    if (absl::EndsWith(value.name(), "_UNSPECIFIED")) continue;
    absl::StrAppend(&page, "* **`", value.name(), "`**\n", Markdown(CommentOf(value), "  "));
  }
}

void AddOperation(const OperationRow& row, std::string& page) {
  absl::StrAppend(&page, "\n`transforms { ", row.guide.example, " }`: ", row.guide.summary, "\n");
  std::vector<std::string> others;
  if (!row.guide.tensorflow.empty()) {
    others.push_back(
        absl::StrCat("TensorFlow `", row.guide.tensorflow, "` (", row.guide.parity, ")"));
  }
  if (!row.guide.torchvision.empty()) {
    others.push_back(absl::StrCat("torchvision `", row.guide.torchvision, "`"));
  }
  if (!row.guide.dali.empty()) others.push_back(absl::StrCat("DALI `", row.guide.dali, "`"));
  if (!others.empty()) {
    absl::StrAppend(&page, "\nElsewhere: ", absl::StrJoin(others, "; "), ".\n");
  }
}

// Adds the message and its enums. Fields that have an operation's parameters are left out.
void AddMessage(const Descriptor& message, std::string& page) {
  const OperationRow* const row = RowOf(message);
  const std::string name = row == nullptr ? message.name() : OperationName(row->kind);
  // The heading has the operation's name. Links have the message's name, so they need this anchor.
  const std::string anchor =
      row == nullptr ? ""
                     : absl::StrCat("<a id=\"", absl::AsciiStrToLower(message.name()), "\"></a>\n");
  absl::StrAppend(&page, "\n", anchor, "## ", name, "\n");
  if (row != nullptr) AddOperation(*row, page);
  const std::string comment = Markdown(CommentOf(message), "");
  if (!comment.empty()) absl::StrAppend(&page, "\n", comment);
  bool first = true;
  for (int i = 0; i < message.field_count(); ++i) {
    const FieldDescriptor& field = *message.field(i);
    if (field.message_type() != nullptr && RowOf(*field.message_type()) != nullptr) continue;
    if (first) absl::StrAppend(&page, "\n");
    first = false;
    AddField(field, page);
  }
  for (int i = 0; i < message.enum_type_count(); ++i) AddEnum(*message.enum_type(i), page);
}

}  // namespace

std::string ExampleOf(const FieldDescriptor& field) {
  if (const OperationRow* const row = RowOf(*field.containing_type()); row != nullptr) {
    if (std::string found = FieldIn(row->guide.example, field.name()); !found.empty()) return found;
  }
  const std::string name = absl::StrCat(field.containing_type()->name(), ".", field.name());
  if (const auto found = Examples().find(name); found != Examples().end()) return found->second;
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_BOOL)
    return absl::StrCat(field.name(), ": true");
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_ENUM) {
    return absl::StrCat(field.name(), ": ", field.enum_type()->value(1)->name());
  }
  return "";
}

std::string SpecPage(const FileDescriptor& feed) {
  std::string page = kHead;
  std::vector<std::string> parts;
  std::vector<std::string> operations;
  for (int i = 0; i < feed.message_type_count(); ++i) {
    const Descriptor& message = *feed.message_type(i);
    const OperationRow* const row = RowOf(message);
    if (row == nullptr) {
      parts.push_back(LinkTo(message.name()));
    } else {
      const std::string name = OperationName(row->kind);
      operations.push_back(absl::StrCat("[", name, "](#", name, ")"));
    }
  }
  absl::StrAppend(&page, "The parts: ", absl::StrJoin(parts, ", "),
                  ".\n\nThe operations: ", absl::StrJoin(operations, ", "), ".\n");
  for (int i = 0; i < feed.message_type_count(); ++i) AddMessage(*feed.message_type(i), page);
  absl::StrAppend(&page, "\n## Types of several messages\n");
  for (int i = 0; i < feed.enum_type_count(); ++i) AddEnum(*feed.enum_type(i), page);
  return page;
}

}  // namespace systole
