// The slices that streams of the same plan can share, found by SharedSlice::Key. Some of them are
// held by a stream. The others are *kept*: no stream holds them now, but a stream will come to them
// later. The shelf keeps such slices, up to a limit of bytes and a limit of slices, until a stream
// needs the memory.
//
// Once a limit is reached, no more slices are kept. When a stream needs memory, the slice that was
// kept last is given up first, because streams that are behind come to the older slices sooner. The
// shelf does not know which streams hold a slice. The scheduler calls Keep() when no stream holds
// the slice any more, and Unkeep() when a stream holds it again.
//
// A call costs O(log slices), except TakeUnwanted(). Thread-compatible.
#ifndef SYSTOLE_CORE_ENGINE_SLICE_SHELF_H_
#define SYSTOLE_CORE_ENGINE_SLICE_SHELF_H_

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/engine/shared_slice.h"

namespace systole {

class SliceShelf {
 public:
  // Keeps at most `max_kept` slices, which cost at most `max_kept_bytes` (SharedSlice::cost_bytes).
  SliceShelf(int64_t max_kept_bytes, size_t max_kept)
      : max_kept_bytes_(max_kept_bytes), max_kept_(max_kept) {}
  // Cannot be copied, because entries_ and kept_ refer to each other.
  SliceShelf(const SliceShelf&) = delete;
  SliceShelf& operator=(const SliceShelf&) = delete;

  // From now on Find() gives the slice, unless another slice on the shelf has the same key.
  void Add(const SharedSlicePtr& slice);
  // The slice with this key; null if the shelf has none.
  SharedSlicePtr Find(const SharedSlice::Key& key) const;
  // Whether Find() gives exactly this slice.
  bool Has(const SharedSlice& slice) const;
  // From now on Find() does not give the slice, and the slice is not kept.
  void Remove(const SharedSlice& slice);

  // Whether a slice of this cost can be kept now.
  bool HasRoom(int64_t cost_bytes) const;
  // Keeps a slice that no stream holds any more. REQUIRES: Has(slice), HasRoom(slice.cost_bytes()),
  // and the slice is not kept yet.
  void Keep(const SharedSlice& slice);
  // A stream holds the slice again. Nothing happens if the slice is not kept.
  void Unkeep(const SharedSlice& slice);

  // The bytes and the number of kept slices.
  int64_t kept_bytes() const { return kept_bytes_; }
  size_t kept() const { return kept_.size(); }
  // Takes the slice that was kept last off the shelf; null if none is kept.
  SharedSlicePtr TakeLast();
  // Takes all kept slices that are not `wanted` off the shelf, oldest first.
  std::vector<SharedSlicePtr> TakeUnwanted(absl::FunctionRef<bool(const SharedSlice&)> wanted);

 private:
  struct Entry;
  using Entries = std::map<SharedSlice::Key, Entry>;
  using Kept = std::list<Entries::iterator>;
  struct Entry {
    SharedSlicePtr slice;
    std::optional<Kept::iterator> kept;  // The slice's place in kept_, if it is kept.
  };

  void Unkeep(Entry& entry);
  SharedSlicePtr Take(Entries::iterator entry);

  const int64_t max_kept_bytes_;
  const size_t max_kept_;
  Entries entries_;
  Kept kept_;  // Oldest first.
  int64_t kept_bytes_ = 0;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_ENGINE_SLICE_SHELF_H_
