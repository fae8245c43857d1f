// Typing errors: which of the words that exist was meant.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_STATUS_DID_YOU_MEAN_H_
#define SYSTOLE_CORE_STATUS_DID_YOU_MEAN_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace systole {

// "; did you mean 'WORD'?" for the word of `known` that is nearest to `word`, or "" if none is near
// enough to be a typing error of it: a message ends with it. Near is one letter wrong, missing, too
// many or swapped with its neighbour for each three of the word; upper and lower case, '-' and '_'
// count as equal. Of words equally near it is the first. Words of more than 64 bytes, and what
// follows the first 1,000 known ones, are not looked at: both may come from a peer or a file.
std::string DidYouMean(absl::string_view word, absl::Span<const std::string> known);

}  // namespace systole

#endif  // SYSTOLE_CORE_STATUS_DID_YOU_MEAN_H_
