// Collects the changes of rows (ops/row_change.h) that consecutive operations make, and makes them
// together. It takes a few rows at a time, which stay in the first-level cache from the first
// change to the last. An image of 224 x 224 floats is larger than a second-level cache, so a pass
// over it for each operation would wait for memory.
//
// Thread-compatible.
#ifndef SYSTOLE_CORE_OPERATIONS_ROW_CHANGES_H_
#define SYSTOLE_CORE_OPERATIONS_ROW_CHANGES_H_

#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "core/operations/ops/row_change.h"
#include "core/operations/ops/value.h"

namespace systole {

class RowChanges {
 public:
  void Add(RowChange change) { changes_.push_back(std::move(change)); }

  // Makes the changes in the order in which they were added, and forgets them. `value` must be the
  // one for which they were added. If the thread is interrupted, some floats stay as they are.
  void Make(Value& value);

  // Does the same, but `value` may be any value of floats. As soon as some floats are changed,
  // calls `use` with them and the number of the first one.
  void Make(Value& value,
            const std::function<void(size_t first, absl::Span<const float> values)>& use);

 private:
  std::vector<RowChange> changes_;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_OPERATIONS_ROW_CHANGES_H_
