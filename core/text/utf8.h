// Recognises valid UTF-8. Overlong forms, surrogates and numbers above U+10FFFF are not valid.
// protobuf has the same rules for the bytes of a string.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_TEXT_UTF8_H_
#define SYSTOLE_CORE_TEXT_UTF8_H_

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace systole {

// How many bytes the first sequence of `text` has. 0: `text` does not begin with a valid sequence,
// and `code_point` is unspecified. REQUIRES: `text` is not empty.
size_t Utf8SequenceBytes(absl::string_view text, uint32_t& code_point);

bool IsUtf8(absl::string_view text);

}  // namespace systole

#endif  // SYSTOLE_CORE_TEXT_UTF8_H_
