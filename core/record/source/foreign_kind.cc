#include "core/record/source/foreign_kind.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/compression/compression.h"

namespace systole {
namespace {

struct Kind {
  absl::string_view magic;
  const char* text;
};

constexpr Kind kKinds[] = {
    {"\xff\xd8\xff",
     "it looks like a JPEG file; give it a name that ends with .jpg, or pack such files with "
     "`systole pack`"},
    {"\x89PNG\r\n\x1a\n", "it looks like a PNG file; give it a name that ends with .png"},
};

}  // namespace

std::string ForeignKind(absl::string_view begin) {
  for (const Kind& kind : kKinds) {
    if (absl::StartsWith(begin, kind.magic)) return kind.text;
  }
  const Compression compression = CompressionOf(begin);
  if (compression == Compression::kNone) return "";
  return absl::StrCat("it is compressed with ", CompressionName(compression),
                      "; use compression 'detect'; if that is set, decompress the file first");
}

}  // namespace systole
