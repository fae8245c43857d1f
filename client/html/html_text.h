// Text for an HTML page.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CLIENT_HTML_HTML_TEXT_H_
#define SYSTOLE_CLIENT_HTML_HTML_TEXT_H_

#include <string>

#include "absl/strings/string_view.h"

namespace systole {

// `text` with & < > " ' as entities: safe between tags and inside a quoted attribute.
std::string EscapeHtml(absl::string_view text);

}  // namespace systole

#endif  // SYSTOLE_CLIENT_HTML_HTML_TEXT_H_
