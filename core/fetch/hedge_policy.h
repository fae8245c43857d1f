// Decides when a read is so slow that a second read of its block, a hedge, begins.
//
// Even a storage service that answers most requests in 30 ms takes seconds for a few requests. A
// second request usually goes to another machine of the service, which answers at once. A read is
// slow if it has taken at least 100 ms, and more than twice the 95th percentile of recent reads of
// about its size. Hedges are at most a twentieth of all reads, even if all storage is slow.
//
// Thread-compatible.
#ifndef SYSTOLE_CORE_FETCH_HEDGE_POLICY_H_
#define SYSTOLE_CORE_FETCH_HEDGE_POLICY_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "absl/time/time.h"

namespace systole {

class HedgePolicy {
 public:
  static constexpr size_t kRemembered = 128;
  static constexpr size_t kFewest = 16;
  static constexpr absl::Duration kLeast = absl::Milliseconds(100);
  static constexpr int64_t kReadsForEachHedge = 20;

  // A read of `size` bytes has succeeded.
  void Add(uint64_t size, absl::Duration took);

  // Whether a read of `size` bytes that has taken this long is slow. No read is slow before kFewest
  // reads of about its size are known.
  bool IsSlow(uint64_t size, absl::Duration taken) const;

  // Whether hedges would be at most a twentieth of all reads after one more hedge. Call MayHedge()
  // right before a hedge begins, and CountHedge() after that.
  bool MayHedge() const { return (hedges_ + 1) * kReadsForEachHedge <= reads_; }
  void CountHedge() { ++hedges_; }

 private:
  // The last reads whose size has the same highest bit.
  struct Recent {
    std::vector<absl::Duration> took;
    size_t next = 0;  // The index in `took` of the time that is replaced next.
  };

  std::map<int, Recent> by_size_;
  int64_t reads_ = 0;
  int64_t hedges_ = 0;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_FETCH_HEDGE_POLICY_H_
