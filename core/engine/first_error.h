// Keeps one of the errors of several examples: the error of the lowest slot, for any order in which
// the errors come.
//
// Thread-compatible.
#ifndef SYSTOLE_CORE_ENGINE_FIRST_ERROR_H_
#define SYSTOLE_CORE_ENGINE_FIRST_ERROR_H_

#include <cstdint>
#include <utility>

#include "absl/status/status.h"

namespace systole {

class FirstError {
 public:
  // Adding OK changes nothing. Of two errors of one slot, the one that was added first stays.
  void Add(int64_t slot, absl::Status error) {
    if (error.ok() || (!status_.ok() && slot_ <= slot)) return;
    slot_ = slot;
    status_ = std::move(error);
  }

  // OK if no error was added.
  const absl::Status& status() const { return status_; }
  // The slot of status(), if status() is an error.
  int64_t slot() const { return slot_; }

 private:
  int64_t slot_ = 0;
  absl::Status status_;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_ENGINE_FIRST_ERROR_H_
