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

constexpr absl::string_view kMagic = "systole-columns-1 ";
constexpr absl::string_view kEach = "each ";
// The most bytes of the first line, and of another line without the name.
constexpr size_t kMaxLineBytes = 160;
constexpr size_t kMaxHeadBytes =
    kMaxLineBytes + kMaxColumns * (kMaxLineBytes + kMaxColumnNameBytes);

absl::Status Wrong(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("file of columns ", what));
}

// The bytes of a value: 0 if the column has none.
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

// A line of the head, and where its numbers are.
struct Line {
  Column column;       // Without numbers.
  bool each = false;   // Whether there is a length for each record.
  uint64_t hash = 0;   // Of the numbers.
  uint64_t begin = 0;  // In the file.
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

// Takes a line off the front of `text`. False if it is malformed.
bool ConsumeLine(absl::string_view& text, int64_t num_records, Line& line) {
  Column& column = line.column;
  ColumnFacts& facts = column.facts;
  column.num_records = num_records;
  for (int64_t* const fact :
       {&facts.first_bytes, &facts.first_float, &facts.first_int64, &facts.first_long}) {
    if (!ConsumeFact(text, num_records, *fact)) return false;
  }
  line.each = absl::ConsumePrefix(&text, kEach);
  if (line.each && num_records == 0) return false;
  if (!line.each && !ConsumeNumber(text, ' ', column.length)) return false;
  size_t name = 0;
  if (!ConsumeHash(text, ' ', line.hash) || !ConsumeNumber(text, ' ', name) || name == 0 ||
      name > std::min(kMaxColumnNameBytes, text.size())) {
    return false;
  }
  column.feature = std::string(text.substr(0, name));
  text.remove_prefix(name);
  const auto records = static_cast<uint64_t>(num_records);
  line.size = records * ((line.each ? 4 : 0) + ValueBytes(facts));
  return absl::ConsumePrefix(&text, "\n");
}

// Reads the lines. `num_records` was checked.
absl::StatusOr<std::vector<Line>> ReadHead(const ByteSource& file, uint64_t file_bytes,
                                           const ShardContent& content) {
  std::string head(static_cast<size_t>(std::min<uint64_t>(file_bytes, kMaxHeadBytes)), '\0');
  SYSTOLE_RETURN_IF_ERROR(ReadExactlyAt(file, 0, absl::MakeSpan(head)));
  absl::string_view text = head;
  uint64_t content_hash = 0;
  uint64_t head_hash = 0;
  int64_t num_records = 0;
  size_t num_columns = 0;
  if (!absl::ConsumePrefix(&text, kMagic)) return Wrong("is none of this version");
  if (!ConsumeHash(text, ' ', content_hash) || !ConsumeNumber(text, ' ', num_records) ||
      !ConsumeNumber(text, ' ', num_columns) || !ConsumeHash(text, '\n', head_hash)) {
    return Wrong("has a malformed first line");
  }
  if (content_hash != content.hash || num_records != content.num_records) {
    return absl::FailedPreconditionError("file of columns was made for another content");
  }
  if (num_columns > kMaxColumns) {
    return Wrong(absl::StrCat("has ", num_columns, " columns, want at most ", kMaxColumns));
  }
  const absl::string_view begin = text;
  std::vector<Line> lines(num_columns);
  for (size_t i = 0; i < num_columns; ++i) {
    if (!ConsumeLine(text, num_records, lines[i])) {
      return Wrong(absl::StrCat("has a malformed line for column ", i));
    }
    if (i > 0 && lines[i - 1].column.feature >= lines[i].column.feature) {
      return Wrong(absl::StrCat("has column ", i, " in a wrong place"));
    }
  }
  if (Xxh3(begin.substr(0, begin.size() - text.size())) != head_hash) {
    return Wrong("is damaged: the hash of its lines does not match");
  }
  uint64_t end = head.size() - text.size();
  for (Line& line : lines) {
    line.begin = end;
    end += line.size;
  }
  if (end != file_bytes) {
    return Wrong(absl::StrCat("has ", file_bytes, " bytes, want ", end));
  }
  return lines;
}

// The numbers of a column. The file may claim bytes that it does not have, so memory is taken as
// they come.
absl::StatusOr<std::string> ReadNumbers(const ByteSource& file, const Line& line) {
  std::string numbers;
  uint64_t piece = file.is_local() ? line.size : kFirstFarReadBytes;
  while (numbers.size() < line.size) {
    const size_t had = numbers.size();
    numbers.resize(static_cast<size_t>(std::min<uint64_t>(line.size, had + piece)));
    SYSTOLE_RETURN_IF_ERROR(
        ReadExactlyAt(file, line.begin + had, absl::MakeSpan(numbers).subspan(had)));
    piece = std::min(piece * 2, kMostFarReadBytes);
  }
  return numbers;
}

absl::StatusOr<Column> ReadColumn(const ByteSource& file, Line line) {
  SYSTOLE_ASSIGN_OR_RETURN(const std::string numbers, ReadNumbers(file, line));
  if (Xxh3(numbers) != line.hash) return Wrong("is damaged: the hash of a column does not match");
  absl::string_view left = numbers;
  Column column = std::move(line.column);
  if (line.each) column.lengths = TakeNumbers<uint32_t>(left, column.num_records);
  if (ValueBytes(column.facts) == 8) {
    column.int64s = TakeNumbers<int64_t>(left, column.num_records);
  } else if (ValueBytes(column.facts) == 4) {
    column.floats = TakeNumbers<float>(left, column.num_records);
  }
  return column;
}

}  // namespace

std::string ColumnFileText(const ShardContent& content, absl::Span<const Column> columns) {
  std::string lines;
  size_t number_bytes = 0;
  for (const Column& column : columns) {
    const ColumnFacts& facts = column.facts;
    absl::StrAppend(&lines, facts.first_bytes + 1, " ", facts.first_float + 1, " ",
                    facts.first_int64 + 1, " ", facts.first_long + 1, " ");
    if (column.lengths.empty()) {
      absl::StrAppend(&lines, column.length, " ");
    } else {
      absl::StrAppend(&lines, kEach);
    }
    absl::StrAppend(&lines, absl::Hex(HashOfNumbers(column), absl::kZeroPad16), " ",
                    column.feature.size(), " ", column.feature, "\n");
    number_bytes += BytesOf(column.lengths).size() + BytesOf(column.int64s).size() +
                    BytesOf(column.floats).size();
  }
  std::string text = absl::StrFormat("%s%016x %d %d %016x\n%s", kMagic, content.hash,
                                     content.num_records, columns.size(), Xxh3(lines), lines);
  text.reserve(text.size() + number_bytes);
  for (const Column& column : columns) {
    absl::StrAppend(&text, BytesOf(column.lengths), BytesOf(column.int64s), BytesOf(column.floats));
  }
  return text;
}

absl::StatusOr<std::vector<Column>> ReadColumnFile(const ByteSource& file,
                                                   const ShardContent& content,
                                                   const std::vector<std::string>* features) {
  SYSTOLE_ASSIGN_OR_RETURN(const uint64_t file_bytes, file.Size());
  SYSTOLE_ASSIGN_OR_RETURN(std::vector<Line> lines, ReadHead(file, file_bytes, content));
  std::vector<Column> columns;
  const auto read = [&](Line& line) -> absl::Status {
    SYSTOLE_ASSIGN_OR_RETURN(columns.emplace_back(), ReadColumn(file, std::move(line)));
    return absl::OkStatus();
  };
  if (features == nullptr) {
    for (Line& line : lines) SYSTOLE_RETURN_IF_ERROR(read(line));
    return columns;
  }
  for (const std::string& feature : *features) {
    const auto found = std::find_if(lines.begin(), lines.end(), [&](const Line& line) {
      return line.column.feature == feature;
    });
    if (found != lines.end()) SYSTOLE_RETURN_IF_ERROR(read(*found));
  }
  return columns;
}

}  // namespace systole
