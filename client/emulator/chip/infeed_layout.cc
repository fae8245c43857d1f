#include "client/emulator/chip/infeed_layout.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "client/emulator/array/divide_up.h"
#include "core/status/check.h"

namespace systole::emulator {
namespace {

constexpr InfeedLayout kLayouts[] = {InfeedLayout::kNhwc, InfeedLayout::kHwcn,
                                     InfeedLayout::kNhwcTiled, InfeedLayout::kHwcnTiled};
constexpr int64_t kTileRows = 8, kTileColumns = 128;

}  // namespace

absl::string_view InfeedLayoutName(InfeedLayout layout) {
  switch (layout) {
    case InfeedLayout::kNhwc:
      return "nhwc";
    case InfeedLayout::kHwcn:
      return "hwcn";
    case InfeedLayout::kNhwcTiled:
      return "nhwc-tiled";
    case InfeedLayout::kHwcnTiled:
      return "hwcn-tiled";
  }
  SYSTOLE_CHECK(false);
  return "";
}

absl::StatusOr<InfeedLayout> ParseInfeedLayout(absl::string_view name) {
  for (const InfeedLayout layout : kLayouts) {
    if (name == InfeedLayoutName(layout)) return layout;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("there is no layout '", name, "'; want nhwc, hwcn, nhwc-tiled or hwcn-tiled"));
}

InfeedBytes CountInfeedBytes(absl::Span<const int64_t> example, int64_t batch,
                             int64_t element_bytes, InfeedLayout layout) {
  std::vector<int64_t> sizes(example.begin(), example.end());
  const bool batch_first = layout == InfeedLayout::kNhwc || layout == InfeedLayout::kNhwcTiled;
  sizes.insert(batch_first ? sizes.begin() : sizes.end(), batch);
  const bool tiled = layout == InfeedLayout::kNhwcTiled || layout == InfeedLayout::kHwcnTiled;
  InfeedBytes bytes = {.useful = static_cast<double>(element_bytes),
                       .padded = static_cast<double>(element_bytes)};
  for (size_t i = 0; i < sizes.size(); ++i) {
    SYSTOLE_CHECK(sizes[i] >= 1);
    const size_t from_end = sizes.size() - i;
    const int64_t multiple = !tiled          ? 1
                             : from_end == 1 ? kTileColumns
                             : from_end == 2 ? kTileRows
                                             : 1;
    bytes.useful *= static_cast<double>(sizes[i]);
    bytes.padded *= static_cast<double>(RoundUp(sizes[i], multiple));
  }
  return bytes;
}

}  // namespace systole::emulator
