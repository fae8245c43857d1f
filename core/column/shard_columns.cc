#include "core/column/shard_columns.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <numeric>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/checksum/xxh3.h"
#include "core/column/column_file.h"
#include "core/example/example_parser.h"
#include "core/interrupt/interrupt.h"
#include "core/memory/aligned_buffer.h"
#include "core/record/source/index_path.h"
#include "core/status/status_macros.h"
#include "core/storage/byte_source.h"
#include "core/storage/stores/list_shards.h"
#include "core/storage/stores/stored_file.h"
#include "core/text/foreign_text.h"

namespace systole {
namespace {

// How many records a call of ReadRecords() reads. An interruption is noticed between two calls.
constexpr int64_t kRecordsAtOnce = 4096;

ShardContent ContentOf(const RecordSource& shard) {
  return {.hash = shard.content_hash(), .num_records = shard.num_records()};
}

// Whether the error of reading a record says that the record is damaged. Any other error may be
// gone at the next read.
bool IsDamage(const absl::Status& error) {
  return absl::IsDataLoss(error) || absl::IsResourceExhausted(error);
}

// Whether the error of reading a column's file may be gone at the next try. If so, MakeColumns()
// returns the error, and does not make the column again from the records.
bool MayPass(const absl::Status& error) {
  return absl::IsUnavailable(error) || absl::IsDeadlineExceeded(error) || absl::IsCancelled(error);
}

// The column of `feature` from the shard's file.
absl::StatusOr<Column> ReadFile(const RecordSource& shard, absl::string_view index_dir,
                                const std::string& feature) {
  const absl::Status none =
      absl::NotFoundError(absl::StrCat("there is no column of '", ForeignName(feature), "'"));
  const std::string indexed = shard.indexed_path();
  if (indexed.empty()) return none;
  const std::string path = ColumnPath(IndexPath(indexed, index_dir), feature);
  const absl::StatusOr<std::unique_ptr<ByteSource>> file = OpenStored(path);
  if (file.ok()) return ReadColumnFile(**file, ContentOf(shard), feature);
  if (IsAbsent(file.status(), path)) return none;
  return MayPass(file.status()) ? file.status()
                                : absl::PermissionDeniedError(file.status().message());
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
      if (InterruptRequested())
        return absl::CancelledError("interrupted while the columns of a shard were made");
      records.resize(static_cast<size_t>(std::min(kRecordsAtOnce, shard_.num_records() - begin)));
      std::iota(records.begin(), records.end(), begin);
      SYSTOLE_RETURN_IF_ERROR(shard_.ReadRecords(
          records, RecordBytes::kCopied, static_cast<int64_t>(kMostFarReadBytes), scratch,
          [this](size_t /*place*/, absl::StatusOr<absl::string_view> payload) {
            return Add(payload);
          }));
      if (begin > 0) continue;
      // The number of records is certain only now. Before the first read, the number may have come
      // from the index of the folder, which can differ from the shard itself.
      for (ColumnBuilder& builder : builders_) builder.Reserve(shard_.num_records());
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

ColumnCounts CountsOf(const Column& column) {
  return {.present = column.CountPresent(), .damaged = column.CountOf(kDamagedRecord)};
}

}  // namespace

std::string ColumnPath(absl::string_view index_path, absl::string_view feature) {
  // Long enough for a person to tell the columns of a shard apart. Programs use the hash.
  std::string shown(feature.substr(0, 24));
  for (char& letter : shown) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(letter))) letter = '_';
  }
  return WithEnding(index_path,
                    absl::StrFormat(".%s-%016x%s", shown, Xxh3(feature), kColumnSuffix));
}

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

absl::StatusOr<MadeColumns> MakeColumns(const RecordSource& shard,
                                        const std::vector<std::string>& features,
                                        const MakeColumnsOptions& options) {
  MadeColumns made;
  made.counts.resize(features.size());
  std::vector<std::string> lacking;
  std::vector<size_t> places;  // The places of `lacking` in `features`.
  for (size_t i = 0; i < features.size(); ++i) {
    if (!options.rebuild) {
      const absl::StatusOr<Column> stored =
          ReadShardColumn(shard, options.index_dir, options.in_memory, features[i]);
      if (stored.ok()) {
        made.counts[i] = CountsOf(*stored);
        continue;
      }
      if (MayPass(stored.status())) return stored.status();
      if (!absl::IsNotFound(stored.status()) && made.note.empty()) {
        made.note = absl::StrCat("column '", ForeignName(features[i]),
                                 "' not used: ", stored.status().message());
      }
    }
    lacking.push_back(features[i]);
    places.push_back(i);
  }
  if (lacking.empty()) return made;
  SYSTOLE_ASSIGN_OR_RETURN(Pass pass, Pass::Create(shard, lacking));
  SYSTOLE_ASSIGN_OR_RETURN(made.columns, pass.Run());
  for (size_t i = 0; i < places.size(); ++i) made.counts[places[i]] = CountsOf(made.columns[i]);
  return made;
}

absl::Status KeepColumn(const RecordSource& shard, const Column& column,
                        absl::string_view index_dir, bool write_index) {
  const std::string path = ColumnPath(IndexPath(shard.indexed_path(), index_dir), column.feature);
  SYSTOLE_RETURN_IF_ERROR(CheckMayKeep(path, write_index));
  return PutStored(path, ColumnFileText(shard.content_hash(), column));
}

absl::StatusOr<Column> ReadShardColumn(const RecordSource& shard, absl::string_view index_dir,
                                       const ColumnsInMemory& in_memory,
                                       const std::string& feature) {
  const auto found = in_memory.find(feature);
  return found != in_memory.end() ? *found->second : ReadFile(shard, index_dir, feature);
}

}  // namespace systole
