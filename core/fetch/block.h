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

// The bytes [offset, offset + size) of a source. A value type. A range of no bytes is read to make
// its source load something (RecordSource::unread_index()). Such a range is never kept.
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
  // OK, or why the block could not be read:
  //   DataLoss     the source ends before the block does.
  //   Unavailable  also if the block has not come in time, or if its storage hangs.
  //   ResourceExhausted  also if the system gives no thread.
  // All other errors are those of ByteSource::ReadAt() and CheckUnchanged(). Each names the source
  // by its base name, or not at all.
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

// While a task holds a BlockPtr, the block is in use. The block stays in memory, and all tasks that
// need it get this same block.
using BlockPtr = std::shared_ptr<const Block>;

// The part of one block that a task needs.
struct BlockUse {
  BlockRange range;
  // How many records of the block this use reads, and how many records of the block a whole pass of
  // the feed reads. These two numbers show when the feed has read all those records.
  int64_t records = 1;
  int64_t records_in_block = 1;
};

// The blocks that a task needs before it can begin.
struct BlockWant {
  // A block may be in more than one use.
  std::vector<BlockUse> uses = {};
  // The feed that reads. A feed reads each of its records once in each pass.
  uint64_t feed = 0;
  // The dataset that is read. It gets only a part of the requests, because its storage may hang.
  uint64_t dataset = 0;
  // Keeps the sources alive. The table holds `owner` until all reads that this want began have
  // ended. If a read hangs, the table may hold `owner` longer than the ticket lives.
  std::shared_ptr<const void> owner = nullptr;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_FETCH_BLOCK_H_
