// Describes shards and single records, for `systole inspect`. Writes nothing, not even index
// files.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CLIENT_CLI_SHARDS_SHARD_INSPECTOR_H_
#define SYSTOLE_CLIENT_CLI_SHARDS_SHARD_INSPECTOR_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/example/feature_view.h"
#include "core/record/source/record_source.h"

namespace systole {

// The smallest and the largest value of some quantity.
struct Range {
  int64_t least = 0;
  int64_t most = 0;
};

// A damaged record, with its place in words.
struct PlacedDamage {
  int64_t record = 0;
  uint64_t offset = 0;
  std::string file;   // The file, "rose/1.jpg", in a group of files; otherwise empty.
  std::string place;  // RecordSource::PlaceOf().
  std::string cause;
};

// The first `at_most` damaged records that `shard` lists.
std::vector<PlacedDamage> FirstDamaged(const RecordSource& shard, size_t at_most);

struct ShardSummary {
  std::string path;
  int64_t records = 0;
  uint64_t bytes = 0;       // Decompressed.
  uint64_t file_bytes = 0;  // As stored.
  // How many stretches have no readable header. A stretch covers one record or more. Payloads are
  // not checked.
  int64_t damaged = 0;
  std::vector<PlacedDamage> first_damaged;  // A few of them.
  uint64_t content_hash = 0;                // RecordSource::content_hash().
  std::string indexed_path;                 // RecordSource::indexed_path().
};

// One feature, summed up over the InspectReport::sampled records.
struct FeatureSummary {
  std::string name;
  FeatureKind kind = FeatureKind::kMissing;  // In the first record that has it.
  int64_t records = 0;                       // Records in which the feature has this kind.
  int64_t other_kind = 0;                    // Records in which the feature has another kind.
  Range values;                              // How many values a record has.
  Range bytes;                               // Size of a value; kBytes only.
  int64_t jpegs = 0;                         // Values that are JPEGs by their headers.
  Range width, height;                       // Sizes of these JPEGs, in pixels.
};

struct InspectReport {
  std::vector<ShardSummary> shards;
  bool is_group = false;  // The only shard is a group of files, which no manifest lists.
  int64_t records = 0;
  uint64_t bytes = 0;
  int64_t sampled = 0;       // Records looked at for `features`: the first ones of each shard.
  int64_t no_example = 0;    // How many of the `sampled` records have no readable features.
  std::string example_name;  // The kind of record expected: "tf.train.Example".
  int64_t unreadable = 0;    // How many of the `sampled` records failed a checksum.
  std::vector<FeatureSummary> features;  // By name.
};

struct InspectOptions {
  // How many threads look at a group of files, in which each file is one record. At least 1.
  int threads = 1;
  // Called from any thread, after each file that was looked at. May be null.
  std::function<void()> file_done = {};
  // If not null, the shards are added to this vector and stay open. Their indexes take about 9
  // bytes of memory for each record.
  std::vector<std::unique_ptr<const RecordSource>>* opened = nullptr;
};

// `paths` are files. All files that hold one record each, such as images, form one shard
// (GroupShards()). Errors are those of opening and reading the files.
absl::StatusOr<InspectReport> InspectShards(absl::Span<const std::string> paths,
                                            const InspectOptions& options = {});

struct FeatureDetail {
  std::string name;
  FeatureKind kind = FeatureKind::kMissing;
  int64_t count = 0;
  // The first values as text. Strings are quoted, and long ones are cut. For other bytes the text
  // gives the number of bytes. For a JPEG it also gives width, height and number of components.
  std::string preview;
};

struct RecordDetail {
  std::string shard;  // Path.
  int64_t record_in_shard = 0;
  uint64_t offset = 0;  // From the shard's start, in bytes; 0 if `file` is not empty.
  std::string file;     // The file, "rose/1.jpg", in a group of files; otherwise empty.
  std::string place;    // RecordSource::PlaceOf().
  uint64_t payload_bytes = 0;
  std::string example_name;             // The kind of record expected: "tf.train.Example".
  std::string no_example;               // Why the payload is not of this kind; empty if it is.
  std::vector<FeatureDetail> features;  // By name.
};

// Describes one record. `record` is the record's number, counted from 0 over all of `paths` in
// order. In a feed of these shards, the same number is the `record_id`. If `paths` are a group of
// files with one record each, only this record's file is read.
//   NotFound  there is no such record.
//   DataLoss  the record is damaged. The message names shard, record, offset and cause.
absl::StatusOr<RecordDetail> InspectRecord(absl::Span<const std::string> paths, int64_t record);

}  // namespace systole

#endif  // SYSTOLE_CLIENT_CLI_SHARDS_SHARD_INSPECTOR_H_
