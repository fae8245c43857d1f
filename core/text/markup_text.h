// Text for HTML and XML.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_TEXT_MARKUP_TEXT_H_
#define SYSTOLE_CORE_TEXT_MARKUP_TEXT_H_

#include <string>

#include "absl/strings/string_view.h"

namespace systole {

// `text` with & < > " ' as entities: safe between tags and inside a quoted attribute.
std::string EscapeMarkup(absl::string_view text);

}  // namespace systole

#endif  // SYSTOLE_CORE_TEXT_MARKUP_TEXT_H_
