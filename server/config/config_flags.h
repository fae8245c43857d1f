// The server's options: the fields of v1::ServerConfig that are marked as flags. Their table is
// proto/systole/v1/config.proto. This file checks the options, sets them from text, lets the
// command line override a config file, and adds the defaults.
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

// A row of the table.
struct ConfigFlag {
  std::string name;   // "--drain-timeout"
  std::string field;  // In a config file: "drain_timeout", "tls.certificate".
  // Help, bounds, default and so on. Lives as long as the program.
  const v1::Flag* about = nullptr;
  // Where the value is: `inside` is null if `value` is a field of ServerConfig itself.
  // Otherwise `inside` is the field whose message holds `value`.
  const google::protobuf::FieldDescriptor* inside = nullptr;
  const google::protobuf::FieldDescriptor* value = nullptr;

  // A switch takes no value: --insecure and --no-insecure stand for "true" and "false".
  bool is_switch() const {
    return value->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_BOOL;
  }
  // A list may be given several times, and each value is added. For any other flag the last value
  // counts.
  bool is_list() const { return value->is_repeated(); }
};

// All flags, in the order of the .proto.
const std::vector<ConfigFlag>& ConfigFlags();

// OK if `text` is a value of `flag`. Otherwise InvalidArgument. The message says what was seen and
// what is wanted. It does not name the flag or field, which the caller knows.
absl::Status CheckFlagText(const ConfigFlag& flag, absl::string_view text);

// Sets the field. REQUIRES: CheckFlagText(flag, text) is OK.
void SetFlag(const ConfigFlag& flag, absl::string_view text, v1::ServerConfig& config);

// Sets in `config` each field that is set in `flags`. Adds the datasets of `flags`. If `config`
// already has a dataset of the same name, adds the shards to that dataset.
void Override(const v1::ServerConfig& flags, v1::ServerConfig& config);

// A copy of `config`, in which each field that was left out has its default.
//   InvalidArgument  a field's value is out of bounds, or does not fit the field's type. The
//                    message has the field's name.
absl::StatusOr<v1::ServerConfig> CompleteConfig(v1::ServerConfig config);

// The value of a TIME or SIZE field. REQUIRES: `text` is from a CompleteConfig().
absl::Duration TimeOf(absl::string_view text);
int64_t SizeOf(absl::string_view text);

}  // namespace systole

#endif  // SYSTOLE_SERVER_CONFIG_CONFIG_FLAGS_H_
