// One place of a step as a card of a contact sheet: its pictures, its values, which record it is.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CLIENT_LOOK_EXAMPLE_CARD_H_
#define SYSTOLE_CLIENT_LOOK_EXAMPLE_CARD_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "client/look/place_kinds.h"
#include "client/look/sheet_outputs.h"
#include "client/step/step.h"

namespace systole {

// More image outputs than these are in the table alone.
inline constexpr int kMaxPicturesOfExample = 4;
// More values of an output than these are left out.
inline constexpr int64_t kMaxShownValues = 32;

// The card as HTML. `slot` counts in `core`. Errors of ImageOutput::Picture().
absl::StatusOr<std::string> ExampleCardHtml(const Step& step, int core, int64_t slot,
                                            const KnownPlace& place,
                                            absl::Span<const SheetOutput> outputs);

}  // namespace systole

#endif  // SYSTOLE_CLIENT_LOOK_EXAMPLE_CARD_H_
