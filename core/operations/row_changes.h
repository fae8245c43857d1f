// Collects the changes of rows (ops/row_change.h) that consecutive operations make, and makes them
// together. All changes are made to a few rows before the next rows are touched, so these rows stay
// in the first-level cache. If each operation instead passed over the whole image, it would wait
// for memory, because an image of 224 x 224 floats may be larger than a second-level cache.
//
// Thread-compatible.
#ifndef SYSTOLE_CORE_OPERATIONS_ROW_CHANGES_H_
#define SYSTOLE_CORE_OPERATIONS_ROW_CHANGES_H_

#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "core/interrupt/lap_times.h"
#include "core/operations/ops/row_change.h"
#include "core/operations/ops/value.h"

namespace systole {

class RowChanges {
 public:
  // The time of the change is counted to `part` (core/interrupt/lap_times.h).
  void Add(RowChange change, int part = LapTimes::kNoPart) {
    changes_.push_back({.make = std::move(change), .part = part});
  }

  // Makes the changes in the order in which they were added, and forgets them. If there are
  // changes, `value` must be the value for which they were added. If the thread is interrupted,
  // some floats stay unchanged.
  void Make(Value& value);

  // Does what the other Make() does, and calls `use` for a part of the floats as soon as all
  // changes of this part are made. `first` is the index of the part's first float. Without
  // changes, too, `use` gets all floats. REQUIRES: `value` is of floats; any shape will do.
  void Make(Value& value,
            const std::function<void(size_t first, absl::Span<const float> values)>& use);

 private:
  struct Change {
    RowChange make;
    int part;
  };
  std::vector<Change> changes_;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_OPERATIONS_ROW_CHANGES_H_
