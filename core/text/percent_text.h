// Percent-encoded text, as addresses of the web and answers of buckets have it.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_TEXT_PERCENT_TEXT_H_
#define SYSTOLE_CORE_TEXT_PERCENT_TEXT_H_

#include <string>

#include "absl/strings/string_view.h"

namespace systole {

// `encoded` with each code such as "%41" replaced by its byte. A '%' without two hex digits behind
// it stays. The result may hold any bytes.
std::string PercentDecoded(absl::string_view encoded);

}  // namespace systole

#endif  // SYSTOLE_CORE_TEXT_PERCENT_TEXT_H_
