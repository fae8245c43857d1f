// The server's options. Each field of v1::ServerConfig (proto/systole/v1/config.proto) that has a
// `flag` option can be set in a config file and on the command line. The functions below check the
// values, set them from text, let the command line override a config file, and add the defaults.
//
// Thread-safe: no state.
#ifndef SYSTOLE_SERVER_CONFIG_CONFIG_FLAGS_H_
#define SYSTOLE_SERVER_CONFIG_CONFIG_FLAGS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "google/protobuf/descriptor.h"
#include "systole/v1/config.pb.h"

namespace systole {

// A field of v1::ServerConfig that has a `flag` option.
struct ConfigFlag {
  std::string name;   // "--drain-timeout"
  std::string field;  // In a config file: "drain_timeout", "tls.certificate".
  // Help, bounds, default and so on. Lives as long as the program.
  const v1::Flag* about = nullptr;
  // `value` is the field that the flag sets. `inside` is null if `value` is a field of ServerConfig
  // itself. Otherwise `inside` is the field of ServerConfig whose message has the field `value`.
  const google::protobuf::FieldDescriptor* inside = nullptr;
  const google::protobuf::FieldDescriptor* value = nullptr;

  // A switch takes no value: --insecure and --no-insecure stand for "true" and "false".
  bool is_switch() const {
    return value->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_BOOL;
  }
  // The flag of a list may be given several times, and each time adds a value. If any other flag is
  // given several times, the last value counts.
  bool is_list() const { return value->is_repeated(); }
};

// All flags, in the order of the .proto.
const std::vector<ConfigFlag>& ConfigFlags();

// OK if `text` is a valid value of `flag`. Otherwise InvalidArgument. The message has `text`,
// without secrets, and says what is valid. The caller must add the name of the flag or field.
absl::Status CheckFlagText(const ConfigFlag& flag, absl::string_view text);

// Sets the flag's field in `config`. For a list, adds a value. REQUIRES: CheckFlagText(flag, text)
// is OK.
void SetFlag(const ConfigFlag& flag, absl::string_view text, v1::ServerConfig& config);

// Sets in `config` each field that is set in `flags`, and adds the datasets of `flags` to those of
// `config`. If both have a dataset of the same name, the result has its shards from both.
void Override(const v1::ServerConfig& flags, v1::ServerConfig& config);

// Returns `config` with the defaults of all fields that are not set.
//   InvalidArgument  a field's value is out of bounds, or does not fit the field's type. The
//                    message has the field's name.
absl::StatusOr<v1::ServerConfig> CompleteConfig(v1::ServerConfig config);

// The value of a field whose text is a time or a size. REQUIRES: `text` is the field's text in a
// config that CompleteConfig() returned.
absl::Duration TimeOf(absl::string_view text);
int64_t SizeOf(absl::string_view text);

}  // namespace systole

#endif  // SYSTOLE_SERVER_CONFIG_CONFIG_FLAGS_H_
