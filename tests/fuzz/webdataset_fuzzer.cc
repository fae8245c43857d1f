// Reads any bytes as a WebDataset archive, as one sample of an archive, and as an archive's index.
// No read goes outside the bytes. The scan, the index and the reads of records agree.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "core/example/example_parser.h"
#include "core/record/webdataset/sample_index.h"
#include "core/record/webdataset/scan_archive.h"
#include "core/record/webdataset/webdataset_sample.h"
#include "core/record/webdataset/webdataset_shard.h"
#include "core/status/check.h"
#include "core/storage/memory_source.h"
#include "tests/core/record/webdataset/archive_builder.h"
#include "tests/fuzz/fuzzer.h"

namespace systole {
namespace {

void CheckArchive(const std::string& bytes) {
  const std::string identity = "5 77";
  const absl::StatusOr<ScannedArchive> scanned = ScanArchive(MemorySource(bytes));
  SYSTOLE_CHECK(scanned.ok());
  const RecordIndex& index = scanned->index;
  SYSTOLE_CHECK(index.end() <= bytes.size());
  SYSTOLE_CHECK(scanned->samples.size() == static_cast<size_t>(index.num_records()));

  const std::string text = SampleIndexText(*scanned, bytes.size(), identity);
  SYSTOLE_CHECK(text.size() <= MaxSampleIndexBytes(bytes.size()));
  const absl::StatusOr<ScannedArchive> parsed = ParseSampleIndex(text, bytes.size(), identity);
  SYSTOLE_CHECK(parsed.ok() && SampleIndexText(*parsed, bytes.size(), identity) == text);

  ShardFile file = {.bytes = std::make_unique<MemorySource>(bytes, "/nowhere/fuzz.tar"),
                    .state = {.size_bytes = bytes.size(), .identity = identity}};
  const absl::StatusOr<std::unique_ptr<RecordSource>> shard =
      WebDatasetFormat().open(std::move(file), {.index_use = IndexUse::kIgnore});
  SYSTOLE_CHECK(shard.ok());
  AlignedBuffer scratch;
  for (int64_t i = 0; i < index.num_records(); ++i) {
    const absl::StatusOr<absl::string_view> record = (*shard)->ReadRecord(i, scratch);
    SYSTOLE_CHECK(record.ok() == !scanned->samples[static_cast<size_t>(i)].damaged);
    if (!record.ok()) continue;
    const absl::StatusOr<ExampleView> view = ExampleView::Parse(*record, WebDatasetSample());
    // A sample that the scan has found has exactly one key.
    if (view.ok()) SYSTOLE_CHECK(view->Find("__key__").count() == 1);
  }
}

void CheckSample(const std::string& bytes) {
  const absl::StatusOr<ExampleView> view = ExampleView::Parse(bytes, WebDatasetSample());
  if (!view.ok()) return;
  for (const FeatureView& feature : view->Features()) {
    SYSTOLE_CHECK(feature.count() == 1);
    if (feature.kind() != FeatureKind::kBytes) continue;
    SYSTOLE_CHECK(feature.BytesAt(0).ok());
    SYSTOLE_CHECK(feature.BytesAt(0)->size() <= bytes.size());
  }
}

// Computes the checksums of all headers again, so that a changed header is accepted.
std::string Resealed(std::string bytes) {
  for (size_t at = 0; at + kTarBlockBytes <= bytes.size(); at += kTarBlockBytes) {
    if (bytes.compare(at + 257, 5, "ustar") != 0) continue;
    bytes.replace(at, kTarBlockBytes, WithNewChecksum(bytes.substr(at, kTarBlockBytes)));
  }
  return bytes;
}

}  // namespace
}  // namespace systole

SYSTOLE_FUZZER(webdataset, const uint8_t* data, size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  systole::CheckArchive(bytes);
  systole::CheckArchive(systole::Resealed(bytes));
  systole::CheckSample(systole::Resealed(bytes));
  (void)systole::ParseSampleIndex(bytes, size, {});
  return 0;
}
