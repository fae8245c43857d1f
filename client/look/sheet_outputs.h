// The table of a contact sheet: a row for each output of the feed, with a summary of its values.
//
// Thread-compatible.
#ifndef SYSTOLE_CLIENT_LOOK_SHEET_OUTPUTS_H_
#define SYSTOLE_CLIENT_LOOK_SHEET_OUTPUTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "client/look/tensor_summary.h"
#include "client/step/step.h"
#include "core/picture/image_output.h"
#include "systole/v1/feed.pb.h"

namespace systole {

struct SheetOutput {
  // The spec's output; nullptr for `valid` and for lengths, which a spec does not list.
  const v1::Output* output = nullptr;
  int index = 0;  // The tensor's index in the steps' layout.
  std::string name;
  std::string mixed_by;  // "mixup or cutmix". Empty: this output is not mixed.
  TensorSummary summary;
  std::optional<ImageOutput> image;
};

// The outputs of `spec` in its order, then `valid`. The summaries of `valid` and of lengths count
// all places. The other summaries count only the valid examples of `steps`. Borrows `spec`.
// REQUIRES: at least one step, and all steps of one layout.
//   InvalidArgument  the steps lack an output of the spec, or an output does not fit its
//                    transforms.
absl::StatusOr<std::vector<SheetOutput>> SheetOutputs(const v1::FeedSpec& spec,
                                                      absl::Span<const Step> steps);

// A byte for each place of the step on `core`: not 0 if the place holds an example.
absl::Span<const uint8_t> ValidPlaces(const Step& step, int core);

// The table, and below it how pictures were made. REQUIRES: ImageOutput::Widen() was called.
std::string OutputTableHtml(absl::Span<const SheetOutput> outputs, const SliceLayout& layout);

}  // namespace systole

#endif  // SYSTOLE_CLIENT_LOOK_SHEET_OUTPUTS_H_
