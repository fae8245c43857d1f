// Reads any bytes as the index of a folder of shards. The lines of an accepted text are sorted, and
// each line fits in an index. The text is written back equal.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/checksum/xxh3.h"
#include "core/dataset/folder_index.h"
#include "core/status/check.h"
#include "tests/fuzz/fuzzer.h"

namespace {

void Check(absl::string_view text) {
  using namespace systole;
  const absl::StatusOr<std::vector<FolderIndexLine>> lines = ParseFolderIndex(text);
  if (!lines.ok()) {
    SYSTOLE_CHECK(absl::IsInvalidArgument(lines.status()));
    return;
  }
  SYSTOLE_CHECK(lines->size() <= kMaxFolderShards);
  for (size_t i = 0; i < lines->size(); ++i) {
    SYSTOLE_CHECK(FitsFolderIndex((*lines)[i]));
    SYSTOLE_CHECK(i == 0 || (*lines)[i - 1].name < (*lines)[i].name);
  }
  SYSTOLE_CHECK(FolderIndexText(*lines) == text);
}

}  // namespace

SYSTOLE_FUZZER(folder_index, const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  Check(text);
  // The parser reads the lines only if the first line has the right hash, so the hash is computed
  // here. The first byte of the input is the number of shards.
  if (text.empty()) return 0;
  const absl::string_view body = text.substr(1);
  Check(absl::StrCat("systole-shards-1 ", static_cast<unsigned char>(text[0]), " ",
                     absl::Hex(systole::Xxh3(body), absl::kZeroPad16), "\n", body));
  return 0;
}
