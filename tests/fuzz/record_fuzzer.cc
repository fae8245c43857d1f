// Reads any bytes as a shard. Scan, random access and sequential reader must agree on its records.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/record/source/record_index.h"
#include "core/record/tfrecord/dali_index.h"
#include "core/record/tfrecord/record_reader.h"
#include "core/record/tfrecord/scan_shard.h"
#include "core/record/tfrecord/tfrecord_shard.h"
#include "core/status/check.h"
#include "core/storage/memory_source.h"
#include "tests/fuzz/fuzzer.h"

namespace systole {
namespace {

ScannedShard MustScan(const ByteSource& source, const ScanOptions& options) {
  absl::StatusOr<ScannedShard> scanned = ScanShard(source, options);
  SYSTOLE_CHECK(scanned.ok());  // Damage in the bytes is not an error of the scan.
  return *std::move(scanned);
}

void RunOnShard(const std::string& bytes) {
  const MemorySource source(bytes);
  const ScannedShard verified = MustScan(source, {.verify_payloads = true, .read_bytes = 4096});
  const ScannedShard framed = MustScan(source, {});
  const RecordIndex& index = verified.index;
  SYSTOLE_CHECK(index.end() == bytes.size());
  SYSTOLE_CHECK(DaliIndexText(index) == DaliIndexText(framed.index));
  SYSTOLE_CHECK(verified.content_hash == framed.content_hash);
  const absl::StatusOr<RecordIndex> parsed = ParseDaliIndex(DaliIndexText(index), bytes.size());
  SYSTOLE_CHECK(parsed.ok() && DaliIndexText(*parsed) == DaliIndexText(index));
  const absl::StatusOr<ScannedShard> indexed = ScanIndexed(source, *parsed);
  SYSTOLE_CHECK(indexed.ok() && indexed->content_hash == verified.content_hash);
  SYSTOLE_CHECK(indexed->index.num_damaged() == framed.index.num_damaged());

  const std::vector<DamagedRecord>& listed = index.damaged();
  SYSTOLE_CHECK(listed.size() == std::min<size_t>(index.num_damaged(), kMaxDamagedListed));
  for (const DamagedRecord& damaged : listed) {
    SYSTOLE_CHECK(damaged.span == index.span(damaged.record));
  }
  const absl::StatusOr<TfRecordShard> shard =
      TfRecordShard::Create(std::make_unique<MemorySource>(bytes));
  SYSTOLE_CHECK(shard.ok() && shard->num_records() == index.num_records());
  absl::StatusOr<RecordReader> reader = RecordReader::Create(source, {.read_bytes = 4096});
  SYSTOLE_CHECK(reader.ok());
  AlignedBuffer scratch;
  bool reader_lives = true;
  std::vector<bool> is_damaged(index.num_records(), false);
  size_t num_damaged = 0;
  for (int64_t i = 0; i < index.num_records(); ++i) {
    const absl::StatusOr<absl::string_view> payload = shard->ReadRecord(i, scratch);
    is_damaged[i] = !payload.ok();
    if (!payload.ok() && num_damaged < listed.size())
      SYSTOLE_CHECK(listed[num_damaged].record == i);
    if (!payload.ok()) ++num_damaged;
    if (!reader_lives) continue;
    const absl::StatusOr<std::optional<absl::string_view>> next = reader->Next();
    reader_lives = next.ok();
    SYSTOLE_CHECK(next.ok() == payload.ok());
    if (next.ok()) SYSTOLE_CHECK(next->has_value() && **next == *payload);
  }
  SYSTOLE_CHECK(num_damaged == static_cast<size_t>(index.num_damaged()));
  const absl::StatusOr<std::optional<absl::string_view>> end = reader->Next();
  SYSTOLE_CHECK(reader_lives ? end.ok() && !end->has_value()
                             : end.status().code() == absl::StatusCode::kDataLoss);

  std::vector<int64_t> all(index.num_records());
  for (int64_t i = 0; i < index.num_records(); ++i) all[i] = i;
  const absl::Status read =
      shard->ReadRecords(all, RecordBytes::kCopied, /*max_read_bytes=*/64, scratch,
                         [&](size_t place, absl::StatusOr<absl::string_view> payload) {
                           SYSTOLE_CHECK(payload.ok() != is_damaged[place]);
                           return absl::OkStatus();
                         });
  SYSTOLE_CHECK(read.ok());
}

// Random bytes almost never have a valid CRC, so the input is also taken as a plan for a shard. A
// byte below 200 is the size of a good record. Other bytes add a byte or a header, cut the shard,
// or flip an earlier bit.
std::string ShardFromPlan(const uint8_t* data, size_t size) {
  std::string shard;
  for (size_t i = 0; i < size && shard.size() < 20'000; ++i) {
    if (data[i] < 200) {
      const std::string payload(data[i], static_cast<char>(i));
      char header[kRecordHeaderBytes];
      EncodeRecordHeader(payload.size(), header);
      char footer[kRecordFooterBytes];
      StoreU32Le(PayloadFooter(payload), footer);
      shard.append(header, sizeof(header)).append(payload).append(footer, sizeof(footer));
    } else if (data[i] < 220) {
      shard.push_back(static_cast<char>(data[i]));
    } else if (data[i] < 230) {
      char header[kRecordHeaderBytes];
      EncodeRecordHeader(uint64_t{1} << (data[i] - 200 + 33 * (data[i] % 2)), header);
      shard.append(header, sizeof(header));
    } else if (data[i] < 240) {
      shard.resize(shard.size() - shard.size() % 16);
    } else if (shard.size() > data[i]) {
      shard[shard.size() - 1 - (data[i] - 240) * 13] ^= 1 << (i % 8);
    }
  }
  return shard;
}

}  // namespace
}  // namespace systole

SYSTOLE_FUZZER(record, const uint8_t* data, size_t size) {
  systole::RunOnShard(std::string(reinterpret_cast<const char*>(data), size));
  systole::RunOnShard(systole::ShardFromPlan(data, size));
  return 0;
}
