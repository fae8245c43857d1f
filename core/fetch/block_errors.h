// The errors of blocks that did not come from their storage. Each names the source by its base
// name, and gives the byte range of the block.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_FETCH_BLOCK_ERRORS_H_
#define SYSTOLE_CORE_FETCH_BLOCK_ERRORS_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/fetch/block.h"

namespace systole {

// Unavailable: the block's read has brought no bytes for `timeout`.
absl::Status HasNotCome(const BlockRange& range, absl::Duration timeout);

// Unavailable: the block's read has taken the time `taken`, and has brought only `come_bytes` > 0.
absl::Status ComesTooSlowly(const BlockRange& range, absl::Duration taken, int64_t come_bytes);

// Unavailable: no read of the block was begun, because all reads of its storage hang.
absl::Status AllReadsHang(const BlockRange& range, absl::Duration timeout);

// DataLoss: the source has only `read` bytes of the block.
absl::Status EndsTooSoon(const BlockRange& range, size_t read);

}  // namespace systole

#endif  // SYSTOLE_CORE_FETCH_BLOCK_ERRORS_H_
