// Reads protobuf messages from text that a person wrote: textproto or JSON. An unknown field is an
// error, except in ParseForeignJson().
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_TEXTPROTO_MESSAGE_TEXT_H_
#define SYSTOLE_CORE_TEXTPROTO_MESSAGE_TEXT_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/message.h"

namespace systole {

// Replaces `message` by the content of `text`. `source` names the text in errors, such as a file's
// path.
//   InvalidArgument    the text is wrong. The status has a line for each of the first 20 errors:
//                      "<source>:<line>:<column>: <what is wrong>". Lines and columns are counted
//                      from 1; they are left out if the error is about the whole text. For an
//                      unknown field the error suggests the field that was probably meant, or lists
//                      the fields. For an unknown value of an enum it lists the possible values.
//   ResourceExhausted  the text is longer than kMaxTextBytes.
absl::Status ParseTextproto(absl::string_view text, absl::string_view source,
                            google::protobuf::Message& message);

// Like ParseTextproto(), for JSON in protobuf's JSON mapping. protobuf's JSON parser gives no line,
// so the error quotes the text at which parsing failed.
absl::Status ParseJson(absl::string_view text, absl::string_view source,
                       google::protobuf::Message& message);

// ParseJson() for a file that another program wrote. Skips fields that `message` does not have.
absl::Status ParseForeignJson(absl::string_view text, absl::string_view source,
                              google::protobuf::Message& message);

// Reads the file `path` as textproto, or as JSON if its name ends in ".json".
//   NotFound           there is no such file.
//   PermissionDenied   this process may not read the file.
//   InvalidArgument    `path` is not a file, or its text is wrong.
//   ResourceExhausted  the file is larger than kMaxTextBytes.
absl::Status LoadMessage(const std::string& path, google::protobuf::Message& message);

inline constexpr int64_t kMaxTextBytes = int64_t{16} << 20;

}  // namespace systole

#endif  // SYSTOLE_CORE_TEXTPROTO_MESSAGE_TEXT_H_
