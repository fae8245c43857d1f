// How a core's slice of a batch lies in the accelerator's memory. The layout decides how many bytes
// the host must transfer.
//
//   nhwc, hwcn              no padding; examples are outermost in nhwc, innermost in hwcn
//   nhwc-tiled, hwcn-tiled  the last two dimensions are cut into tiles of 8 x 128 and padded to
//                           whole tiles. This is XLA's T(8,128). For bfloat16 it is T(8,128)(2,1):
//                           two neighbouring rows share a word, which changes no size
//   padded bytes = leading dimensions * roundup(d2, 8) * roundup(d1, 128) * bytes of an element
// nhwc-tiled pads 3 channels to 128. To avoid this, host pipelines transpose to hwcn-tiled, which
// pads 3 channels only to 8. The other tiled dimension of hwcn-tiled is the batch, and a batch of
// 128 needs no padding.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CLIENT_EMULATOR_CHIP_INFEED_LAYOUT_H_
#define SYSTOLE_CLIENT_EMULATOR_CHIP_INFEED_LAYOUT_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace systole::emulator {

enum class InfeedLayout { kNhwc, kHwcn, kNhwcTiled, kHwcnTiled };

// "nhwc", "hwcn", "nhwc-tiled" or "hwcn-tiled".
absl::string_view InfeedLayoutName(InfeedLayout layout);
// InvalidArgument if `name` is not one of the four names. The message lists them.
absl::StatusOr<InfeedLayout> ParseInfeedLayout(absl::string_view name);

struct InfeedBytes {
  double useful = 0;
  double padded = 0;
};

// The bytes of `batch` examples of shape `example`, which may have any rank. Numbers up to 2^53 are
// exact. REQUIRES: every size >= 1.
InfeedBytes CountInfeedBytes(absl::Span<const int64_t> example, int64_t batch,
                             int64_t element_bytes, InfeedLayout layout);

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_CHIP_INFEED_LAYOUT_H_
