#include "server/introspection/served_schema.h"

#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/status/check.h"
#include "core/text/foreign_text.h"
#include "google/protobuf/descriptor.pb.h"
#include "grpc/health/v1/health.pb.h"
#include "grpc/reflection/v1/reflection.pb.h"
#include "systole/v1/service.pb.h"

namespace systole {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptor;
using google::protobuf::FileDescriptorProto;

// The .proto file of the older version of reflection, v1alpha, made from the file `v1`. The two
// files differ only in their names and their packages. Older tools ask for v1alpha.
FileDescriptorProto AlphaOf(const FileDescriptor& v1) {
  FileDescriptorProto proto;
  v1.CopyTo(&proto);
  const std::string& package = v1.package();
  const std::string alpha = absl::StrCat(package, "alpha");
  proto.set_name(absl::StrReplaceAll(v1.name(), {{"/v1/", "/v1alpha/"}}));
  proto.set_package(alpha);
  const auto rename = [&](std::string* type) {
    *type = absl::StrReplaceAll(*type,
                                {{absl::StrCat(".", package, "."), absl::StrCat(".", alpha, ".")}});
  };
  for (auto& message : *proto.mutable_message_type()) {
    for (auto& field : *message.mutable_field()) {
      if (field.has_type_name()) rename(field.mutable_type_name());
    }
  }
  for (auto& service : *proto.mutable_service()) {
    for (auto& method : *service.mutable_method()) {
      rename(method.mutable_input_type());
      rename(method.mutable_output_type());
    }
  }
  return proto;
}

void AppendWithImports(const FileDescriptor& file, std::set<const FileDescriptor*>& seen,
                       std::vector<std::string>& files) {
  if (!seen.insert(&file).second) return;
  FileDescriptorProto proto;
  file.CopyTo(&proto);
  files.push_back(proto.SerializeAsString());
  for (int i = 0; i < file.dependency_count(); ++i) {
    AppendWithImports(*file.dependency(i), seen, files);
  }
}

std::vector<std::string> WithImports(const FileDescriptor& file) {
  std::set<const FileDescriptor*> seen;
  std::vector<std::string> files;
  AppendWithImports(file, seen, files);
  return files;
}

absl::Status Unknown(absl::string_view what, const std::string& name) {
  return absl::NotFoundError(absl::StrCat("no ", what, " '", ForeignName(name),
                                          "' here; list_services lists what there is"));
}

}  // namespace

ServedSchema::ServedSchema() {
  const FileDescriptor& reflection =
      *grpc::reflection::v1::ServerReflectionRequest::descriptor()->file();
  for (const FileDescriptor* file :
       {v1::ServerStatusRequest::descriptor()->file(),
        grpc::health::v1::HealthCheckRequest::descriptor()->file(), &reflection}) {
    Copy(*file);
    AddServicesOf(*file);
  }
  const FileDescriptor* const alpha = files_.BuildFile(AlphaOf(reflection));
  SYSTOLE_CHECK(alpha != nullptr);
  AddServicesOf(*alpha);
}

void ServedSchema::Copy(const FileDescriptor& file) {
  if (files_.FindFileByName(file.name()) != nullptr) return;
  for (int i = 0; i < file.dependency_count(); ++i) Copy(*file.dependency(i));
  FileDescriptorProto proto;
  file.CopyTo(&proto);
  SYSTOLE_CHECK(files_.BuildFile(proto) != nullptr);
}

void ServedSchema::AddServicesOf(const FileDescriptor& file) {
  for (int i = 0; i < file.service_count(); ++i) {
    const google::protobuf::ServiceDescriptor& service = *file.service(i);
    services_.push_back(service.full_name());
    for (int j = 0; j < service.method_count(); ++j) {
      methods_.push_back(absl::StrCat(service.full_name(), "/", service.method(j)->name()));
    }
  }
}

absl::StatusOr<std::vector<std::string>> ServedSchema::FileNamed(const std::string& name) const {
  const FileDescriptor* const file = files_.FindFileByName(name);
  if (file == nullptr) return Unknown("file", name);
  return WithImports(*file);
}

absl::StatusOr<std::vector<std::string>> ServedSchema::FileWithSymbol(
    const std::string& symbol) const {
  const FileDescriptor* const file = files_.FindFileContainingSymbol(symbol);
  if (file == nullptr) return Unknown("symbol", symbol);
  return WithImports(*file);
}

absl::StatusOr<std::vector<std::string>> ServedSchema::FileWithExtension(const std::string& message,
                                                                         int32_t number) const {
  const Descriptor* const type = files_.FindMessageTypeByName(message);
  if (type == nullptr) return Unknown("message", message);
  const FieldDescriptor* const extension = files_.FindExtensionByNumber(type, number);
  if (extension == nullptr) return Unknown("extension", absl::StrCat(message, " ", number));
  return WithImports(*extension->file());
}

absl::StatusOr<std::vector<int32_t>> ServedSchema::ExtensionsOf(const std::string& message) const {
  const Descriptor* const type = files_.FindMessageTypeByName(message);
  if (type == nullptr) return Unknown("message", message);
  std::vector<const FieldDescriptor*> extensions;
  files_.FindAllExtensions(type, &extensions);
  std::vector<int32_t> numbers;
  for (const FieldDescriptor* extension : extensions) numbers.push_back(extension->number());
  return numbers;
}

}  // namespace systole
