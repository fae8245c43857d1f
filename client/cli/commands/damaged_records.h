// The damaged records that a server reports for a dataset, as `datasets` and `status` show them.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CLIENT_CLI_COMMANDS_DAMAGED_RECORDS_H_
#define SYSTOLE_CLIENT_CLI_COMMANDS_DAMAGED_RECORDS_H_

#include <cstdint>
#include <ostream>
#include <string>

#include "absl/strings/string_view.h"
#include "core/json/json_writer.h"
#include "google/protobuf/repeated_ptr_field.h"
#include "systole/v1/service.pb.h"

namespace systole {

// Prints a line for each record, indented by four spaces.
void PrintDamagedRecords(const google::protobuf::RepeatedPtrField<v1::DamagedRecord>& records,
                         std::ostream& out);

// "1 damaged stretch was found while indexing, of 1 record or more".
std::string FoundWhileIndexing(int64_t num_damaged);

// The heading of `num_records` lines: "met while reading: 1 example masked; the damaged record:".
std::string MetWhileReading(int64_t masked_examples, int num_records);

// Adds the field `key`, a list, to the JSON object that is open.
void AppendDamagedRecords(absl::string_view key,
                          const google::protobuf::RepeatedPtrField<v1::DamagedRecord>& records,
                          JsonWriter& json);

}  // namespace systole

#endif  // SYSTOLE_CLIENT_CLI_COMMANDS_DAMAGED_RECORDS_H_
