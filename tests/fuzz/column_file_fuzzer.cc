// Reads any bytes as a file of columns, and what is accepted is written back equal. The first byte
// is the number of records.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/checksum/xxh3.h"
#include "core/column/column_file.h"
#include "core/column/condition.h"
#include "core/status/check.h"
#include "core/storage/memory_source.h"

namespace {

using namespace systole;

void Check(const ShardContent& content, const std::string& text) {
  const absl::StatusOr<std::vector<Column>> columns =
      ReadColumnFile(MemorySource(text), content, nullptr);
  if (!columns.ok()) return;
  SYSTOLE_CHECK(columns->size() <= kMaxColumns);
  SYSTOLE_CHECK(ColumnFileText(content, *columns) == text);
  for (const Column& column : *columns) {
    const Condition condition = {
        .feature = column.feature, .not_in = {1}, .less = 5, .max_length = 3};
    const std::vector<uint64_t> bits = RecordsThatMeet(condition, *columns, content.num_records);
    SYSTOLE_CHECK(bits.size() == static_cast<size_t>((content.num_records + 63) / 64));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  absl::string_view text(reinterpret_cast<const char*>(data), size);
  if (text.empty()) return 0;
  const ShardContent content = {.hash = 0x1234, .num_records = static_cast<uint8_t>(text[0])};
  text.remove_prefix(1);
  Check(content, std::string(text));
  // With hashes that fit, the lines and the numbers are reached. The lines end at an empty one. The
  // hash of the only column's numbers is written in the place of the text "HASH".
  const size_t end = text.find("\n\n");
  if (end == absl::string_view::npos) return 0;
  const std::string numbers(text.substr(end + 2));
  std::string lines(text.substr(0, end + 1));
  if (const size_t hash = lines.find("HASH"); hash != std::string::npos) {
    lines.replace(hash, 4, absl::StrCat(absl::Hex(Xxh3(numbers), absl::kZeroPad16)));
  }
  const int columns = static_cast<int>(std::count(lines.begin(), lines.end(), '\n'));
  Check(content,
        absl::StrCat("systole-columns-1 0000000000001234 ", content.num_records, " ", columns, " ",
                     absl::Hex(Xxh3(lines), absl::kZeroPad16), "\n", lines, numbers));
  return 0;
}
