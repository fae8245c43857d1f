// The outputs of a feed as a contact sheet shows them: a row of the table for each, with what its
// values are like.
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
#include "client/look/image_output.h"
#include "client/look/tensor_summary.h"
#include "client/step/step.h"
#include "systole/v1/feed.pb.h"

namespace systole {

struct SheetOutput {
  // Of the spec; nullptr: the tensor `valid`, which is in no spec.
  const v1::Output* output = nullptr;
  int index = 0;  // Of the tensor in the steps' layout.
  std::string name;
  std::string mixed_by;  // "mixup or cutmix"; empty: the feed does not mix it.
  TensorSummary summary;
  std::optional<ImageOutput> image;
};

// The outputs of `spec` in its order, then `valid`. Their summaries hold the valid examples of
// `steps`; that of `valid` holds all places. Borrows `spec`. REQUIRES: a step; all of one layout.
//   InvalidArgument  the steps lack an output of the spec, or it does not fit its transforms.
absl::StatusOr<std::vector<SheetOutput>> SheetOutputs(const v1::FeedSpec& spec,
                                                      absl::Span<const Step> steps);

// Which places of the step hold an example: a byte for each, not 0 if there is one.
absl::Span<const uint8_t> ValidPlaces(const Step& step, int core);

// The table, and below it how images were made. Images must have been widened.
std::string OutputTableHtml(absl::Span<const SheetOutput> outputs, const SliceLayout& layout);

}  // namespace systole

#endif  // SYSTOLE_CLIENT_LOOK_SHEET_OUTPUTS_H_
