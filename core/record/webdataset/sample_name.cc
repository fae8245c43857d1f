#include "core/record/webdataset/sample_name.h"

#include <cstddef>

#include "absl/strings/match.h"

namespace systole {

std::optional<SampleName> SampleNameOf(absl::string_view path) {
  constexpr absl::string_view kMeta = "__";
  // The first folder, or the file itself if it is in no folder.
  const absl::string_view first = path.substr(0, path.find('/'));
  if (first.size() >= 2 * kMeta.size() && absl::StartsWith(first, kMeta) &&
      absl::EndsWith(first, kMeta)) {
    return std::nullopt;
  }
  const size_t slash = path.rfind('/');
  const size_t base = slash == absl::string_view::npos ? 0 : slash + 1;
  const size_t dot = path.find('.', base);
  if (dot == absl::string_view::npos) return std::nullopt;
  if (dot == base) {
    // Under webdataset's pattern, "folder/.txt" has the key "folder/". If the folder's name has a
    // dot, the file has no key.
    if (base == 0) return std::nullopt;
    const absl::string_view folders = path.substr(0, slash);
    const size_t last = folders.rfind('/');
    const size_t begin = last == absl::string_view::npos ? 0 : last + 1;
    if (absl::StrContains(folders.substr(begin), '.')) return std::nullopt;
  }
  return SampleName{.key = path.substr(0, dot), .extension = path.substr(dot + 1)};
}

}  // namespace systole
