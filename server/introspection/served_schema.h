// The descriptors of the services that a server has, and of nothing else, for reflection.
//
// Thread-safe: immutable once made.
#ifndef SYSTOLE_SERVER_INTROSPECTION_SERVED_SCHEMA_H_
#define SYSTOLE_SERVER_INTROSPECTION_SERVED_SCHEMA_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "google/protobuf/descriptor.h"

namespace systole {

class ServedSchema {
 public:
  ServedSchema();

  // The full names of the services.
  const std::vector<std::string>& services() const { return services_; }
  // All methods of these services, written "package.Service/Method".
  const std::vector<std::string>& methods() const { return methods_; }

  // Serialised FileDescriptorProtos: the file `name`, and all files that it imports, each once.
  //   NotFound  no such file among those that the services need.
  absl::StatusOr<std::vector<std::string>> FileNamed(const std::string& name) const;
  // Like FileNamed(), for the file that declares a service, method, message, field or enum.
  absl::StatusOr<std::vector<std::string>> FileWithSymbol(const std::string& symbol) const;
  //   NotFound  no such message, or the message has no such extension.
  absl::StatusOr<std::vector<std::string>> FileWithExtension(const std::string& message,
                                                             int32_t number) const;
  //   NotFound  no such message.
  absl::StatusOr<std::vector<int32_t>> ExtensionsOf(const std::string& message) const;

 private:
  // Copies the file into files_, after all files that it imports.
  void Copy(const google::protobuf::FileDescriptor& file);
  void AddServicesOf(const google::protobuf::FileDescriptor& file);

  std::vector<std::string> services_;
  std::vector<std::string> methods_;
  google::protobuf::DescriptorPool files_;
};

}  // namespace systole

#endif  // SYSTOLE_SERVER_INTROSPECTION_SERVED_SCHEMA_H_
