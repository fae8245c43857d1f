#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/commands.h"
#include "client/json/json_writer.h"
#include "core/operations/operation_table.h"
#include "google/protobuf/descriptor.h"

namespace systole {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;

// The message of the operation's parameters.
const Descriptor& MessageOf(const OperationRow& row) {
  return *v1::Transform::descriptor()
              ->FindFieldByNumber(static_cast<int>(row.kind))
              ->message_type();
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

std::string ParametersOf(const OperationRow& row) {
  std::string text;
  const Descriptor& message = MessageOf(row);
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
  for (const OperationRow& row : Operations()) {
    json.BeginObject().Field("name", OperationName(row.kind));
    json.Field("summary", row.guide.summary).Key("parameters").BeginArray();
    const Descriptor& message = MessageOf(row);
    for (int i = 0; i < message.field_count(); ++i) {
      const FieldDescriptor& field = *message.field(i);
      json.BeginObject().Field("name", field.name()).Field("type", TypeOf(field));
      json.Field("list", field.is_repeated()).EndObject();
    }
    json.EndArray().Field("example", row.guide.example);
    json.Field("tensorflow", row.guide.tensorflow).Field("parity", row.guide.parity);
    json.Field("torchvision", row.guide.torchvision).Field("dali", row.guide.dali).EndObject();
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
    return "List the operations that an output's transforms can hold, and what others call them";
  }
  std::string example() const override { return "systole ops"; }
  void Declare(OptionList&) override {}

  absl::Status Run(const Console& console) override {
    if (console.json) {
      console.out << ReportAsJson() << "\n";
      return absl::OkStatus();
    }
    for (const OperationRow& row : Operations()) {
      console.out << OperationName(row.kind) << "\n";
      PrintLine(console.out, "", row.guide.summary);
      PrintLine(console.out, "parameters", ParametersOf(row));
      PrintLine(console.out, "example", absl::StrCat("transforms { ", row.guide.example, " }"));
      PrintLine(console.out, "TensorFlow", row.guide.tensorflow);
      PrintLine(console.out, "", row.guide.parity);
      PrintLine(console.out, "torchvision", row.guide.torchvision);
      PrintLine(console.out, "DALI", row.guide.dali);
      console.out << "\n";
    }
    return absl::OkStatus();
  }
};

}  // namespace

std::unique_ptr<Command> MakeOpsCommand() { return std::make_unique<OpsCommand>(); }

}  // namespace systole
