// Guesses which existing word was meant by a word with a typing error.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_TEXT_DID_YOU_MEAN_H_
#define SYSTOLE_CORE_TEXT_DID_YOU_MEAN_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace systole {

// The end of a message: "; did you mean 'WORD'?" with the word of `known` that is nearest to
// `word`, or "" if none is near. A word is near if at most one in three letters is wrong, missing,
// added or swapped with its neighbour. Upper and lower case count as equal, and so do '-' and '_'.
// If several words are equally near, the first is taken. Words of more than 64 bytes and known
// words after the first 1,000 are not compared, because both may come from a peer or a file.
std::string DidYouMean(absl::string_view word, absl::Span<const std::string> known);

}  // namespace systole

#endif  // SYSTOLE_CORE_TEXT_DID_YOU_MEAN_H_
