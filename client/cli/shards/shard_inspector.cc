#include "client/cli/shards/shard_inspector.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/shards/jpeg_check.h"
#include "core/concurrency/worker_pool.h"
#include "core/example/example_parser.h"
#include "core/memory/aligned_buffer.h"
#include "core/record/shard_formats.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

// The most records that are looked at in each shard, and in all shards together.
constexpr int64_t kSamplePerShard = 16;
constexpr int64_t kMostSampled = 1000;
// The most damaged stretches of a shard that are shown with their causes.
constexpr size_t kMostDamagedShown = 3;
constexpr int64_t kPreviewValues = 8;
constexpr size_t kPreviewBytes = 60;

// Widens `range` so that it holds `value`, too. `seen` says how many numbers it was made from so
// far.
void Widen(Range& range, int64_t seen, int64_t value) {
  range.least = seen == 0 ? value : std::min(range.least, value);
  range.most = seen == 0 ? value : std::max(range.most, value);
}

absl::Status SummariseBytes(const FeatureView& feature, JpegCheck& jpeg_check,
                            FeatureSummary& summary, int64_t& values_seen) {
  for (int64_t i = 0; i < feature.count(); ++i) {
    SYSTOLE_ASSIGN_OR_RETURN(const absl::string_view value, feature.BytesAt(i));
    Widen(summary.bytes, values_seen++, static_cast<int64_t>(value.size()));
    if (!LooksLikeJpeg(value)) continue;
    const absl::StatusOr<ImageInfo> info = jpeg_check.ReadHeader(value);
    if (!info.ok()) continue;
    Widen(summary.width, summary.jpegs, info->width);
    Widen(summary.height, summary.jpegs, info->height);
    ++summary.jpegs;
  }
  return absl::OkStatus();
}

// Gathers feature summaries record by record.
class FeatureGatherer {
 public:
  absl::Status Add(const ExampleView& example, JpegCheck& jpeg_check) {
    for (const FeatureView& feature : example.Features()) {
      Gathered& gathered = by_name_[std::string(feature.name())];
      FeatureSummary& summary = gathered.summary;
      if (summary.records == 0) {
        summary.name = std::string(feature.name());
        summary.kind = feature.kind();
      }
      if (feature.kind() != summary.kind) {
        ++summary.other_kind;
        continue;
      }
      Widen(summary.values, summary.records++, feature.count());
      if (feature.kind() == FeatureKind::kBytes) {
        SYSTOLE_RETURN_IF_ERROR(SummariseBytes(feature, jpeg_check, summary, gathered.values_seen));
      }
    }
    return absl::OkStatus();
  }

  std::vector<FeatureSummary> Take() {
    std::vector<FeatureSummary> summaries;
    for (auto& [name, gathered] : by_name_) summaries.push_back(std::move(gathered.summary));
    return summaries;
  }

 private:
  struct Gathered {
    FeatureSummary summary;
    int64_t values_seen = 0;
  };
  std::map<std::string, Gathered> by_name_;
};

bool IsText(absl::string_view value) {
  return std::all_of(value.begin(), value.end(),
                     [](char c) { return absl::ascii_isprint(static_cast<unsigned char>(c)); });
}

std::string PreviewBytes(absl::string_view value, JpegCheck& jpeg_check) {
  if (LooksLikeJpeg(value)) {
    const absl::StatusOr<ImageInfo> info = jpeg_check.ReadHeader(value);
    if (!info.ok())
      return absl::StrCat(value.size(), " bytes, a broken JPEG: ", info.status().message());
    return absl::StrCat(value.size(), " bytes, JPEG ", info->width, " x ", info->height, ", ",
                        info->components, info->components == 1 ? " component" : " components");
  }
  if (!IsText(value)) return absl::StrCat(value.size(), " bytes");
  return absl::StrCat("\"", absl::CEscape(value.substr(0, kPreviewBytes)), "\"",
                      value.size() > kPreviewBytes ? "..." : "");
}

absl::StatusOr<std::string> Preview(const FeatureView& feature, JpegCheck& jpeg_check) {
  std::vector<std::string> texts;
  const int64_t shown = std::min(feature.count(), kPreviewValues);
  if (feature.kind() == FeatureKind::kBytes) {
    for (int64_t i = 0; i < shown; ++i) {
      SYSTOLE_ASSIGN_OR_RETURN(const absl::string_view value, feature.BytesAt(i));
      texts.push_back(PreviewBytes(value, jpeg_check));
    }
  } else if (feature.kind() == FeatureKind::kInt64) {
    std::vector<int64_t> values(feature.count());
    SYSTOLE_RETURN_IF_ERROR(feature.CopyInt64s(absl::MakeSpan(values)));
    for (int64_t i = 0; i < shown; ++i) texts.push_back(absl::StrCat(values[i]));
  } else if (feature.kind() == FeatureKind::kFloat) {
    std::vector<float> values(feature.count());
    SYSTOLE_RETURN_IF_ERROR(feature.CopyFloats(absl::MakeSpan(values)));
    for (int64_t i = 0; i < shown; ++i) texts.push_back(absl::StrCat(values[i]));
  }
  if (feature.count() > shown) texts.push_back("...");
  return absl::StrJoin(texts, ", ");
}

}  // namespace

std::vector<PlacedDamage> FirstDamaged(const RecordSource& shard, size_t at_most) {
  std::vector<PlacedDamage> placed;
  for (const DamagedRecord& damaged : shard.damaged()) {
    if (placed.size() == at_most) break;
    placed.push_back({.record = damaged.record,
                      .offset = damaged.span.offset,
                      .file = shard.FileOf(damaged.record),
                      .place = shard.PlaceOf(damaged.record),
                      .cause = damaged.cause});
  }
  return placed;
}

absl::StatusOr<InspectReport> InspectShards(absl::Span<const std::string> paths,
                                            const InspectOptions& options) {
  SYSTOLE_ASSIGN_OR_RETURN(JpegCheck jpeg_check, JpegCheck::Create());
  InspectReport report;
  FeatureGatherer features;
  AlignedBuffer scratch;
  SYSTOLE_ASSIGN_OR_RETURN(std::vector<NamedShard> shards,
                           GroupShards({paths.begin(), paths.end()}));
  report.is_group = !shards.empty() && shards.front().is_group();
  ShardOptions scanning = {.index_use = IndexUse::kIgnore};
  if (report.is_group) {
    scanning.for_each = [&options](int64_t count, absl::FunctionRef<void(int64_t)> work) {
      ParallelFor(options.threads, count, work);
    };
    scanning.file_done = [&options](uint64_t /*bytes*/) {
      if (options.file_done != nullptr) options.file_done();
    };
  }
  for (NamedShard& files : shards) {
    SYSTOLE_ASSIGN_OR_RETURN(
        std::unique_ptr<const RecordSource> shard,
        OpenShard({.path = files.path, .format = files.format, .group = std::move(files.group)},
                  scanning));
    report.shards.push_back({.path = files.path,
                             .records = shard->num_records(),
                             .bytes = shard->size_bytes(),
                             .file_bytes = shard->file_bytes(),
                             .damaged = shard->num_damaged(),
                             .first_damaged = FirstDamaged(*shard, kMostDamagedShown),
                             .content_hash = shard->content_hash(),
                             .indexed_path = shard->indexed_path()});
    report.records += shard->num_records();
    report.bytes += shard->size_bytes();
    const int64_t sample =
        std::min({shard->num_records(), kSamplePerShard, kMostSampled - report.sampled});
    for (int64_t record = 0; record < sample; ++record) {
      ++report.sampled;
      const absl::StatusOr<absl::string_view> payload = shard->ReadRecord(record, scratch);
      if (!payload.ok()) {
        ++report.unreadable;
        continue;
      }
      const absl::StatusOr<ExampleView> example = ExampleView::Parse(*payload, shard->examples());
      if (!example.ok()) {
        ++report.no_example;
        report.example_name = std::string(shard->examples().name());
        continue;
      }
      SYSTOLE_RETURN_IF_ERROR(features.Add(*example, jpeg_check));
    }
    if (!report.is_group && options.file_done != nullptr) options.file_done();
    if (options.opened != nullptr) options.opened->push_back(std::move(shard));
  }
  report.features = features.Take();
  return report;
}

absl::StatusOr<RecordDetail> InspectRecord(absl::Span<const std::string> paths, int64_t record) {
  int64_t before = 0;
  SYSTOLE_ASSIGN_OR_RETURN(const std::vector<NamedShard> shards,
                           GroupShards({paths.begin(), paths.end()}));
  for (const NamedShard& files : shards) {
    ShardOptions scanning = {.index_use = IndexUse::kIgnore};
    if (files.is_group()) {  // A group of files is always the only element of `shards`.
      const auto records = static_cast<int64_t>(files.group.files.size());
      if (record < 0 || record >= records) {
        before = records;
        break;
      }
      scanning.only_record = record;
    }
    SYSTOLE_ASSIGN_OR_RETURN(const std::unique_ptr<RecordSource> shard, OpenShard(files, scanning));
    if (record < 0 || record - before >= shard->num_records()) {
      before += shard->num_records();
      continue;
    }
    RecordDetail detail;
    detail.shard = files.path;
    detail.record_in_shard = record - before;
    detail.file = shard->FileOf(detail.record_in_shard);
    if (detail.file.empty()) detail.offset = shard->span(detail.record_in_shard).offset;
    detail.place = shard->PlaceOf(detail.record_in_shard);
    AlignedBuffer scratch;
    SYSTOLE_ASSIGN_OR_RETURN(const absl::string_view payload,
                             shard->ReadRecord(detail.record_in_shard, scratch));
    detail.payload_bytes = payload.size();
    detail.example_name = std::string(shard->examples().name());
    const absl::StatusOr<ExampleView> example = ExampleView::Parse(payload, shard->examples());
    if (!example.ok()) {
      detail.no_example = std::string(example.status().message());
      return detail;
    }
    SYSTOLE_ASSIGN_OR_RETURN(JpegCheck jpeg_check, JpegCheck::Create());
    for (const FeatureView& feature : example->Features()) {
      SYSTOLE_ASSIGN_OR_RETURN(std::string preview, Preview(feature, jpeg_check));
      detail.features.push_back(
          {std::string(feature.name()), feature.kind(), feature.count(), std::move(preview)});
    }
    return detail;
  }
  return absl::NotFoundError(
      absl::StrCat("there is no record ", record, "; there are ", before, ", counted from 0"));
}

}  // namespace systole
