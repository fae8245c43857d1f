// The text of an index of images, images.idx. An index keeps the facts that were found when each
// file was read. Its first line is
//   systole-images-1 <files> <XXH3-64 of all that follows, 16 hex>\n
// Then comes a line for each file, sorted by class and then by base name:
//   <bytes> <CRC-32C, 8 hex> <height> <width> <channels> <sizes of the three texts> <texts>\n
// The three texts follow each other: the file's identity (StoredState), the file's name, such as
// "rose/1.jpg", and the cause if no image can be read from the file. A file with a cause has 0
// channels. Any other file has 1 or 3 channels.
//
// Lines are read and written one by one, so that reading or writing an index takes little more
// memory than its text.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_RECORD_IMAGES_IMAGE_INDEX_H_
#define SYSTOLE_CORE_RECORD_IMAGES_IMAGE_INDEX_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/image/image_size.h"
#include "core/storage/byte_sink.h"

namespace systole {

// The most bytes of an index file. They are enough for kMaxGroupFiles files with names of usual
// lengths.
inline constexpr uint64_t kMaxImageIndexBytes = uint64_t{4} << 30;
// The most bytes of a cause.
inline constexpr size_t kMaxImageCauseBytes = 256;

// The facts about a file's content that an index keeps.
struct ImageFacts {
  uint64_t bytes = 0;
  uint32_t crc = 0;  // CRC-32C of all bytes.
  ImageSize size;    // 0 channels: no image can be read from the file.

  bool is_damaged() const { return size.channels == 0; }
};

// A line of an index. The strings are views of a text that the caller keeps.
struct ImageIndexLine {
  absl::string_view name;      // "rose/1.jpg".
  absl::string_view identity;  // Not empty.
  ImageFacts facts;
  absl::string_view cause;  // Set if the file is damaged.
};

// Whether `a` comes before `b`. Both are "class/base name".
bool ImageNameIsBefore(absl::string_view a, absl::string_view b);

// The line as text, with its end.
std::string ImageIndexLineText(const ImageIndexLine& line);

// Checks all lines of the index `text`, and returns the lines as a view into `text`.
// InvalidArgument if `text` is not an index. The message says what is wrong.
absl::StatusOr<absl::string_view> CheckImageIndex(absl::string_view text);

// Takes the first line off `lines`, which CheckImageIndex() returned. REQUIRES: there is a line.
ImageIndexLine TakeImageIndexLine(absl::string_view& lines);

// Calls `take` for each line of an index, as text, in order.
using EachImageIndexLine = absl::FunctionRef<void(absl::FunctionRef<void(absl::string_view)> take)>;

// Appends an index to `sink`. Calls `each` twice. Both calls must give the same lines.
absl::Status WriteImageIndex(EachImageIndexLine each, ByteSink& sink);

}  // namespace systole

#endif  // SYSTOLE_CORE_RECORD_IMAGES_IMAGE_INDEX_H_
