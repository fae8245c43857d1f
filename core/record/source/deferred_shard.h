// A shard that is opened only when its records are first read. Before that, only its ShardFacts
// are known. Opening a shard on a server takes some requests, so opening all of 100,000 shards at
// the start would take long.
//
//   facts + the file in its state --> DeferredShard --first read--> ShardFormat::open() --> records
//
// If the shard is read ahead, the threads that read blocks (core/fetch) open it: they read
// unread_index() before the shard's first records. Otherwise the first read of a record opens the
// shard, and waits for the storage. If opening fails, the next read tries again. The opened shard
// stays in memory while this object exists.
#ifndef SYSTOLE_CORE_RECORD_SOURCE_DEFERRED_SHARD_H_
#define SYSTOLE_CORE_RECORD_SOURCE_DEFERRED_SHARD_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/concurrency/mutex.h"
#include "core/example/example_format.h"
#include "core/memory/aligned_buffer.h"
#include "core/record/source/record_index.h"
#include "core/record/source/record_source.h"
#include "core/record/source/shard_facts.h"
#include "core/storage/byte_source.h"

namespace systole {

// Thread-safe.
class DeferredShard final : public RecordSource {
 public:
  // Opens the shard of the given file. Called without a lock, perhaps by several threads at a time.
  // Only the first opened shard is kept.
  using Open = std::function<absl::StatusOr<std::unique_ptr<RecordSource>>(
      std::unique_ptr<ByteSource> file)>;

  // REQUIRES: `file` is in the state of `facts`, and file->may_wait().
  DeferredShard(std::unique_ptr<ByteSource> file, ShardFacts facts, const ExampleFormat& examples,
                Open open);
  ~DeferredShard() override;

  absl::string_view path() const override { return file_->name(); }
  uint64_t file_bytes() const override { return facts_.bytes; }
  uint64_t size_bytes() const override { return facts_.bytes; }
  const std::string& note() const override;
  const ExampleFormat& examples() const override { return examples_; }
  int64_t num_records() const override { return facts_.records; }
  RecordSpan span(int64_t record) const override;
  const ByteSource* far_bytes() const override { return file_.get(); }
  const ByteSource* unread_index() const override;
  PayloadRange payload_bytes() const override { return facts_.payload; }
  uint64_t content_hash() const override { return facts_.content_hash; }
  std::optional<ShardFacts> facts() const override { return facts_; }
  int64_t num_damaged() const override { return 0; }
  const std::vector<DamagedRecord>& damaged() const override { return no_damage_; }

  absl::StatusOr<absl::string_view> ReadRecord(int64_t record,
                                               AlignedBuffer& scratch) const override;
  absl::Status ReadRecords(absl::Span<const int64_t> records, RecordBytes bytes,
                           int64_t max_read_bytes, AlignedBuffer& scratch,
                           RecordCallback callback) const override;
  bool IsTooLarge(int64_t record) const override;
  absl::Status ReadFetched(absl::Span<const int64_t> records, FetchedBytes fetched,
                           AlignedBuffer& scratch, RecordCallback callback) const override;
  void PrefetchSpan(int64_t record) const override;
  void Prefetch(int64_t record) const override;
  absl::Status CheckUnchanged() const override;
  absl::Status CheckHoldsRecords() const override { return absl::OkStatus(); }

 private:
  class Index;

  // Null before the shard was opened.
  const RecordSource* opened() const { return opened_.load(std::memory_order_acquire); }
  // Opens the shard if it is not open. FailedPrecondition if the shard differs from `facts_`.
  // Other errors are those of ShardFormat::open, with the codes of ReadFailure().
  absl::StatusOr<const RecordSource*> Opened() const ABSL_LOCKS_EXCLUDED(mu_);

  const std::unique_ptr<ByteSource> file_;
  const ShardFacts facts_;
  const ExampleFormat& examples_;
  const Open open_;
  const std::unique_ptr<const Index> index_;
  const std::vector<DamagedRecord> no_damage_;
  mutable Mutex mu_;
  mutable std::unique_ptr<const RecordSource> owned_ ABSL_GUARDED_BY(mu_);  // Set once.
  mutable std::atomic<const RecordSource*> opened_ = nullptr;               // owned_.get().
};

}  // namespace systole

#endif  // SYSTOLE_CORE_RECORD_SOURCE_DEFERRED_SHARD_H_
