// The index of a group of images, images.idx: what was found when each file was read.
//   systole-images-1 <files> <XXH3-64 of all that follows, 16 hex>\n
// and for each file, sorted by class and then by base name, a line
//   <bytes> <CRC-32C, 8 hex> <height> <width> <channels> <sizes of the three texts> <texts>\n
// The texts follow each other: the file's identity (StoredState), its name "rose/1.jpg", and why no
// image can be read from it. A file with such a cause has 0 channels, any other 1 or 3.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_RECORD_IMAGES_IMAGE_INDEX_H_
#define SYSTOLE_CORE_RECORD_IMAGES_IMAGE_INDEX_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/image/image_size.h"

namespace systole {

// The most bytes of an index file: room for kMaxGroupFiles files with names of usual lengths.
inline constexpr uint64_t kMaxImageIndexBytes = uint64_t{4} << 30;
// The most bytes of a cause.
inline constexpr size_t kMaxImageCauseBytes = 256;

// What is known of the content of a file.
struct ImageFacts {
  uint64_t bytes = 0;
  uint32_t crc = 0;  // CRC-32C of all bytes.
  ImageSize size;    // 0 channels: no image can be read from the file.

  bool is_damaged() const { return size.channels == 0; }
};

struct IndexedImage {
  std::string name;      // "rose/1.jpg".
  std::string identity;  // Not empty.
  ImageFacts facts;
  std::string cause;  // If the file is damaged.
};

// Whether `a` comes before `b`. Both are "class/base name".
bool ImageNameIsBefore(absl::string_view a, absl::string_view b);

// REQUIRES: `images` are sorted by ImageNameIsBefore(), without equal names.
std::string ImageIndexText(absl::Span<const IndexedImage> images);

// Reads such a text. InvalidArgument if it is not such a text; the message says what is wrong.
absl::StatusOr<std::vector<IndexedImage>> ParseImageIndex(absl::string_view text);

}  // namespace systole

#endif  // SYSTOLE_CORE_RECORD_IMAGES_IMAGE_INDEX_H_
