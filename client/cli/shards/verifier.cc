#include "client/cli/shards/verifier.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "client/cli/shards/jpeg_check.h"
#include "core/concurrency/worker_pool.h"
#include "core/example/example_parser.h"
#include "core/memory/aligned_buffer.h"
#include "core/record/shard_formats.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

// How many shards are open at a time: far below any limit on file descriptors.
constexpr size_t kShardsAtOnce = 64;
// How many records a thread takes at a time.
constexpr int64_t kBlockRecords = 64;
constexpr int64_t kReadBytes = 1 << 20;

// Consecutive records of one shard, and what was found in them.
struct Block {
  const RecordSource* shard = nullptr;
  int64_t begin = 0;
  int64_t end = 0;
  int64_t jpegs = 0;
  std::map<std::string, int64_t> not_decoded;
  std::vector<BadRecord> bad;
  absl::Status status;  // The error that ended the check early.
};

// The message about a damaged record, without the place that it begins with. The place is printed
// separately.
std::string CauseOf(absl::string_view message, absl::string_view place) {
  const std::string before = absl::StrCat(place, ": ");
  const size_t at = message.find(before);
  return std::string(at == absl::string_view::npos ? message : message.substr(at + before.size()));
}

// The error in the payload, or Unavailable if there is no memory to check it. Adds the intact JPEGs
// and the values that are not JPEGs to the counts in `block`.
absl::Status CheckPayload(absl::string_view payload, JpegCheck& jpeg_check, Block& block) {
  SYSTOLE_ASSIGN_OR_RETURN(const ExampleView example,
                           ExampleView::Parse(payload, block.shard->examples()));
  for (const FeatureView& feature : example.Features()) {
    if (feature.kind() != FeatureKind::kBytes) continue;
    for (int64_t i = 0; i < feature.count(); ++i) {
      SYSTOLE_ASSIGN_OR_RETURN(const absl::string_view value, feature.BytesAt(i));
      if (!LooksLikeJpeg(value)) {
        ++block.not_decoded[std::string(KindOfBytes(value))];
        continue;
      }
      if (const absl::Status decoded = jpeg_check.DecodeAll(value); !decoded.ok()) {
        if (absl::IsUnavailable(decoded)) return decoded;
        return absl::DataLossError(
            absl::StrCat("feature \"", feature.name(), "\": ", decoded.message()));
      }
      ++block.jpegs;
    }
  }
  return absl::OkStatus();
}

absl::Status CheckBlock(bool framing_only, Block& block) {
  SYSTOLE_ASSIGN_OR_RETURN(JpegCheck jpeg_check, JpegCheck::Create());
  AlignedBuffer scratch;
  std::vector<int64_t> records;
  for (int64_t record = block.begin; record < block.end; ++record) records.push_back(record);
  return block.shard->ReadRecords(
      records, RecordBytes::kCopied, kReadBytes, scratch,
      [&](size_t place, absl::StatusOr<absl::string_view> payload) -> absl::Status {
        absl::Status status = payload.status();
        if (status.ok() && !framing_only) {
          status = CheckPayload(*payload, jpeg_check, block);
          if (absl::IsUnavailable(status)) return status;
        } else if (!status.ok() && status.code() != absl::StatusCode::kDataLoss &&
                   status.code() != absl::StatusCode::kResourceExhausted) {
          return status;  // Not damage: the file cannot be read, or has changed.
        }
        if (!status.ok()) {
          const std::string where = block.shard->PlaceOf(records[place]);
          block.bad.push_back({.shard = std::string(block.shard->path()),
                               .record = records[place],
                               .offset = block.shard->span(records[place]).offset,
                               .file = block.shard->FileOf(records[place]),
                               .place = where,
                               .cause = CauseOf(status.message(), where)});
        }
        return absl::OkStatus();
      });
}

// In a group of files, each file is read twice: when the group is opened, and when the file's
// record is checked. This is how many of the file's bytes are reported after the first reading.
int64_t BytesOfFirstLook(uint64_t file_bytes) { return static_cast<int64_t>(file_bytes / 2); }

// The block's share of its shard's bytes. The shares of all blocks add up to the shard's size.
int64_t BytesOf(const Block& block) {
  const auto begin_of = [&block](int64_t record) -> uint64_t {
    if (record == 0) return 0;
    return record == block.shard->num_records() ? block.shard->size_bytes()
                                                : block.shard->span(record).offset;
  };
  return static_cast<int64_t>(begin_of(block.end) - begin_of(block.begin));
}

// How many bytes of BytesOf() were already reported when the group of files was opened.
int64_t BytesOfFirstLook(const Block& block) {
  int64_t bytes = 0;
  for (int64_t record = block.begin; record < block.end; ++record) {
    bytes += BytesOfFirstLook(block.shard->span(record).size);
  }
  return bytes;
}

absl::Status VerifySome(WorkerPool& pool, absl::Span<NamedShard> files,
                        const VerifyOptions& options, absl::FunctionRef<void(int64_t)> progress,
                        VerifyReport& report) {
  ShardOptions scanning = {.index_use = IndexUse::kIgnore,
                           .chunks = std::make_shared<ChunkCache>()};
  std::vector<absl::StatusOr<std::unique_ptr<RecordSource>>> shards;
  for (size_t i = 0; i < files.size(); ++i) shards.emplace_back(absl::UnknownError("not opened"));
  const bool is_group = files.front().is_group();
  if (is_group) {  // A group is the only shard, and its files are opened in parallel.
    scanning.for_each = [&pool](int64_t count, absl::FunctionRef<void(int64_t)> work) {
      ParallelFor(pool, count, work);
    };
    scanning.file_done = [progress](uint64_t bytes) { progress(BytesOfFirstLook(bytes)); };
    shards.front() = OpenShard(std::move(files.front()), scanning);
  } else {
    ParallelFor(pool, static_cast<int64_t>(files.size()),
                [&](int64_t i) { shards[i] = OpenShard(files[i], scanning); });
  }

  std::vector<Block> blocks;
  for (const absl::StatusOr<std::unique_ptr<RecordSource>>& opened : shards) {
    SYSTOLE_RETURN_IF_ERROR(opened.status());
    const RecordSource* const shard = opened->get();
    report.shards.push_back(
        {std::string(shard->path()), shard->num_records(), shard->file_bytes()});
    // In a group each file is one record, even if it is damaged, so there are no stretches.
    if (!is_group) report.stretches += shard->num_damaged();
    report.records += shard->num_records();
    report.bytes += shard->size_bytes();
    for (int64_t begin = 0; begin < shard->num_records(); begin += kBlockRecords) {
      Block block;
      block.shard = shard;
      block.begin = begin;
      block.end = std::min(shard->num_records(), begin + kBlockRecords);
      blocks.push_back(std::move(block));
    }
  }
  ParallelFor(pool, static_cast<int64_t>(blocks.size()), [&](int64_t i) {
    blocks[i].status = CheckBlock(options.framing_only, blocks[i]);
    progress(BytesOf(blocks[i]) - (is_group ? BytesOfFirstLook(blocks[i]) : 0));
  });
  for (Block& block : blocks) {
    SYSTOLE_RETURN_IF_ERROR(block.status);
    report.jpegs += block.jpegs;
    for (const auto& [kind, values] : block.not_decoded) report.not_decoded[kind] += values;
    std::move(block.bad.begin(), block.bad.end(), std::back_inserter(report.bad));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<VerifyReport> Verify(absl::Span<const std::string> paths,
                                    const VerifyOptions& options,
                                    absl::FunctionRef<void(int64_t bytes)> progress) {
  if (options.threads < 1) return absl::InvalidArgumentError("want at least 1 thread");
  SYSTOLE_ASSIGN_OR_RETURN(std::vector<NamedShard> shards,
                           GroupShards({paths.begin(), paths.end()}));
  WorkerPool pool(options.threads);
  VerifyReport report;
  report.is_group = !shards.empty() && shards.front().is_group();
  for (size_t begin = 0; begin < shards.size(); begin += kShardsAtOnce) {
    SYSTOLE_RETURN_IF_ERROR(VerifySome(pool, absl::MakeSpan(shards).subspan(begin, kShardsAtOnce),
                                       options, progress, report));
  }
  return report;
}

}  // namespace systole
