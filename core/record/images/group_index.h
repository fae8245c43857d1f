// The index file of a group of images (image_index.h has its text). Reads the file and finds the
// line of each image, or writes the file anew.
//
// Thread-compatible.
#ifndef SYSTOLE_CORE_RECORD_IMAGES_GROUP_INDEX_H_
#define SYSTOLE_CORE_RECORD_IMAGES_GROUP_INDEX_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/record/images/image_group.h"
#include "core/record/images/image_index.h"

namespace systole {

// An index on a server may always have this many bytes, however small the group is. These bytes
// leave room for the lines of other files in the folder.
inline constexpr uint64_t kMostFarIndexBytes = uint64_t{16} << 20;

// A limit of lines for files outside the group: see GroupIndex::Write().
inline constexpr size_t kMostOtherFarLines = 100'000;

class GroupIndex {
 public:
  // An index at `path` that has no lines yet.
  GroupIndex(const ImageGroup& group, std::string path);

  // Reads the file and finds the lines of the group's images. Keeps the text in memory, and 8 bytes
  // for each image. A file on a server is not read if it is larger than kMostFarIndexBytes plus
  // four times the usual bytes of the group's lines. Without this bound, the server would decide
  // how much memory is taken.
  //   InvalidArgument    the file is not an index. The message says what is wrong.
  //   ResourceExhausted  the file is too large.
  // Also the errors of the store. After an error the index has no lines.
  absl::Status Read();

  // The file's line for image `i` of the group; nullopt if there is none. A view, valid while the
  // index exists.
  std::optional<ImageIndexLine> Line(size_t i) const;

  // Writes the file anew. Image `i` gets the line `lines[i]`, as text. If `lines[i]` is empty, the
  // image keeps the line that was read, if there is one. Lines of files that are not in the group
  // stay, because another glob over the same folder may use them. There are three exceptions. In a
  // local folder, Write() drops the line of a file that no longer exists. In other stores, Write()
  // does not check whether files exist. It drops all lines of files outside the group if there are
  // more than kMostOtherFarLines of these lines, and more than two for each file in the group. In
  // any store, it drops them all if the index would otherwise have more than kMaxImageIndexBytes
  // bytes or kMaxGroupFiles lines.
  //   ResourceExhausted  the group's own lines have more than kMaxImageIndexBytes bytes. Nothing is
  //                      written.
  // Also the errors of the store.
  absl::Status Write(absl::Span<const std::string> lines) const;

 private:
  using LineCallback =
      absl::FunctionRef<void(uint64_t place, const ImageIndexLine& line, size_t image)>;

  static constexpr uint64_t kNoLine = ~uint64_t{0};

  std::string NameOf(size_t i) const;
  // The line that begins at `place` of text_.
  absl::string_view TextAt(uint64_t place) const;
  // Calls `see` for each line that was read, with the image's number in the group. For the line of
  // a file outside the group, `see` gets the count of images in the group.
  void ForEachLine(LineCallback see) const;
  // Where the lines of files outside the group begin in text_. Has only the lines that Write()
  // keeps.
  std::vector<uint64_t> OtherLines() const;
  uint64_t MostBytes() const;

  const ImageGroup& group_;
  const std::string path_;
  std::string text_;
  uint64_t first_line_ = 0;       // Where the lines begin in text_.
  std::vector<uint64_t> places_;  // Where the line of each image begins in text_, or kNoLine.
};

}  // namespace systole

#endif  // SYSTOLE_CORE_RECORD_IMAGES_GROUP_INDEX_H_
