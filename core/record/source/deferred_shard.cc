#include "core/record/source/deferred_shard.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/record/source/read_scratch.h"
#include "core/status/status_macros.h"
#include "core/text/foreign_text.h"

namespace systole {
namespace {

// Reads from a source that another object owns. Used where a function takes ownership of its
// source.
class LentSource final : public ByteSource {
 public:
  explicit LentSource(const ByteSource& source) : source_(source) {}

  absl::StatusOr<size_t> ReadAt(uint64_t offset, absl::Span<char> out) const override {
    return source_.ReadAt(offset, out);
  }
  absl::StatusOr<uint64_t> Size() const override { return source_.Size(); }
  bool is_local() const override { return source_.is_local(); }
  bool may_wait() const override { return source_.may_wait(); }
  std::string identity() const override { return source_.identity(); }
  absl::Status CheckUnchanged() const override { return source_.CheckUnchanged(); }
  Mapping* mapping() const override { return source_.mapping(); }
  absl::string_view name() const override { return source_.name(); }

 private:
  const ByteSource& source_;
};

}  // namespace

// The source that DeferredShard::unread_index() returns. It has no bytes: its ReadAt() only opens
// the shard.
class DeferredShard::Index final : public ByteSource {
 public:
  explicit Index(const DeferredShard& shard) : shard_(shard) {}

  absl::StatusOr<size_t> ReadAt(uint64_t /*offset*/, absl::Span<char> /*out*/) const override {
    SYSTOLE_RETURN_IF_ERROR(shard_.Opened().status());
    return size_t{0};
  }
  absl::StatusOr<uint64_t> Size() const override { return uint64_t{0}; }
  absl::Status CheckUnchanged() const override { return absl::OkStatus(); }
  absl::string_view name() const override { return shard_.path(); }

 private:
  const DeferredShard& shard_;
};

DeferredShard::DeferredShard(std::unique_ptr<ByteSource> file, ShardFacts facts,
                             const ExampleFormat& examples, Open open)
    : file_(std::move(file)),
      facts_(std::move(facts)),
      examples_(examples),
      open_(std::move(open)),
      index_(std::make_unique<Index>(*this)) {}

DeferredShard::~DeferredShard() = default;

absl::StatusOr<const RecordSource*> DeferredShard::Opened() const {
  if (const RecordSource* const shard = opened(); shard != nullptr) return shard;
  absl::StatusOr<std::unique_ptr<RecordSource>> shard = open_(std::make_unique<LentSource>(*file_));
  if (!shard.ok()) return ReadFailure(shard.status());
  const RecordSource& found = **shard;
  if (found.num_records() != facts_.records || found.content_hash() != facts_.content_hash ||
      found.payload_bytes() != facts_.payload || found.num_damaged() > 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        "shard \"", ForeignName(base_name()), "\" differs from the index of its folder (it has ",
        found.num_records(), " records, ", found.num_damaged(),
        " of them damaged; the index of the folder says ", facts_.records,
        " whole ones); make the indexes anew with `systole index --rebuild`, and "
        "open the dataset anew"));
  }
  MutexLock lock(mu_);
  if (owned_ == nullptr) {
    owned_ = *std::move(shard);
    opened_.store(owned_.get(), std::memory_order_release);
  }
  return owned_.get();
}

const std::string& DeferredShard::note() const {
  static const auto* const none = new std::string();
  const RecordSource* const shard = opened();
  return shard == nullptr ? *none : shard->note();
}

RecordSpan DeferredShard::span(int64_t record) const {
  const RecordSource* const shard = opened();
  return shard == nullptr ? RecordSpan() : shard->span(record);
}

const ByteSource* DeferredShard::unread_index() const {
  return opened() == nullptr ? index_.get() : nullptr;
}

bool DeferredShard::IsTooLarge(int64_t record) const {
  const RecordSource* const shard = opened();
  return shard != nullptr && shard->IsTooLarge(record);
}

absl::StatusOr<absl::string_view> DeferredShard::ReadRecord(int64_t record,
                                                            AlignedBuffer& scratch) const {
  SYSTOLE_ASSIGN_OR_RETURN(const RecordSource* const shard, Opened());
  return shard->ReadRecord(record, scratch);
}

absl::Status DeferredShard::ReadRecords(absl::Span<const int64_t> records, RecordBytes bytes,
                                        int64_t max_read_bytes, AlignedBuffer& scratch,
                                        RecordCallback callback) const {
  SYSTOLE_ASSIGN_OR_RETURN(const RecordSource* const shard, Opened());
  return shard->ReadRecords(records, bytes, max_read_bytes, scratch, callback);
}

absl::Status DeferredShard::ReadFetched(absl::Span<const int64_t> records, FetchedBytes fetched,
                                        AlignedBuffer& scratch, RecordCallback callback) const {
  if (const RecordSource* const shard = opened(); shard != nullptr) {
    // The opened shard reads its bytes through a LentSource, but the blocks that were fetched
    // belong to file_.
    const auto of_file = [&](const ByteSource& /*far*/, const RecordSpan& span) {
      return fetched(*file_, span);
    };
    return shard->ReadFetched(records, of_file, scratch, callback);
  }
  for (size_t place = 0; place < records.size(); ++place) {
    absl::Status error = fetched(*file_, RecordSpan()).status();
    if (error.ok()) error = absl::InternalError("records were fetched before their index");
    const bool outage = IsOutage(error);
    error = ReadFailure(error);
    SYSTOLE_RETURN_IF_ERROR(callback(place, error));
    if (outage) return error;
  }
  return absl::OkStatus();
}

void DeferredShard::PrefetchSpan(int64_t record) const {
  if (const RecordSource* const shard = opened(); shard != nullptr) shard->PrefetchSpan(record);
}

void DeferredShard::Prefetch(int64_t record) const {
  if (const RecordSource* const shard = opened(); shard != nullptr) shard->Prefetch(record);
}

absl::Status DeferredShard::CheckUnchanged() const { return ReadFailure(file_->CheckUnchanged()); }

}  // namespace systole
