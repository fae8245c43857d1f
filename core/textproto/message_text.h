// Reads protobuf messages from text that a person wrote: textproto or JSON. Parsing is strict. An
// unknown field is an error, and each error says where it is.
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

// Replaces `message` by the content of `text`. `source` names the text in messages, such as a
// file's path.
//   InvalidArgument  "<source>:<line>:<column>: <what is wrong>", lines and columns counted from 1;
//                    all errors that were found, each on a line of its own. An error suggests the
//                    field that was probably meant, or has the possible values.
absl::Status ParseTextproto(absl::string_view text, absl::string_view source,
                            google::protobuf::Message& message);

// Does the same as ParseTextproto() with JSON, by protobuf's JSON mapping. protobuf's JSON parser
// gives no line, so the message quotes the text at the error.
absl::Status ParseJson(absl::string_view text, absl::string_view source,
                       google::protobuf::Message& message);

// ParseJson() for a file that another program wrote. Skips fields that `message` does not have.
absl::Status ParseForeignJson(absl::string_view text, absl::string_view source,
                              google::protobuf::Message& message);

// Reads the file `path` as textproto, or as JSON if its name ends in ".json".
//   NotFound           there is no such file.
//   PermissionDenied   this process may not read the file.
//   InvalidArgument    `path` is not a file, or its text is wrong.
//   ResourceExhausted  the file is larger than kMaxTextBytes. No person writes such a file.
absl::Status LoadMessage(const std::string& path, google::protobuf::Message& message);

inline constexpr int64_t kMaxTextBytes = int64_t{16} << 20;

}  // namespace systole

#endif  // SYSTOLE_CORE_TEXTPROTO_MESSAGE_TEXT_H_
