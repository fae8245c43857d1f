#include "core/column/shard_columns.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/column/column_file.h"
#include "core/example/example_parser.h"
#include "core/interrupt/interrupt.h"
#include "core/memory/aligned_buffer.h"
#include "core/record/source/index_path.h"
#include "core/status/status_macros.h"
#include "core/storage/byte_source.h"
#include "core/storage/memory_source.h"
#include "core/storage/stores/stored_file.h"
#include "core/text/foreign_text.h"

namespace systole {
namespace {

// Records of a call of ReadRecords(). Between the calls an interruption is noticed.
constexpr int64_t kRecordsAtOnce = 4096;

ShardContent ContentOf(const RecordSource& shard) {
  return {.hash = shard.content_hash(), .num_records = shard.num_records()};
}

// The path of the shard's columns. Empty: the shard lies in memory, and so do its columns.
std::string PathOf(const RecordSource& shard, absl::string_view index_dir) {
  const std::string indexed = shard.indexed_path();
  return indexed.empty() ? "" : ColumnsPath(IndexPath(indexed, index_dir));
}

// Columns of the shard's file or, if it is not null, of `unkept`. Null `features`: all. NotFound:
// there is no file.
absl::StatusOr<std::vector<Column>> ReadFile(const RecordSource& shard, const std::string& path,
                                             const ByteSource* unkept,
                                             const std::vector<std::string>* features) {
  if (unkept != nullptr) return ReadColumnFile(*unkept, ContentOf(shard), features);
  if (path.empty()) return absl::NotFoundError("there are no columns in memory");
  const absl::StatusOr<std::unique_ptr<ByteSource>> file = OpenStored(path);
  if (IsAbsent(file.status(), path)) return absl::NotFoundError("there is no file of columns");
  SYSTOLE_RETURN_IF_ERROR(file.status());
  return ReadColumnFile(**file, ContentOf(shard), features);
}

bool Has(absl::Span<const Column> columns, absl::string_view feature) {
  return std::any_of(columns.begin(), columns.end(),
                     [feature](const Column& column) { return column.feature == feature; });
}

// Whether the error of reading a record says that the record is damaged. Any other error may be
// gone at the next read.
bool IsDamage(const absl::Status& error) {
  return absl::IsDataLoss(error) || absl::IsResourceExhausted(error);
}

// Whether the error of reading a file of columns may be gone at the next try. Then the file is not
// replaced.
bool MayPass(const absl::Status& error) {
  return absl::IsUnavailable(error) || absl::IsDeadlineExceeded(error) || absl::IsCancelled(error);
}

class Pass {
 public:
  static absl::StatusOr<Pass> Create(const RecordSource& shard,
                                     const std::vector<std::string>& features) {
    SYSTOLE_ASSIGN_OR_RETURN(ExampleParser parser, ExampleParser::Create(features));
    return Pass(shard, std::move(parser));
  }

  absl::StatusOr<std::vector<Column>> Run() {
    AlignedBuffer scratch;
    std::vector<int64_t> records;
    for (int64_t begin = 0; begin < shard_.num_records(); begin += kRecordsAtOnce) {
      if (InterruptRequested()) return absl::CancelledError("noting columns was interrupted");
      records.resize(static_cast<size_t>(std::min(kRecordsAtOnce, shard_.num_records() - begin)));
      std::iota(records.begin(), records.end(), begin);
      SYSTOLE_RETURN_IF_ERROR(shard_.ReadRecords(
          records, RecordBytes::kCopied, static_cast<int64_t>(kMostFarReadBytes), scratch,
          [this](size_t /*place*/, absl::StatusOr<absl::string_view> payload) {
            return Add(payload);
          }));
    }
    SYSTOLE_RETURN_IF_ERROR(shard_.CheckUnchanged());
    std::vector<Column> columns;
    for (ColumnBuilder& builder : builders_) columns.push_back(std::move(builder).Build());
    return columns;
  }

 private:
  Pass(const RecordSource& shard, ExampleParser parser)
      : shard_(shard), parser_(std::move(parser)), views_(parser_.names().size()) {
    for (const std::string& name : parser_.names()) builders_.emplace_back(name);
  }

  absl::Status Add(const absl::StatusOr<absl::string_view>& payload) {
    absl::Status read = payload.status();
    made_.Clear();
    if (read.ok()) read = parser_.Parse(shard_.examples(), *payload, made_, absl::MakeSpan(views_));
    if (IsDamage(read)) {
      for (ColumnBuilder& builder : builders_) builder.AddDamaged();
      return absl::OkStatus();
    }
    SYSTOLE_RETURN_IF_ERROR(read);
    for (size_t i = 0; i < builders_.size(); ++i) {
      SYSTOLE_RETURN_IF_ERROR(builders_[i].Add(views_[i]));
    }
    return absl::OkStatus();
  }

  const RecordSource& shard_;
  ExampleParser parser_;
  std::vector<FeatureView> views_;
  MadeText made_;
  std::vector<ColumnBuilder> builders_;
};

// Adds `made` to `columns`, sorted, in place of columns of the same features.
void Merge(std::vector<Column> made, std::vector<Column>& columns) {
  columns.erase(std::remove_if(columns.begin(), columns.end(),
                               [&made](const Column& old) { return Has(made, old.feature); }),
                columns.end());
  for (Column& column : made) columns.push_back(std::move(column));
  std::sort(columns.begin(), columns.end(),
            [](const Column& a, const Column& b) { return a.feature < b.feature; });
}

}  // namespace

std::string ColumnsPath(absl::string_view index_path) { return WithEnding(index_path, ".columns"); }

absl::StatusOr<std::vector<std::string>> CheckColumnNames(std::vector<std::string> features) {
  std::sort(features.begin(), features.end());
  if (features.size() > kMaxColumns) {
    return absl::InvalidArgumentError(
        absl::StrCat("there are ", features.size(), " columns, want at most ", kMaxColumns));
  }
  for (size_t i = 0; i < features.size(); ++i) {
    if (features[i].empty() || features[i].size() > kMaxColumnNameBytes) {
      return absl::InvalidArgumentError(absl::StrCat("the name of a column has ",
                                                     features[i].size(), " bytes, want 1 to ",
                                                     kMaxColumnNameBytes));
    }
    if (i > 0 && features[i - 1] == features[i]) {
      return absl::InvalidArgumentError(
          absl::StrCat("column '", ForeignName(features[i]), "' is named twice"));
    }
  }
  return features;
}

absl::StatusOr<NotedColumns> NoteColumns(const RecordSource& shard,
                                         const std::vector<std::string>& features,
                                         const NoteColumnsOptions& options) {
  const std::string path = PathOf(shard, options.index_dir);
  const ByteSource* const unkept = options.unkept.get();
  NotedColumns noted;
  if (!options.rebuild) {
    absl::StatusOr<std::vector<Column>> stored = ReadFile(shard, path, unkept, &features);
    if (stored.ok() && stored->size() == features.size()) {
      noted.columns = *std::move(stored);
      return noted;
    }
  }
  // The file is written anew, with the columns that it has.
  std::vector<Column> columns;
  absl::StatusOr<std::vector<Column>> stored = ReadFile(shard, path, unkept, nullptr);
  if (stored.ok()) {
    columns = *std::move(stored);
  } else if (MayPass(stored.status())) {
    return stored.status();
  } else if (!absl::IsNotFound(stored.status())) {
    noted.note = absl::StrCat("columns \"", ForeignText(ShownName(path)),
                              "\" not used: ", stored.status().message());
  }
  std::vector<std::string> wanted;
  for (const std::string& feature : features) {
    if (options.rebuild || !Has(columns, feature)) wanted.push_back(feature);
  }
  SYSTOLE_ASSIGN_OR_RETURN(Pass pass, Pass::Create(shard, wanted));
  SYSTOLE_ASSIGN_OR_RETURN(std::vector<Column> made, pass.Run());
  Merge(std::move(made), columns);
  if (columns.size() > kMaxColumns) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the file of columns would have ", columns.size(), " columns, want at most ",
                     kMaxColumns, "; remove \"", ForeignText(ShownName(path)), "\" to begin anew"));
  }
  std::string text = ColumnFileText(ContentOf(shard), columns);
  const absl::Status kept =
      path.empty() ? absl::OkStatus() : KeepStored(path, text, options.write_index);
  if (path.empty() || !kept.ok()) {
    noted.unkept = std::make_shared<const MemorySource>(std::move(text));
  }
  if (!kept.ok()) {
    absl::StrAppend(&noted.note, noted.note.empty() ? "" : "; ",
                    "columns not kept: ", kept.message());
  }
  for (const std::string& feature : features) {
    const auto found = std::find_if(columns.begin(), columns.end(), [&](const Column& column) {
      return column.feature == feature;
    });
    noted.columns.push_back(std::move(*found));
  }
  return noted;
}

absl::StatusOr<std::vector<Column>> ReadShardColumns(const RecordSource& shard,
                                                     absl::string_view index_dir,
                                                     const ByteSource* unkept,
                                                     const std::vector<std::string>& features) {
  const std::string path = PathOf(shard, index_dir);
  absl::StatusOr<std::vector<Column>> columns = ReadFile(shard, path, unkept, &features);
  if (unkept != nullptr && !path.empty() && columns.ok() && columns->size() < features.size()) {
    // Somebody else may have noted them since.
    columns = ReadFile(shard, path, nullptr, &features);
  }
  if (absl::IsFailedPrecondition(columns.status()) || absl::IsInvalidArgument(columns.status())) {
    return absl::NotFoundError(columns.status().message());
  }
  SYSTOLE_RETURN_IF_ERROR(columns.status());
  for (const std::string& feature : features) {
    if (!Has(*columns, feature)) {
      return absl::NotFoundError(
          absl::StrCat("there is no column of '", ForeignName(feature), "'"));
    }
  }
  return columns;
}

}  // namespace systole
