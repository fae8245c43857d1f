#include "core/column/column_file.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "core/checksum/xxh3.h"
#include "core/record/source/consume_number.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

constexpr absl::string_view kMagic = "systole-column-1 ";
constexpr absl::string_view kEach = "each ";
// The most bytes of the first line. The second line may be longer by the feature's name.
constexpr size_t kMaxLineBytes = 160;
constexpr size_t kMaxHeadBytes = 2 * kMaxLineBytes + kMaxColumnNameBytes;

absl::Status Wrong(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("file of a column ", what));
}

// The size of one value in bytes. 0 if the column has no values.
uint64_t ValueBytes(const ColumnFacts& facts) {
  if (!facts.has_values()) return 0;
  return facts.first_int64 >= 0 ? 8 : facts.first_float >= 0 ? 4 : 0;
}

// Takes `count` numbers off the front of `bytes`. REQUIRES: there are as many.
template <typename Number>
std::vector<Number> TakeNumbers(absl::string_view& bytes, int64_t count) {
  std::vector<Number> numbers(static_cast<size_t>(count));
  const size_t size = numbers.size() * sizeof(Number);
  if (size > 0) std::memcpy(numbers.data(), bytes.data(), size);
  bytes.remove_prefix(size);
  return numbers;
}

template <typename Number>
absl::string_view BytesOf(const std::vector<Number>& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(Number)};
}

uint64_t HashOfNumbers(const Column& column) {
  Xxh3Hasher hasher;
  hasher.Update(BytesOf(column.lengths));
  hasher.Update(BytesOf(column.int64s));
  hasher.Update(BytesOf(column.floats));
  return hasher.Digest64();
}

// The lines before the numbers.
struct Head {
  Column column;       // Without numbers.
  bool each = false;   // Whether there is a length for each record.
  uint64_t hash = 0;   // Of the numbers.
  uint64_t begin = 0;  // Of the numbers, in the file.
  uint64_t size = 0;
};

bool ConsumeFact(absl::string_view& text, int64_t num_records, int64_t& fact) {
  int64_t stored = 0;
  if (!ConsumeNumber(text, ' ', stored) || stored > num_records) return false;
  fact = stored - 1;
  return true;
}

bool ConsumeHash(absl::string_view& text, char end, uint64_t& hash) {
  return text.find(end) == 16 && ConsumeNumber(text, end, hash, 16);
}

// Takes the column's line off the front of `text`. False if it is malformed.
bool ConsumeLine(absl::string_view& text, int64_t num_records, Head& head) {
  Column& column = head.column;
  ColumnFacts& facts = column.facts;
  column.num_records = num_records;
  for (int64_t* const fact :
       {&facts.first_bytes, &facts.first_float, &facts.first_int64, &facts.first_long}) {
    if (!ConsumeFact(text, num_records, *fact)) return false;
  }
  head.each = absl::ConsumePrefix(&text, kEach);
  if (head.each && num_records == 0) return false;
  if (!head.each && !ConsumeNumber(text, ' ', column.length)) return false;
  size_t name = 0;
  if (!ConsumeHash(text, ' ', head.hash) || !ConsumeNumber(text, ' ', name) || name == 0 ||
      name > std::min(kMaxColumnNameBytes, text.size())) {
    return false;
  }
  column.feature = std::string(text.substr(0, name));
  text.remove_prefix(name);
  const auto records = static_cast<uint64_t>(num_records);
  head.size = records * ((head.each ? 4 : 0) + ValueBytes(facts));
  return absl::ConsumePrefix(&text, "\n");
}

absl::StatusOr<Head> ReadHead(const ByteSource& file, uint64_t file_bytes,
                              const ShardContent& content) {
  std::string bytes(static_cast<size_t>(std::min<uint64_t>(file_bytes, kMaxHeadBytes)), '\0');
  SYSTOLE_RETURN_IF_ERROR(ReadExactlyAt(file, 0, absl::MakeSpan(bytes)));
  absl::string_view text = bytes;
  uint64_t content_hash = 0;
  uint64_t line_hash = 0;
  int64_t num_records = 0;
  if (!absl::ConsumePrefix(&text, kMagic)) return Wrong("is not of this version");
  if (!ConsumeHash(text, ' ', content_hash) || !ConsumeNumber(text, ' ', num_records) ||
      !ConsumeHash(text, '\n', line_hash)) {
    return Wrong("has a malformed first line");
  }
  if (content_hash != content.hash || num_records != content.num_records) {
    return absl::FailedPreconditionError("file of a column was made for another content");
  }
  const absl::string_view begin = text;
  Head head;
  if (!ConsumeLine(text, num_records, head)) return Wrong("has a malformed second line");
  if (Xxh3(begin.substr(0, begin.size() - text.size())) != line_hash) {
    return Wrong("is damaged: the hash of its second line does not match");
  }
  head.begin = bytes.size() - text.size();
  if (head.begin + head.size != file_bytes) {
    return Wrong(absl::StrCat("has ", file_bytes, " bytes, want ", head.begin + head.size));
  }
  return head;
}

// The numbers of a column. A file on a server may claim bytes that it does not have, so memory is
// taken piece by piece.
absl::StatusOr<std::string> ReadNumbers(const ByteSource& file, const Head& head) {
  std::string numbers;
  uint64_t piece = file.is_local() ? head.size : kFirstFarReadBytes;
  while (numbers.size() < head.size) {
    const size_t had = numbers.size();
    numbers.resize(static_cast<size_t>(std::min<uint64_t>(head.size, had + piece)));
    SYSTOLE_RETURN_IF_ERROR(
        ReadExactlyAt(file, head.begin + had, absl::MakeSpan(numbers).subspan(had)));
    piece = std::min(piece * 2, kMostFarReadBytes);
  }
  return numbers;
}

}  // namespace

std::string ColumnFileText(uint64_t content_hash, const Column& column) {
  const ColumnFacts& facts = column.facts;
  const std::string line =
      absl::StrCat(facts.first_bytes + 1, " ", facts.first_float + 1, " ", facts.first_int64 + 1,
                   " ", facts.first_long + 1, " ",
                   column.lengths.empty() ? absl::StrCat(column.length, " ") : std::string(kEach),
                   absl::Hex(HashOfNumbers(column), absl::kZeroPad16), " ", column.feature.size(),
                   " ", column.feature, "\n");
  std::string text = absl::StrFormat("%s%016x %d %016x\n%s", kMagic, content_hash,
                                     column.num_records, Xxh3(line), line);
  const auto numbers = {BytesOf(column.lengths), BytesOf(column.int64s), BytesOf(column.floats)};
  size_t bytes = text.size();
  for (const absl::string_view some : numbers) bytes += some.size();
  text.reserve(bytes);
  for (const absl::string_view some : numbers) text.append(some.data(), some.size());
  return text;
}

absl::StatusOr<Column> ReadColumnFile(const ByteSource& file, const ShardContent& content,
                                      absl::string_view feature) {
  SYSTOLE_ASSIGN_OR_RETURN(const uint64_t file_bytes, file.Size());
  SYSTOLE_ASSIGN_OR_RETURN(Head head, ReadHead(file, file_bytes, content));
  if (!feature.empty() && head.column.feature != feature) {
    return Wrong("has the column of another feature");
  }
  SYSTOLE_ASSIGN_OR_RETURN(const std::string numbers, ReadNumbers(file, head));
  if (Xxh3(numbers) != head.hash)
    return Wrong("is damaged: the hash of its numbers does not match");
  absl::string_view left = numbers;
  Column column = std::move(head.column);
  if (head.each) column.lengths = TakeNumbers<uint32_t>(left, column.num_records);
  if (ValueBytes(column.facts) == 8) {
    column.int64s = TakeNumbers<int64_t>(left, column.num_records);
  } else if (ValueBytes(column.facts) == 4) {
    column.floats = TakeNumbers<float>(left, column.num_records);
  }
  return column;
}

}  // namespace systole
