// One place of a step as a card of a contact sheet. The card has the place's pictures, values and
// record.
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

// The most pictures that an example shows. Further image outputs appear only in the table.
inline constexpr int kMaxPicturesOfExample = 4;
// The most values of an output that are shown. Further values are left out.
inline constexpr int64_t kMaxShownValues = 32;

// The card as HTML. `slot` is the place within `core`. Errors of ImageOutput::Picture().
absl::StatusOr<std::string> ExampleCardHtml(const Step& step, int core, int64_t slot,
                                            const KnownPlace& place,
                                            absl::Span<const SheetOutput> outputs);

}  // namespace systole

#endif  // SYSTOLE_CLIENT_LOOK_EXAMPLE_CARD_H_
