#include "core/record/images/read_images.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/checksum/crc32c.h"
#include "core/interrupt/interrupt.h"
#include "core/record/images/bytes_in_flight.h"
#include "core/record/source/client_reason.h"
#include "core/record/source/index_path.h"
#include "core/status/status_macros.h"
#include "core/storage/byte_source.h"
#include "core/storage/stores/stored_file.h"
#include "core/text/foreign_text.h"

namespace systole {
namespace {

// The bytes of files that are looked at at a time. Each of 16 threads could otherwise hold a file
// of max_record_bytes.
constexpr uint64_t kMostBytesInFlight = uint64_t{256} << 20;

// Looks at the content of a file. `name` is "rose/1.jpg".
absl::StatusOr<IndexedImage> ReadImage(const std::string& path, std::string name,
                                       const ShardOptions& options, BytesInFlight& in_flight) {
  SYSTOLE_ASSIGN_OR_RETURN(const std::unique_ptr<ByteSource> source, OpenStored(path));
  SYSTOLE_ASSIGN_OR_RETURN(const uint64_t size, source->Size());
  IndexedImage image = {
      .name = std::move(name), .identity = source->identity(), .facts = {}, .cause = {}};
  image.facts.bytes = size;
  if (size > static_cast<uint64_t>(options.max_record_bytes)) {
    image.facts.size = {.height = 0, .width = 0, .channels = 3};
    return image;
  }
  const BytesInFlight::Hold hold(in_flight, size);
  if (InterruptRequested()) return InterruptedError();
  SYSTOLE_ASSIGN_OR_RETURN(const std::string bytes, ReadWhole(*source, size));
  SYSTOLE_RETURN_IF_ERROR(source->CheckUnchanged());
  image.facts.crc = Crc32c(bytes);
  const absl::StatusOr<ImageSize> read =
      bytes.empty() ? absl::DataLossError("the file is empty") : ReadImageSize(bytes);
  if (absl::IsUnavailable(read.status())) return read.status();  // No memory: no damage.
  if (read.ok()) {
    image.facts.size = *read;
  } else {
    image.facts.size = {.height = 0, .width = 0, .channels = 0};
    image.cause = ForeignText(read.status().message(), kMaxImageCauseBytes);
  }
  return image;
}

// Compares a file that was read with what a valid index says of it. A file of the same identity
// must have the same bytes.
void Compare(const IndexedImage& before, IndexedImage& now) {
  if (now.identity.empty() || now.identity != before.identity || now.facts.is_damaged() ||
      now.facts.bytes != before.facts.bytes || now.facts.crc == before.facts.crc) {
    return;
  }
  now.facts.size = {.height = 0, .width = 0, .channels = 0};
  now.cause = absl::StrFormat("CRC-32C of the file is 0x%08x, the index says 0x%08x", now.facts.crc,
                              before.facts.crc);
}

// What `index` knows of each image of the group; null for an image that it does not list.
std::vector<const IndexedImage*> Known(const std::vector<IndexedImage>& index,
                                       const std::vector<IndexedImage>& images) {
  std::vector<const IndexedImage*> known(images.size(), nullptr);
  auto at = index.begin();
  for (size_t i = 0; i < images.size(); ++i) {
    while (at != index.end() && ImageNameIsBefore(at->name, images[i].name)) ++at;
    if (at != index.end() && at->name == images[i].name) known[i] = &*at;
  }
  return known;
}

// The images that an index may have, and those of `before` that are not in the group: another glob
// over the same folder uses them. Sorted.
std::vector<IndexedImage> ToKeep(const std::vector<IndexedImage>& images, uint64_t max_bytes,
                                 std::vector<IndexedImage> before) {
  std::vector<IndexedImage> kept;
  kept.reserve(images.size());
  for (const IndexedImage& image : images) {
    const bool twice = !kept.empty() && kept.back().name == image.name;
    if (!image.identity.empty() && image.facts.bytes <= max_bytes && !twice) kept.push_back(image);
  }
  std::vector<IndexedImage> all;
  std::erase_if(before, [&images](const IndexedImage& other) {
    const auto found = std::lower_bound(images.begin(), images.end(), other,
                                        [](const IndexedImage& a, const IndexedImage& b) {
                                          return ImageNameIsBefore(a.name, b.name);
                                        });
    return found != images.end() && found->name == other.name;
  });
  if (before.empty() || kept.size() + before.size() > kMaxGroupFiles) return kept;
  std::merge(std::make_move_iterator(kept.begin()), std::make_move_iterator(kept.end()),
             std::make_move_iterator(before.begin()), std::make_move_iterator(before.end()),
             std::back_inserter(all), [](const IndexedImage& a, const IndexedImage& b) {
               return ImageNameIsBefore(a.name, b.name);
             });
  return all;
}

// Calls look(i) for each of `count` files, as options.for_each does. Returns the error of the first
// file that has one. After an error or an interruption no further file is looked at.
absl::Status LookAtEach(int64_t count, const ShardOptions& options,
                        absl::FunctionRef<absl::Status(int64_t i)> look) {
  std::vector<absl::Status> statuses(static_cast<size_t>(count));
  std::atomic<bool> failed = false;
  const InterruptFlag* const unwanted = HeededInterruptFlag();
  const auto work = [&](int64_t i) {
    if (failed.load(std::memory_order_relaxed)) return;
    std::optional<InterruptScope> scope;  // The flag of the thread that waits.
    if (unwanted != nullptr) scope.emplace(*unwanted);
    absl::Status& status = statuses[static_cast<size_t>(i)];
    status = InterruptRequested() ? InterruptedError() : look(i);
    if (!status.ok()) failed.store(true, std::memory_order_relaxed);
    if (options.file_done != nullptr) options.file_done();
  };
  if (options.for_each != nullptr) {
    options.for_each(count, work);
  } else {
    for (int64_t i = 0; i < count; ++i) work(i);
  }
  for (const absl::Status& status : statuses) SYSTOLE_RETURN_IF_ERROR(status);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ReadImages> ReadAllImages(const ImageGroup& group, const ShardOptions& options) {
  const std::string path = IndexPath(group.folder + kImageIndexBase, options.index_dir);
  ReadImages result;
  std::vector<IndexedImage> index;
  if (options.index_use != IndexUse::kRebuild) {
    const absl::StatusOr<std::string> text = GetStored(path, kMaxImageIndexBytes);
    absl::StatusOr<std::vector<IndexedImage>> parsed =
        text.ok() ? ParseImageIndex(*text) : text.status();
    if (parsed.ok()) {
      index = *std::move(parsed);
    } else if (!IsAbsent(parsed.status(), path) && options.index_use == IndexUse::kUse) {
      result.note =
          absl::StrCat("index \"", ShownName(path), "\" not used: ", parsed.status().message());
    }
  }
  std::vector<IndexedImage>& images = result.images;
  images.resize(group.images.size());
  for (size_t i = 0; i < images.size(); ++i) {
    images[i].name =
        ImageNameInGroup(group.classes[group.images[i].class_index], group.images[i].name);
  }
  const std::vector<const IndexedImage*> known = Known(index, images);
  std::atomic<int64_t> read = 0;
  BytesInFlight in_flight(kMostBytesInFlight);
  const auto look = [&](size_t i) -> absl::Status {
    const std::string& file = group.images[i].name;
    if (known[i] != nullptr && options.index_use == IndexUse::kUse) {
      SYSTOLE_ASSIGN_OR_RETURN(const StoredState state, StatStored(file));
      if (state.identity == known[i]->identity && state.size_bytes == known[i]->facts.bytes) {
        images[i] = *known[i];
        return absl::OkStatus();
      }
    }
    SYSTOLE_ASSIGN_OR_RETURN(images[i],
                             ReadImage(file, std::move(images[i].name), options, in_flight));
    if (known[i] != nullptr && options.index_use == IndexUse::kIgnore) {
      Compare(*known[i], images[i]);
    }
    read.fetch_add(1, std::memory_order_relaxed);
    return absl::OkStatus();
  };
  SYSTOLE_RETURN_IF_ERROR(
      LookAtEach(static_cast<int64_t>(images.size()), options, [&](int64_t number) {
        const auto i = static_cast<size_t>(number);
        const std::string name = images[i].name;  // Moved from when the file is read.
        const absl::Status status = look(i);
        return status.ok() ? status
                           : WithLogAsReason(status, absl::StrCat("the image \"", ForeignName(name),
                                                                  "\" cannot be read"));
      }));
  const bool all_damaged = std::all_of(images.begin(), images.end(), [](const IndexedImage& image) {
    return image.facts.is_damaged();
  });
  // If no file is an image, nothing is left beside them.
  if (options.index_use == IndexUse::kIgnore || read.load() == 0 || all_damaged) return result;
  const absl::Status written =
      PutStored(path, ImageIndexText(ToKeep(images, static_cast<uint64_t>(options.max_record_bytes),
                                            std::move(index))));
  if (written.ok()) return result;
  if (options.index_use == IndexUse::kRebuild) {
    return absl::PermissionDeniedError(absl::StrCat("index not kept: ", written.message()));
  }
  absl::StrAppend(&result.note, result.note.empty() ? "" : "; ",
                  "index not kept: ", written.message());
  return result;
}

}  // namespace systole
