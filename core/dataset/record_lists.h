// For each condition that feeds use now, the list of the records that meet it. Feeds with the same
// condition share a list. A list takes a bit for each record, and is freed when no feed uses it any
// more. The number of lists is limited, because clients (peers) choose the conditions.
//
// Thread-safe.
#ifndef SYSTOLE_CORE_DATASET_RECORD_LISTS_H_
#define SYSTOLE_CORE_DATASET_RECORD_LISTS_H_

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "core/concurrency/mutex.h"
#include "core/dataset/look_up_memory.h"
#include "core/order/record_list.h"

namespace systole {

class RecordLists {
 public:
  // The most lists in use at once.
  static constexpr size_t kMost = 64;

  // `make_room` is called without a lock when there is no place for a list. It forgets feeds that
  // nobody uses any more, which frees their lists, and returns whether it forgot any feed.
  // `make_room` must be valid during each call of Find().
  explicit RecordLists(std::function<bool()> make_room = nullptr)
      : make_room_(std::move(make_room)) {}

  // The list of the condition whose key is `key`. If no feed uses the list, `make` makes it, and it
  // takes one of the kMost places, for `peer`, until it is freed. If two threads make the list at
  // the same time, one of the two lists is kept. A peer gets a place only while it has fewer lists
  // than places are left. So the first peer gets at most half of the places, the next peer at most
  // half of the places that are then left, and so on.
  //   ResourceExhausted  kMost lists are in use, or the peer has no place left. The message says
  //                      what to do.
  // Also the errors of `make`.
  absl::StatusOr<std::shared_ptr<const RecordList>> Find(
      const std::string& key, const std::string& peer,
      absl::FunctionRef<absl::StatusOr<RecordList>()> make) ABSL_LOCKS_EXCLUDED(mu_);

  // The memory that calls of `make` share.
  LookUpMemory& memory() { return memory_; }

  // The number of lists in use.
  size_t size() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Entry {
    std::string peer;
    std::weak_ptr<const RecordList> list = {};
    bool in_making = false;

    bool in_use() const { return in_making || !list.expired(); }
  };

  // The list of `key` if a feed uses it. Null: there is no list for the key yet, but a place for it
  // was taken.
  absl::StatusOr<std::shared_ptr<const RecordList>> TakePlace(const std::string& key,
                                                              const std::string& peer)
      ABSL_LOCKS_EXCLUDED(mu_);

  const std::function<bool()> make_room_;
  LookUpMemory memory_;
  mutable Mutex mu_;
  std::map<std::string, Entry> lists_ ABSL_GUARDED_BY(mu_);
};

}  // namespace systole

#endif  // SYSTOLE_CORE_DATASET_RECORD_LISTS_H_
