// A block: a stretch of a source's bytes, which is read once and shared by all tasks that need it.
#ifndef SYSTOLE_CORE_FETCH_BLOCK_H_
#define SYSTOLE_CORE_FETCH_BLOCK_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/fetch/block_memory.h"
#include "core/storage/byte_source.h"

namespace systole {

// The bytes [offset, offset + size) of a source. A value type. A range may be empty. The read of an
// empty range only makes its source load an index (RecordSource::unread_index()). A block of such a
// range is never kept.
struct BlockRange {
  const ByteSource* source = nullptr;
  uint64_t offset = 0;
  uint64_t size = 0;

  friend bool operator==(const BlockRange&, const BlockRange&) = default;

  template <typename H>
  friend H AbslHashValue(H h, const BlockRange& range) {
    return H::combine(std::move(h), range.source, range.offset, range.size);
  }
};

// Thread-compatible: immutable.
class Block {
 public:
  // The range's bytes begin at kBlockBegin of the buffer.
  Block(const BlockRange& range, BlockBuffer buffer) : range_(range), buffer_(std::move(buffer)) {}
  // A block that could not be read. REQUIRES: !status.ok().
  Block(const BlockRange& range, absl::Status status) : range_(range), status_(std::move(status)) {}

  const BlockRange& range() const { return range_; }
  // OK, or an error of ByteSource::ReadAt() or CheckUnchanged(), or:
  //   DataLoss           the source ends before the block does.
  //   Unavailable        the block has not come in time, or its storage hangs.
  //   ResourceExhausted  the system gives no thread or no memory.
  // Each error names the source by its base name, or does not name the source.
  const absl::Status& status() const { return status_; }
  // All bytes of the range; none if status() is not OK. Valid as long as the block.
  absl::string_view bytes() const {
    if (!status_.ok()) return {};
    return {reinterpret_cast<const char*>(buffer_.data()) + kBlockBegin,
            static_cast<size_t>(range_.size)};
  }

 private:
  const BlockRange range_;
  const absl::Status status_;
  const BlockBuffer buffer_;
};

// While a task holds a BlockPtr, the block is in use: it stays in memory, and other tasks that need
// this range get the same block.
using BlockPtr = std::shared_ptr<const Block>;

// The part of one block that a task needs.
struct BlockUse {
  BlockRange range;
  // How many records of the block this use reads, and how many records of the block a whole pass of
  // the feed reads. From these numbers KeptOrder finds out when the feed needs the block no more.
  int64_t records = 1;
  int64_t records_in_block = 1;
};

// The blocks that a task needs before it can begin.
struct BlockWant {
  // A block may be in more than one use.
  std::vector<BlockUse> uses = {};
  // The feed that reads. A feed reads each of its records once in each pass.
  uint64_t feed = 0;
  // The dataset that is read. Each dataset gets only a part of the requests, because a dataset's
  // storage may hang (DatasetParts).
  uint64_t dataset = 0;
  // Keeps the sources alive. The BlockTable holds `owner` until all reads that this want began have
  // ended. If a read hangs, that may be after the want's BlockTicket is destroyed.
  std::shared_ptr<const void> owner = nullptr;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_FETCH_BLOCK_H_
