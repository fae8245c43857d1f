// The changes of rows that consecutive operations make (ops/row_change.h), waiting to be made
// together: a few rows at a time, which stay in the first-level cache from the first change to the
// last. An image of 224 x 224 floats is larger than a second-level cache, so a pass over it for
// each operation would wait for memory.
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

  // Makes the changes in the order in which they were added, and forgets them. `value` is the one
  // for which they were added. If the thread is interrupted, some values stay as they are.
  void Make(Value& value);

  // Does so for any value of floats, and calls `use` with the changed values, which begin at number
  // `first`, as soon as they are there.
  void Make(Value& value,
            const std::function<void(size_t first, absl::Span<const float> values)>& use);

 private:
  std::vector<RowChange> changes_;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_OPERATIONS_ROW_CHANGES_H_
