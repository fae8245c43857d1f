// The running streams of a server, as `status` shows them.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CLIENT_CLI_COMMANDS_STREAM_TABLE_H_
#define SYSTOLE_CLIENT_CLI_COMMANDS_STREAM_TABLE_H_

#include <ostream>

#include "core/json/json_writer.h"
#include "systole/v1/service.pb.h"

namespace systole {

// Prints a heading and, below it, a line for each stream of `now`, indented by two spaces. Prints
// nothing if there is no stream. A stream's rates are averages since `before`, an earlier answer of
// the same server. If `before` is null or does not have the stream, the rates are averages since
// the stream was opened.
void PrintStreams(const v1::ServerStatusResponse& now, const v1::ServerStatusResponse* before,
                  std::ostream& out);

// Adds the fields `streams` and `streams_left_out` to the JSON object that is open.
void AppendStreams(const v1::ServerStatusResponse& now, const v1::ServerStatusResponse* before,
                   JsonWriter& json);

}  // namespace systole

#endif  // SYSTOLE_CLIENT_CLI_COMMANDS_STREAM_TABLE_H_
