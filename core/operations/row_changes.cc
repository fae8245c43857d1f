#include "core/operations/row_changes.h"

#include <algorithm>

#include "core/interrupt/interrupt.h"

namespace systole {
namespace {

// 16 KiB: half of a first-level cache. At least one row is taken, however long it is.
constexpr size_t kFloatsTogether = 4096;

}  // namespace

void RowChanges::Make(Value& value) {
  if (changes_.empty()) return;
  Make(value, [](size_t, absl::Span<const float>) {});
}

void RowChanges::Make(
    Value& value, const std::function<void(size_t first, absl::Span<const float> values)>& use) {
  const bool is_image = value.type.shape.size() == 3;
  const auto row = static_cast<size_t>(is_image ? value.width() * value.channels() : 1);
  const size_t together = row * std::max<size_t>(1, kFloatsTogether / std::max<size_t>(1, row));
  const absl::Span<float> all = absl::MakeSpan(value.floats);
  for (size_t first = 0; first < all.size() && !InterruptRequested(); first += together) {
    const absl::Span<float> rows = all.subspan(first, together);
    for (const Change& change : changes_) {
      change.make(rows);
      NoteLap(change.part);
    }
    use(first, rows);
  }
  changes_.clear();
}

}  // namespace systole
