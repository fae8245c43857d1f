#include "core/record/images/read_images.h"

#include <atomic>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/checksum/crc32c.h"
#include "core/checksum/xxh3.h"
#include "core/concurrency/mutex.h"
#include "core/interrupt/interrupt.h"
#include "core/record/images/bytes_in_flight.h"
#include "core/record/images/group_index.h"
#include "core/record/source/client_reason.h"
#include "core/record/source/index_path.h"
#include "core/record/source/ordered_work.h"
#include "core/record/source/record_index.h"
#include "core/status/status_macros.h"
#include "core/storage/byte_source.h"
#include "core/storage/store.h"
#include "core/storage/stores/stored_file.h"
#include "core/text/foreign_text.h"

namespace systole {
namespace {

// The most bytes of files that are in memory at a time, except for a single file that is larger.
// Without this limit, each of 16 threads could hold a file of max_record_bytes.
constexpr uint64_t kMostBytesInFlight = uint64_t{256} << 20;

constexpr ImageSize kNoImage = {.height = 0, .width = 0, .channels = 0};

// The result of a look at a file.
struct Found {
  std::string identity;
  ImageFacts facts;
  std::string cause;  // Not empty if the file is damaged.
};

// The facts of a file that is too large to be read.
ImageFacts FactsOfLargeFile(uint64_t bytes) {
  return {.bytes = bytes, .crc = 0, .size = {.height = 0, .width = 0, .channels = 3}};
}

// Reads the file `opened` and finds the facts about it. A file of more than `max_bytes` is not
// read. If `opened` is an error, returns this error.
absl::StatusOr<Found> ReadSource(absl::StatusOr<std::unique_ptr<ByteSource>> opened,
                                 uint64_t max_bytes, BytesInFlight& in_flight) {
  SYSTOLE_ASSIGN_OR_RETURN(const std::unique_ptr<ByteSource> source, std::move(opened));
  SYSTOLE_ASSIGN_OR_RETURN(const uint64_t size, source->Size());
  Found found = {.identity = source->identity(), .facts = FactsOfLargeFile(size), .cause = {}};
  if (size > max_bytes) return found;
  const BytesInFlight::Hold hold(in_flight, size);
  if (InterruptRequested()) return InterruptedError();
  SYSTOLE_ASSIGN_OR_RETURN(const std::string bytes, ReadWhole(*source, size));
  SYSTOLE_RETURN_IF_ERROR(source->CheckUnchanged());
  found.facts.crc = Crc32c(bytes);
  const absl::StatusOr<ImageSize> read =
      bytes.empty() ? absl::DataLossError("the file is empty") : ReadImageSize(bytes);
  if (absl::IsUnavailable(read.status())) return read.status();  // A lack of memory is no damage.
  if (read.ok()) {
    found.facts.size = *read;
  } else {
    found.facts.size = kNoImage;
    found.cause = ForeignText(read.status().message(), kMaxImageCauseBytes);
  }
  return found;
}

// ReadSource() for the file `path`. `listed` is the file's state in the store's list of files, or
// null. If `listed` is set, no request for the state is needed before the read.
absl::StatusOr<Found> ReadFile(const std::string& path, const StoredState* listed,
                               uint64_t max_bytes, BytesInFlight& in_flight) {
  if (listed != nullptr) {
    absl::StatusOr<Found> found =
        ReadSource(OpenStoredInState(path, *listed), max_bytes, in_flight);
    // These two errors may mean that the file was replaced or removed after the list was made. Then
    // the file is opened without the list.
    if (!absl::IsFailedPrecondition(found.status()) && !absl::IsNotFound(found.status())) {
      return found;
    }
  }
  return ReadSource(OpenStored(path), max_bytes, in_flight);
}

bool IsIn(const StoredState& state, const ImageIndexLine& line) {
  return state.identity == line.identity && state.size_bytes == line.facts.bytes;
}

// Compares a file that was read with its line in a valid index. If the identity is the same, but
// the bytes differ, notes in `now` that the file is damaged.
void Compare(const ImageIndexLine& before, Found& now) {
  if (now.identity.empty() || now.identity != before.identity || now.facts.is_damaged() ||
      now.facts.bytes != before.facts.bytes || now.facts.crc == before.facts.crc) {
    return;
  }
  now.facts.size = kNoImage;
  now.cause = absl::StrFormat("CRC-32C of the file is 0x%08x, the index says 0x%08x", now.facts.crc,
                              before.facts.crc);
}

// Looks at the files of a group, and collects the results. Thread-safe: Look() may be called for
// several files at once.
class GroupLook {
 public:
  GroupLook(const ImageGroup& group, const ShardOptions& options, const GroupIndex& index)
      : group_(group),
        options_(options),
        index_(index),
        is_on_server_(IsOnServer(group.folder)),
        images_(group.images.size()),
        lines_(options.index_use == IndexUse::kIgnore ? 0 : group.images.size()) {}

  absl::Status Look(size_t i) {
    const std::string& file = group_.images[i].name;
    const auto max_bytes = static_cast<uint64_t>(options_.max_record_bytes);
    const std::optional<ImageIndexLine> known = index_.Line(i);
    const StoredState* listed =
        options_.listed_state == nullptr ? nullptr : options_.listed_state(file);
    // A damaged file is read again: another release of a decoder may accept it.
    if (known.has_value() && TrustsIndex(options_.index_use) && !known->facts.is_damaged()) {
      bool is_known = listed != nullptr && IsIn(*listed, *known);
      if (!is_known) {
        // In a list, an identity may have another form than in the answer to a read. So a different
        // identity in the list does not prove that the file has changed.
        SYSTOLE_ASSIGN_OR_RETURN(const StoredState state, StatStored(file));
        is_known = IsIn(state, *known);
        listed = nullptr;
      }
      if (is_known) {
        // A file above the limit gets the facts that ReadFile() would return for the file. An index
        // that was written with a larger limit has other facts about the file. If these were used,
        // content_hash() would depend on whether there is an index.
        const uint64_t bytes = known->facts.bytes;
        Keep(i, bytes > max_bytes ? FactsOfLargeFile(bytes) : known->facts, known->identity,
             /*cause=*/"");
        return absl::OkStatus();
      }
    }
    SYSTOLE_ASSIGN_OR_RETURN(Found found, ReadFile(file, listed, max_bytes, in_flight_));
    const bool was_read = found.facts.bytes <= max_bytes;
    if (known.has_value() && options_.index_use == IndexUse::kIgnore && was_read) {
      Compare(*known, found);
    }
    Keep(i, found.facts, found.identity, found.cause);
    if (lines_.empty() || found.identity.empty() || !was_read) return absl::OkStatus();
    std::string line = ImageIndexLineText({.name = NameOf(i),
                                           .identity = found.identity,
                                           .facts = found.facts,
                                           .cause = found.cause});
    if (known.has_value() && line == ImageIndexLineText(*known)) return absl::OkStatus();
    lines_[i] = std::move(line);
    has_new_line_.store(true, std::memory_order_relaxed);
    return absl::OkStatus();
  }

  std::string NameOf(size_t i) const {
    const GroupedImage& image = group_.images[i];
    return ImageNameInGroup(group_.classes[image.class_index], image.name);
  }

  // Whether the index lacks the line of a file that was read, or has another line for this file.
  bool has_new_line() const { return has_new_line_.load(); }

  // Whether any file that was looked at is an image.
  bool has_image() const { return has_image_.load(); }

  // For each image, its line for the index. The text is empty if the line is not new.
  absl::Span<const std::string> lines() const { return lines_; }

  // The results. REQUIRES: no call of Look() runs, and none follows.
  ReadImages Take() ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    return {.images = std::move(images_), .causes = std::move(causes_), .note = {}};
  }

 private:
  void Keep(size_t i, const ImageFacts& facts, absl::string_view identity, absl::string_view cause)
      ABSL_LOCKS_EXCLUDED(mu_) {
    images_[i] = {.facts = facts, .identity_hash = Xxh3(identity)};
    if (is_on_server_) images_[i].identity = std::string(identity);
    if (options_.file_done != nullptr) options_.file_done(facts.bytes);
    if (!facts.is_damaged()) {
      has_image_.store(true, std::memory_order_relaxed);
      return;
    }
    MutexLock lock(mu_);
    causes_.emplace(i, cause);
    if (causes_.size() > kMaxDamagedListed) causes_.erase(std::prev(causes_.end()));
  }

  const ImageGroup& group_;
  const ShardOptions& options_;
  const GroupIndex& index_;
  const bool is_on_server_;
  BytesInFlight in_flight_{kMostBytesInFlight};
  std::atomic<bool> has_new_line_ = false;
  std::atomic<bool> has_image_ = false;
  // Each thread writes only the elements of its files.
  std::vector<SeenImage> images_;
  std::vector<std::string> lines_;
  Mutex mu_;
  std::map<size_t, std::string> causes_ ABSL_GUARDED_BY(mu_);
};

}  // namespace

absl::StatusOr<ReadImages> ReadAllImages(const ImageGroup& group, const ShardOptions& options) {
  const int64_t only = options.only_record.value_or(0);
  const bool looks_at_all = !options.only_record.has_value();
  if (!looks_at_all && (only < 0 || static_cast<size_t>(only) >= group.images.size())) {
    return absl::InvalidArgumentError(absl::StrCat(
        "ShardOptions.only_record is ", only, ", the group has ", group.images.size(), " images"));
  }
  // The name of an index in index_dir does not depend on the query of the images' addresses,
  // because the query may have a signature that is new each day.
  const std::string path =
      options.index_dir.empty()
          ? IndexPath(group.Beside(kImageIndexBase), "")
          : IndexPath(absl::StrCat(group.folder, kImageIndexBase), options.index_dir);
  GroupIndex index(group, path);
  std::string note;
  if (options.index_use != IndexUse::kRebuild && looks_at_all) {
    const absl::Status read = index.Read();
    if (!read.ok() && !IsAbsent(read, path) && TrustsIndex(options.index_use)) {
      note = absl::StrCat("index \"", ShownName(path), "\" not used: ", read.message());
    }
  }
  GroupLook look(group, options, index);
  const auto first = static_cast<size_t>(only);
  const size_t count = looks_at_all ? group.images.size() : 1;
  const auto for_each = [&options](int64_t files, absl::FunctionRef<void(int64_t i)> call) {
    if (options.for_each != nullptr) return options.for_each(files, call);
    for (int64_t i = 0; i < files; ++i) call(i);
  };
  const absl::Status looked =
      WorkInOrder(static_cast<int64_t>(count), for_each, [&look, first](int64_t nth) {
        const size_t i = first + static_cast<size_t>(nth);
        const absl::Status status = look.Look(i);
        if (status.ok()) return status;
        return WithLogAsReason(
            status, absl::StrCat("the image \"", ForeignName(look.NameOf(i)), "\" cannot be read"));
      });
  // The index is also written after an error or an interruption, so that the next try reads only
  // files that were not read yet. There are two exceptions. With kRebuild, a partial index does not
  // replace the old index. If no file is an image, no index is written.
  //
  // While the index is written, `never` replaces the thread's own interrupt flag. If the thread was
  // interrupted, its own flag would make a store stop the requests that write the index.
  const InterruptFlag never;
  const InterruptScope writing(never);
  const bool is_rebuilt = options.index_use == IndexUse::kRebuild && looked.ok();
  const bool has_more = TrustsIndex(options.index_use) && look.has_new_line();
  const bool writes = looks_at_all && look.has_image() && (is_rebuilt || has_more);
  absl::Status written = writes ? CheckMayKeep(path, options.write_index) : absl::OkStatus();
  if (writes && written.ok()) written = index.Write(look.lines());
  SYSTOLE_RETURN_IF_ERROR(looked);
  if (!written.ok() && MustKeepIndex(options.index_use)) {
    return absl::PermissionDeniedError(absl::StrCat("index not kept: ", written.message()));
  }
  if (!written.ok()) {
    absl::StrAppend(&note, note.empty() ? "" : "; ", "index not kept: ", written.message());
  }
  ReadImages result = look.Take();
  result.note = std::move(note);
  return result;
}

}  // namespace systole
