#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/commands/commands.h"
#include "core/json/json_writer.h"
#include "core/operations/ops/operation_table.h"
#include "core/spec/transform_runs.h"
#include "google/protobuf/descriptor.h"

namespace systole {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;

// An operation: a transform of an output, or a mix of examples.
struct Entry {
  std::string name;
  const Descriptor& parameters;
  const OperationGuide& guide;
  std::string example;  // Text to put into an output of a spec or, for a mix, into the spec.
  std::string runs;     // How it can run: "fused, by row". Empty for a mix.
};

std::string RunsOf(const OperationRow& row) {
  return absl::StrJoin(PossibleRuns(row), ", ",
                       [](std::string* out, v1::TransformRun run) { out->append(RunName(run)); });
}

std::vector<Entry> Entries() {
  std::vector<Entry> entries;
  for (const OperationRow& row : Operations()) {
    const auto number = static_cast<int>(row.kind);
    entries.push_back(
        {.name = OperationName(row.kind),
         .parameters = *v1::Transform::descriptor()->FindFieldByNumber(number)->message_type(),
         .guide = row.guide,
         .example = absl::StrCat("transforms { ", row.guide.example, " }"),
         .runs = RunsOf(row)});
  }
  for (const MixRow& row : MixOperations()) {
    const std::string name(row.name);
    entries.push_back({.name = name,
                       .parameters = *v1::Mix::descriptor()->FindFieldByName(name)->message_type(),
                       .guide = row.guide,
                       .example = std::string(row.guide.example),
                       .runs = ""});
  }
  return entries;
}

// "ISLOW | IFAST" for an enum, else the type's name in .proto files.
std::string TypeOf(const FieldDescriptor& field) {
  std::string type = field.type_name();
  if (const EnumDescriptor* values = field.enum_type(); values != nullptr) {
    type.clear();
    for (int i = 0; i < values->value_count(); ++i) {
      absl::StrAppend(&type, i == 0 ? "" : " | ", values->value(i)->name());
    }
  } else if (field.message_type() != nullptr) {
    type = field.message_type()->name();
  }
  return type;
}

std::string ParametersOf(const Descriptor& message) {
  std::string text;
  for (int i = 0; i < message.field_count(); ++i) {
    const FieldDescriptor& field = *message.field(i);
    absl::StrAppend(&text, i == 0 ? "" : ", ", field.name(), ": ",
                    field.is_repeated() ? "list of " : "", TypeOf(field));
  }
  return text;
}

std::string ReportAsJson() {
  JsonWriter json;
  json.BeginObject().Key("operations").BeginArray();
  for (const Entry& entry : Entries()) {
    json.BeginObject().Field("name", entry.name);
    json.Field("summary", entry.guide.summary).Key("parameters").BeginArray();
    for (int i = 0; i < entry.parameters.field_count(); ++i) {
      const FieldDescriptor& field = *entry.parameters.field(i);
      json.BeginObject().Field("name", field.name()).Field("type", TypeOf(field));
      json.Field("list", field.is_repeated()).EndObject();
    }
    json.EndArray().Field("example", entry.guide.example).Field("runs", entry.runs);
    json.Field("tensorflow", entry.guide.tensorflow).Field("parity", entry.guide.parity);
    json.Field("combined_tensorflow", entry.guide.combined_tensorflow);
    json.Field("combined_parity", entry.guide.combined_parity);
    json.Field("torchvision", entry.guide.torchvision).Field("dali", entry.guide.dali).EndObject();
  }
  return json.EndArray().EndObject().text();
}

void PrintLine(std::ostream& out, absl::string_view what, absl::string_view text) {
  if (!text.empty()) out << "  " << what << std::string(14 - what.size(), ' ') << text << "\n";
}

class OpsCommand final : public Command {
 public:
  std::string name() const override { return "ops"; }
  std::string summary() const override {
    return "List the operations that a spec can hold, with their names in other libraries";
  }
  std::string example() const override { return "systole ops"; }
  void Declare(OptionList&) override {}

  absl::Status Run(const Console& console) override {
    if (console.json) {
      console.out << ReportAsJson() << "\n";
      return absl::OkStatus();
    }
    for (const Entry& entry : Entries()) {
      console.out << entry.name << "\n";
      PrintLine(console.out, "", entry.guide.summary);
      PrintLine(console.out, "parameters", ParametersOf(entry.parameters));
      PrintLine(console.out, "example", entry.example);
      PrintLine(console.out, "runs", entry.runs);
      PrintLine(console.out, "TensorFlow", entry.guide.tensorflow);
      PrintLine(console.out, "", entry.guide.parity);
      PrintLine(console.out, "", entry.guide.combined_tensorflow);
      PrintLine(console.out, "", entry.guide.combined_parity);
      PrintLine(console.out, "torchvision", entry.guide.torchvision);
      PrintLine(console.out, "DALI", entry.guide.dali);
      console.out << "\n";
    }
    return absl::OkStatus();
  }
};

}  // namespace

std::unique_ptr<Command> MakeOpsCommand() { return std::make_unique<OpsCommand>(); }

}  // namespace systole
