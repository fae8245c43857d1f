#include "core/record/arrays/array_table.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "core/checksum/crc32c.h"
#include "core/concurrency/worker_pool.h"
#include "core/interrupt/interrupt.h"
#include "core/memory/little_endian.h"
#include "core/record/source/content_hasher.h"
#include "core/record/source/record_source.h"
#include "core/record/tfrecord/record_format.h"
#include "core/status/status_macros.h"
#include "core/text/foreign_text.h"

namespace systole {
namespace {

// Rows are hashed in blocks. Between two blocks the calling thread checks whether it is
// interrupted.
constexpr int64_t kBlockBytes = int64_t{16} << 20;
constexpr int64_t kMostBlockRows = int64_t{1} << 16;
// The number of parts into which a block is cut, so that threads can share it.
constexpr int64_t kPartsOfBlock = 32;

absl::Status AboutArray(absl::string_view name, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("array '", ForeignName(name), "' ", what));
}

std::vector<int64_t> Int64sIn(absl::string_view bytes) {
  std::vector<int64_t> values(bytes.size() / sizeof(int64_t));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<int64_t>(LoadU64Le(bytes.data() + i * sizeof(int64_t)));
  }
  return values;
}

}  // namespace

ArrayTable::ArrayTable(std::vector<Column> columns, int64_t rows, std::shared_ptr<const void> owner)
    : columns_(std::move(columns)),
      rows_(rows),
      owner_(std::move(owner)),
      largest_(columns_.size()) {
  for (size_t i = 0; i < columns_.size(); ++i) {
    if (columns_[i].kind == FeatureKind::kInt64 || columns_[i].row_bytes == 0) continue;
    if (largest_ == columns_.size() || columns_[i].row_bytes > columns_[largest_].row_bytes) {
      largest_ = i;
    }
  }
}

absl::StatusOr<ArrayTable::Column> ArrayTable::Checked(ArrayColumn array) {
  Column column;
  switch (array.dtype) {
    case DType::kUint8:
      column.kind = array.row_shape.empty() ? FeatureKind::kInt64 : FeatureKind::kBytes;
      break;
    case DType::kFloat32:
      column.kind = FeatureKind::kFloat;
      break;
    case DType::kInt64:
      column.kind = FeatureKind::kInt64;
      break;
    default:
      return AboutArray(array.name, absl::StrCat("has the dtype ", DTypeName(array.dtype),
                                                 "; want uint8, float32 or int64"));
  }
  int64_t bytes = DTypeBytes(array.dtype);
  for (const int64_t dimension : array.row_shape) {
    if (dimension < 0) return AboutArray(array.name, "has a negative dimension");
    if (dimension > 0 && bytes > kDefaultMaxRecordBytes / dimension) {
      return AboutArray(array.name, absl::StrCat("has rows of more than ", kDefaultMaxRecordBytes,
                                                 " bytes, the most that a record may have"));
    }
    bytes *= dimension;
  }
  column.row_bytes = static_cast<uint64_t>(bytes);
  column.array = std::move(array);
  return column;
}

absl::StatusOr<std::shared_ptr<const ArrayTable>> ArrayTable::Create(
    std::vector<ArrayColumn> columns, int64_t rows, std::shared_ptr<const void> owner,
    int threads) {
  if (columns.empty()) return absl::InvalidArgumentError("there are no arrays; want one or more");
  std::vector<Column> checked;
  for (ArrayColumn& column : columns) {
    SYSTOLE_ASSIGN_OR_RETURN(checked.emplace_back(), Checked(std::move(column)));
  }
  std::sort(checked.begin(), checked.end(),
            [](const Column& a, const Column& b) { return a.array.name < b.array.name; });
  uint64_t row_bytes = 0;
  for (const Column& column : checked) row_bytes += column.row_bytes;
  if (row_bytes > kDefaultMaxRecordBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the rows of all arrays together have ", row_bytes, " bytes, want at most ",
                     kDefaultMaxRecordBytes, ", the most that a record may have"));
  }
  for (size_t i = 1; i < checked.size(); ++i) {
    if (checked[i].array.name == checked[i - 1].array.name) {
      return AboutArray(checked[i].array.name, "is named twice");
    }
  }
  auto table = absl::WrapUnique(new ArrayTable(std::move(checked), rows, std::move(owner)));
  SYSTOLE_RETURN_IF_ERROR(table->Hash(threads));
  return std::shared_ptr<const ArrayTable>(std::move(table));
}

FeatureView ArrayTable::ViewOf(const Column& column, int64_t row) const {
  const absl::string_view name = column.array.name;
  const absl::string_view bytes = BytesOf(column, row);
  switch (column.array.dtype) {
    case DType::kFloat32:
      return FeatureView::OfFloatArray(name, bytes);
    case DType::kInt64:
      return FeatureView::OfInt64Array(name, bytes);
    default:
      return column.kind == FeatureKind::kBytes
                 ? FeatureView::OfBytes(name, bytes)
                 : FeatureView::OfInt64(name, static_cast<uint8_t>(bytes[0]));
  }
}

void ArrayTable::Visit(int64_t row, absl::FunctionRef<void(const FeatureView&)> visit) const {
  for (const Column& column : columns_) visit(ViewOf(column, row));
}

void ArrayTable::Prefetch(int64_t row) const {
  for (const Column& column : columns_) __builtin_prefetch(BytesOf(column, row).data());
}

ArrayTable::CutRecord ArrayTable::Cut(int64_t row) const {
  ExampleBuilder builder;
  for (size_t i = 0; i < columns_.size(); ++i) {
    if (i == largest_) continue;
    const Column& column = columns_[i];
    const absl::string_view name = column.array.name;
    const absl::string_view bytes = BytesOf(column, row);
    if (column.kind == FeatureKind::kBytes) {
      builder.AddBytes(name, bytes);
    } else if (column.kind == FeatureKind::kFloat) {
      std::vector<float> values(bytes.size() / sizeof(float));
      if (!ViewOf(column, row).CopyFloats(absl::MakeSpan(values)).ok()) values.clear();
      builder.AddFloats(name, values);
    } else if (column.array.dtype == DType::kUint8) {
      builder.AddInt64s(name, {static_cast<uint8_t>(bytes[0])});
    } else {
      builder.AddInt64s(name, Int64sIn(bytes));
    }
  }
  if (largest_ == columns_.size())
    return {.around = {.before = builder.Serialize(), .after = {}}, .value = {}};
  const Column& largest = columns_[largest_];
  return {.around = builder.SerializeAround(largest.array.name, largest.row_bytes, largest.kind),
          .value = BytesOf(largest, row)};
}

std::string ArrayTable::RecordOf(int64_t row) const {
  const CutRecord record = Cut(row);
  return absl::StrCat(record.around.before, record.value, record.around.after);
}

absl::Status ArrayTable::Hash(int threads) {
  struct Hashed {
    uint64_t bytes = 0;
    uint32_t footer = 0;
  };
  uint64_t row_bytes = 1;
  for (const Column& column : columns_) row_bytes += column.row_bytes;
  const int64_t block_rows =
      std::clamp<int64_t>(kBlockBytes / static_cast<int64_t>(row_bytes), threads, kMostBlockRows);
  std::vector<Hashed> block;
  ContentHasher hasher;
  payload_bytes_ = {.least = std::numeric_limits<int64_t>::max(), .most = 0};
  SYSTOLE_ASSIGN_OR_RETURN(const std::unique_ptr<WorkerPool> pool, WorkerPool::Create(threads));
  for (int64_t begin = 0; begin < rows_; begin += block_rows) {
    if (InterruptRequested()) return InterruptedError();
    const int64_t rows = std::min(block_rows, rows_ - begin);
    block.resize(static_cast<size_t>(rows));
    ParallelFor(*pool, kPartsOfBlock, [&](int64_t part) {
      const int64_t end = rows * (part + 1) / kPartsOfBlock;
      for (int64_t i = rows * part / kPartsOfBlock; i < end; ++i) {
        const CutRecord record = Cut(begin + i);
        uint32_t crc = Crc32c(record.around.before);
        crc = ExtendCrc32c(ExtendCrc32c(crc, record.value), record.around.after);
        block[static_cast<size_t>(i)] = {.bytes = record.size(), .footer = MaskCrc32c(crc)};
      }
    });
    for (const Hashed& hashed : block) {
      const auto bytes = static_cast<int64_t>(hashed.bytes);
      payload_bytes_.least = std::min(payload_bytes_.least, bytes);
      payload_bytes_.most = std::max(payload_bytes_.most, bytes);
      shard_bytes_ += hashed.bytes + kRecordFramingBytes;
      hasher.Add(hashed.bytes + kRecordFramingBytes, hashed.footer);
    }
  }
  if (rows_ == 0) payload_bytes_ = {};
  content_hash_ = hasher.Digest();
  return absl::OkStatus();
}

}  // namespace systole
