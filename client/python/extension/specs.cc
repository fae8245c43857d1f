#include "client/python/extension/specs.h"

#include <string>

#include "absl/status/status.h"
#include "client/python/extension/raise.h"
#include "core/textproto/message_text.h"
#include "google/protobuf/text_format.h"
#include "google/protobuf/util/json_util.h"
#include "nanobind/stl/string.h"

namespace nb = nanobind;

namespace systole::python {
namespace {

nb::bytes Serialized(const v1::FeedSpec& spec) {
  const std::string bytes = spec.SerializeAsString();
  return nb::bytes(bytes.data(), bytes.size());
}

nb::bytes SpecFromFile(const std::string& path) {
  v1::FeedSpec spec;
  RaiseIfError(LoadMessage(path, spec));
  return Serialized(spec);
}

nb::bytes SpecFromJson(const std::string& json, const std::string& source) {
  v1::FeedSpec spec;
  RaiseIfError(ParseJson(json, source, spec));
  return Serialized(spec);
}

nb::bytes SpecFromText(const std::string& text, const std::string& source) {
  v1::FeedSpec spec;
  RaiseIfError(ParseTextproto(text, source, spec));
  return Serialized(spec);
}

std::string SpecToText(const nb::bytes& serialized) {
  std::string text;
  google::protobuf::TextFormat::PrintToString(ParseSpec(serialized), &text);
  return text;
}

std::string SpecToJson(const nb::bytes& serialized) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  options.always_print_primitive_fields = true;
  std::string json;
  // This cannot fail, because each message of feed.proto has a JSON form.
  (void)google::protobuf::util::MessageToJsonString(ParseSpec(serialized), &json, options);
  return json;
}

}  // namespace

v1::FeedSpec ParseSpec(const nb::bytes& serialized) {
  v1::FeedSpec spec;
  if (!spec.ParseFromArray(serialized.data(), static_cast<int>(serialized.size()))) {
    RaiseIfError(absl::InvalidArgumentError("these bytes are not a serialized FeedSpec"));
  }
  return spec;
}

void DeclareSpecs(nb::module_& module) {
  module.def("spec_from_file", &SpecFromFile, nb::arg("path"));
  module.def("spec_from_json", &SpecFromJson, nb::arg("json"), nb::arg("source"));
  module.def("spec_from_text", &SpecFromText, nb::arg("text"), nb::arg("source"));
  module.def("spec_to_text", &SpecToText, nb::arg("spec"));
  module.def("spec_to_json", &SpecToJson, nb::arg("spec"));
}

}  // namespace systole::python
