// The damaged records that a server reports for a dataset, as `datasets` and `status` show them.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CLIENT_CLI_COMMANDS_DAMAGED_RECORDS_H_
#define SYSTOLE_CLIENT_CLI_COMMANDS_DAMAGED_RECORDS_H_

#include <ostream>

#include "core/json/json_writer.h"
#include "google/protobuf/repeated_ptr_field.h"
#include "systole/v1/service.pb.h"

namespace systole {

// Prints a line for each record, indented by four spaces.
void PrintDamagedRecords(const google::protobuf::RepeatedPtrField<v1::DamagedRecord>& records,
                         std::ostream& out);

// Adds the field `damaged_records`, a list, to the object that is open.
void AppendDamagedRecords(const google::protobuf::RepeatedPtrField<v1::DamagedRecord>& records,
                          JsonWriter& json);

}  // namespace systole

#endif  // SYSTOLE_CLIENT_CLI_COMMANDS_DAMAGED_RECORDS_H_
