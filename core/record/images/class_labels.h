// labels.txt (kLabelsFileName): the names of the classes, in the order of their labels from 0 on,
// one name on each line. `systole pack` writes the file beside shards. If the file lies beside
// class folders of images, it decides the labels of the folders.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_RECORD_IMAGES_CLASS_LABELS_H_
#define SYSTOLE_CORE_RECORD_IMAGES_CLASS_LABELS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace systole {

// The most bytes of a labels.txt, and of the name of a class in it.
inline constexpr size_t kMaxLabelsBytes = size_t{16} << 20;
inline constexpr size_t kMaxClassBytes = 1024;
// The most lines. A class takes some 150 bytes of memory, however short its name is.
inline constexpr size_t kMaxClasses = 1'000'000;

// The text of a labels.txt with these classes. InvalidArgument if ParseLabels() would not read the
// same classes from the text: a name is empty, is too long, has a line break or occurs twice; or
// there are too many names.
absl::StatusOr<std::string> LabelsText(absl::Span<const std::string> classes);

// The classes, by label. The last line may lack its line break. Lines may end in \r\n.
//   InvalidArgument  a line is empty or too long, two lines are equal, or there are too many lines.
absl::StatusOr<std::vector<std::string>> ParseLabels(absl::string_view text);

}  // namespace systole

#endif  // SYSTOLE_CORE_RECORD_IMAGES_CLASS_LABELS_H_
