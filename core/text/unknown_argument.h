// The message for an argument that the program does not know, most likely a typing error.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_TEXT_UNKNOWN_ARGUMENT_H_
#define SYSTOLE_CORE_TEXT_UNKNOWN_ARGUMENT_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace systole {

// "systole feed: there is no option '--sever'; `systole feed --help` lists them; did you mean
// '--server'?" `program` is "systole feed". `argument` is the text that the user gave, including a
// value after '='. `options` are the options that exist, such as "--server".
std::string UnknownArgumentText(absl::string_view program, absl::string_view argument,
                                absl::Span<const std::string> options);

}  // namespace systole

#endif  // SYSTOLE_CORE_TEXT_UNKNOWN_ARGUMENT_H_
