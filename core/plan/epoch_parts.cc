#include "core/plan/epoch_parts.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <vector>

#include "core/order/selection.h"
#include "core/record/source/record_source.h"
#include "core/storage/stored_pieces.h"

namespace systole {
namespace {

// With GLOBAL, a block is the pieces that one record needs, which are fetched together. If no
// record is longer than a piece, a piece is in at most this many different blocks: the piece alone,
// the piece with the one before it, and the piece with the one after it. With longer records there
// are fewer.
constexpr double kBlocksOfAPiece = 3;

// The datasets whose shards hold the records of `dataset`. In a zip, these are the members. A
// dataset that is used as several members counts once.
std::vector<const Dataset*> StoredDatasets(const Dataset& dataset) {
  std::vector<const Dataset*> datasets;
  for (const ZippedMember& member : dataset.zipped()) {
    const Dataset* const own = member.dataset.get();
    if (std::find(datasets.begin(), datasets.end(), own) == datasets.end()) datasets.push_back(own);
  }
  if (datasets.empty()) datasets.push_back(&dataset);
  return datasets;
}

// How many pieces of the first kind (core/storage/stored_pieces.h) a compressed shard has.
// REQUIRES: the shard has records.
double PiecesOf(const RecordSource& shard) {
  return static_cast<double>(
      shard.far_pieces()->PiecesOf({.begin = 0, .end = shard.size_bytes()})[0].end);
}

// How many bytes must be read for the records [first, end) of a far shard. If the shard is
// compressed, whole pieces are read. REQUIRES: first < end.
double BytesBetween(const RecordSource& shard, int64_t first, int64_t end) {
  if (shard.unread_index() != nullptr) {  // Only the mean size of the shard's records is known.
    return static_cast<double>(shard.size_bytes()) / static_cast<double>(shard.num_records()) *
           static_cast<double>(end - first);
  }
  const RecordSpan last = shard.span(end - 1);
  const ByteStretch bytes = {.begin = shard.span(first).offset, .end = last.offset + last.size};
  const StoredPieces* const pieces = shard.far_pieces();
  if (pieces == nullptr) return static_cast<double>(bytes.end - bytes.begin);
  double stored = 0;
  for (const PieceRange& range : pieces->PiecesOf(bytes)) {
    if (range.begin == range.end) continue;
    stored += static_cast<double>(pieces->PlaceOf(range.end - 1).end -
                                  pieces->PlaceOf(range.begin).begin);
  }
  return stored;
}

// The part of the `size` records of a selection, estimated from a sample of at most `most` records.
// A selection may have only some records of a run. So a selected record counts with all bytes from
// its beginning to the next selected record, but with at most `run` bytes. It never counts with
// fewer bytes than its own.
template <typename RecordAt>
EpochPart SampleOf(const Dataset& dataset, int64_t size, RecordAt record_at, int64_t most,
                   double run) {
  EpochPart part = {.positions = static_cast<double>(size)};
  const int64_t looks = std::min(size, most);
  for (int64_t i = 0; i < looks; ++i) {
    const auto position = static_cast<int64_t>(static_cast<double>(i) / static_cast<double>(looks) *
                                               static_cast<double>(size));
    const ShardPlace place = dataset.map().Find(record_at(position));
    const RecordSource& shard = *dataset.shards()[static_cast<size_t>(place.shard)];
    std::optional<ShardPlace> next;
    if (run > 0 && position + 1 < size) next = dataset.map().Find(record_at(position + 1));
    std::vector<RecordSource::Part> seen;
    for (size_t i = 0; i < shard.num_parts(); ++i) {
      const RecordSource::Part own = shard.PartOf(place.index, i);
      if (own.source->far_bytes() == nullptr) continue;
      // A dataset that is used as several members of a zip is fetched once.
      if (std::any_of(seen.begin(), seen.end(),
                      [&](const auto& other) { return other.source == own.source; })) {
        continue;
      }
      seen.push_back(own);
      double bytes = BytesBetween(*own.source, own.record, own.record + 1);
      const bool alone = run == 0 || own.source->ReadsEachRecord();
      if (!alone && next.has_value() && next->shard == place.shard) {
        const RecordSource::Part later = shard.PartOf(next->index, i);
        if (later.source == own.source && later.record > own.record) {
          bytes =
              std::max(bytes, std::min(BytesBetween(*own.source, own.record, later.record), run));
        }
      }
      part.records += 1;
      part.bytes += bytes;
      if (alone) {
        part.alone += bytes;
        part.requests += 1;
      }
    }
  }
  const double share = static_cast<double>(size) / static_cast<double>(std::max<int64_t>(looks, 1));
  part.records = std::round(part.records * share);
  part.bytes *= share;
  part.alone *= share;
  part.requests = std::round(part.requests * share);
  if (part.bytes > part.alone) {
    part.requests =
        std::min(part.records, part.requests + std::ceil((part.bytes - part.alone) / run));
  }
  return part;
}

// Adds the shards of one dataset to `part`. Adds the bytes of all requests to `fetched`. With
// compressed shards, these may count a byte several times.
void AddDataset(const Dataset& dataset, double run, EpochPart& part, double& fetched) {
  double border = 0;
  for (const auto& shard : dataset.shards()) {
    if (shard->far_bytes() == nullptr || shard->num_records() == 0) continue;
    const auto records = static_cast<double>(shard->num_records());
    const auto bytes = static_cast<double>(shard->far_size());
    const bool alone = run == 0 || shard->ReadsEachRecord();
    part.records += records;
    if (shard->far_pieces() == nullptr) {
      part.bytes += bytes;
      fetched += bytes;
      if (alone) part.alone += bytes;
      part.requests += alone ? records : std::min(records, std::ceil(bytes / run));
      continue;
    }
    const double pieces = PiecesOf(*shard);
    border += bytes / pieces * bytes;
    if (!alone) {
      part.bytes += bytes;
      fetched += bytes;
      part.requests += std::min(pieces, std::ceil(bytes / run));
      continue;
    }
    // Each record needs one piece, and one more for each border of pieces that it crosses. `all` is
    // the bytes of these pieces, summed over all records. `kept` counts each different block once:
    // all records within one piece share a block, and all records that cross the same border share
    // another.
    const double all = (records + pieces - 1) * (bytes / pieces);
    const double kept = std::min(all, kBlocksOfAPiece * bytes);
    part.bytes += kept;
    part.alone += kept;
    fetched += all;
    part.requests += records;
  }
  if (border > 0) part.border += border / static_cast<double>(dataset.far_bytes());
}

}  // namespace

bool ReadsEachRecord(const Dataset& dataset) { return DatasetsInRuns(dataset) == 0; }

int64_t DatasetsInRuns(const Dataset& dataset) {
  const std::vector<const Dataset*> datasets = StoredDatasets(dataset);
  return std::count_if(datasets.begin(), datasets.end(), [](const Dataset* one) {
    return std::any_of(one->shards().begin(), one->shards().end(), [](const auto& shard) {
      return shard->far_bytes() != nullptr && !shard->ReadsEachRecord();
    });
  });
}

EpochPart WholePart(const Dataset& dataset, double run) {
  EpochPart part = {.positions = static_cast<double>(dataset.num_records())};
  double fetched = 0;
  for (const Dataset* const one : StoredDatasets(dataset)) AddDataset(*one, run, part, fetched);
  if (part.bytes > 0) {
    part.passes = fetched / part.bytes;
    part.requests /= part.passes;
  }
  part.by_record = part.alone == part.bytes;
  return part;
}

EpochPart PartOf(const Dataset& joined, const Dataset& own, const SelectedRecords& records,
                 int64_t most, double run) {
  if (records.selection == nullptr) return WholePart(own, run);
  EpochPart part = SampleOf(
      joined, records.size(), [&](int64_t position) { return records.RecordAt(position); }, most,
      run);
  part.by_record = run == 0 || ReadsEachRecord(own);
  return part;
}

}  // namespace systole
