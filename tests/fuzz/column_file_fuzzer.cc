// Reads any bytes as the file of a column. An accepted file is written back equal. The first byte
// is the number of records.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/checksum/xxh3.h"
#include "core/column/column_file.h"
#include "core/column/condition.h"
#include "core/status/check.h"
#include "core/storage/memory_source.h"
#include "tests/fuzz/fuzzer.h"

namespace {

using namespace systole;

void Check(const ShardContent& content, const std::string& text) {
  const absl::StatusOr<Column> column = ReadColumnFile(MemorySource(text), content, "");
  if (!column.ok()) return;
  SYSTOLE_CHECK(column->num_records == content.num_records);
  SYSTOLE_CHECK(ColumnFileText(content.hash, *column) == text);
  SYSTOLE_CHECK(ReadColumnFile(MemorySource(text), content, column->feature).ok());
  SYSTOLE_CHECK(!ReadColumnFile(MemorySource(text), content, column->feature + "x").ok());
  const Condition condition = {
      .feature = column->feature, .not_in = {1}, .less = 5, .max_length = 3};
  const auto bits = RecordsThatMeet(
      condition, [&](const std::string&) -> absl::StatusOr<Column> { return *column; });
  SYSTOLE_CHECK(bits.ok() && bits->size() == static_cast<size_t>((content.num_records + 63) / 64));
  SYSTOLE_CHECK(column->CountPresent() >= 0 && column->CountPresent() <= content.num_records);
}

}  // namespace

SYSTOLE_FUZZER(column_file, const uint8_t* data, size_t size) {
  absl::string_view text(reinterpret_cast<const char*>(data), size);
  if (text.empty()) return 0;
  const ShardContent content = {.hash = 0x1234, .num_records = static_cast<uint8_t>(text[0])};
  text.remove_prefix(1);
  Check(content, std::string(text));
  // Computes the right hashes, so that the code behind the checks of hashes is reached. The second
  // line of the file ends before the first "\n\n"; the numbers follow. In the second line, the hash
  // of the numbers replaces the text "HASH".
  const size_t end = text.find("\n\n");
  if (end == absl::string_view::npos) return 0;
  const std::string numbers(text.substr(end + 2));
  std::string line(text.substr(0, end + 1));
  if (const size_t hash = line.find("HASH"); hash != std::string::npos) {
    line.replace(hash, 4, absl::StrCat(absl::Hex(Xxh3(numbers), absl::kZeroPad16)));
  }
  Check(content, absl::StrCat("systole-column-1 0000000000001234 ", content.num_records, " ",
                              absl::Hex(Xxh3(line), absl::kZeroPad16), "\n", line, numbers));
  return 0;
}
