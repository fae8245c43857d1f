#include "core/record/webdataset/sample_index.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "core/checksum/xxh3.h"
#include "core/record/source/consume_number.h"
#include "core/record/webdataset/tar_entry.h"
#include "core/storage/store.h"

namespace systole {
namespace {

constexpr absl::string_view kIndexMagic = "systole-samples-1 ";
constexpr absl::string_view kGood = "good\n";
constexpr absl::string_view kDamaged = "damaged\n";

// The most bytes of a cause in an index. Causes that we write are shorter, but a file that is read
// may contain anything.
constexpr size_t kMaxCauseBytes = 256;
// Room for a line: its two numbers and its word, which is "good" or "damaged".
constexpr uint64_t kMaxSampleLineBytes = 40;
constexpr uint64_t kMinSampleLineBytes = sizeof("1 00000000 good\n") - 1;
constexpr uint64_t kMaxHeadBytes = 200 + kMaxIdentityBytes;

absl::Status Wrong(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("index ", what));
}

}  // namespace

uint64_t MaxSampleIndexBytes(uint64_t archive_bytes, uint64_t max_samples) {
  // A sample has at least one block.
  const uint64_t samples = std::min(archive_bytes / kTarBlockBytes + 1, max_samples);
  return kMaxHeadBytes + kMaxSampleLineBytes * samples +
         kMaxDamagedListed * (kMaxCauseBytes + kMaxSampleLineBytes);
}

std::string SampleIndexText(const ScannedArchive& archive, uint64_t archive_bytes,
                            absl::string_view identity) {
  std::string body = absl::StrCat(identity, "\n");
  for (int64_t i = 0; i < archive.index.num_records(); ++i) {
    const Sample& sample = archive.samples[static_cast<size_t>(i)];
    absl::StrAppendFormat(&body, "%d %08x %s", archive.index.span(i).size, sample.crc,
                          sample.damaged ? kDamaged : kGood);
  }
  for (const DamagedRecord& damaged : archive.index.damaged()) {
    absl::StrAppend(&body, damaged.record, " ", damaged.cause, "\n");
  }
  return absl::StrFormat("%s%d %d %d %016x\n%s", kIndexMagic, archive_bytes,
                         archive.index.num_records(), archive.index.num_damaged(), Xxh3(body),
                         body);
}

absl::StatusOr<ScannedArchive> ParseSampleIndex(absl::string_view text, uint64_t archive_bytes,
                                                absl::string_view identity) {
  if (!absl::ConsumePrefix(&text, kIndexMagic)) return Wrong("is not an index of samples");
  uint64_t bytes = 0;
  uint64_t samples = 0;
  uint64_t num_damaged = 0;
  uint64_t hash = 0;
  if (!ConsumeNumber(text, ' ', bytes) || !ConsumeNumber(text, ' ', samples) ||
      !ConsumeNumber(text, ' ', num_damaged) || text.find('\n') != 16 ||
      !ConsumeNumber(text, '\n', hash, 16)) {
    return Wrong("has a malformed first line");
  }
  if (Xxh3(text) != hash) return Wrong("is damaged: its hash does not match");
  if (identity.empty() || bytes != archive_bytes || !absl::ConsumePrefix(&text, identity) ||
      !absl::ConsumePrefix(&text, "\n")) {
    return absl::FailedPreconditionError("index was made for another state of the shard");
  }
  if (samples > archive_bytes / kTarBlockBytes + 1) {
    return Wrong("has more samples than the archive can hold");
  }
  std::vector<uint64_t> ends;
  ScannedArchive archive;
  // Reserves memory only for as many lines as `text` can hold. An index on a server may claim any
  // number of samples.
  const uint64_t most_lines = text.size() / kMinSampleLineBytes;
  ends.reserve(std::min(samples, most_lines));
  archive.samples.reserve(std::min(samples, most_lines));
  uint64_t end = 0;
  uint64_t seen_damaged = 0;
  for (uint64_t i = 0; i < samples; ++i) {
    uint64_t size = 0;
    uint64_t crc = 0;
    const bool numbers =
        ConsumeNumber(text, ' ', size) && text.find(' ') == 8 && ConsumeNumber(text, ' ', crc, 16);
    if (!numbers || size == 0 || size > archive_bytes - end) {
      return Wrong(absl::StrCat("has a malformed line for sample ", i));
    }
    const bool damaged = absl::ConsumePrefix(&text, kDamaged);
    if (!damaged && !absl::ConsumePrefix(&text, kGood)) {
      return Wrong(absl::StrCat("does not say whether sample ", i, " is good"));
    }
    seen_damaged += damaged ? 1 : 0;
    end += size;
    ends.push_back(end);
    archive.samples.push_back({.crc = static_cast<uint32_t>(crc), .damaged = damaged});
  }
  RecordIndex index(std::move(ends));
  std::vector<DamagedRecord> damaged;
  while (!text.empty()) {
    uint64_t sample = 0;
    const int64_t before = damaged.empty() ? -1 : damaged.back().record;
    if (!ConsumeNumber(text, ' ', sample) || sample >= samples ||
        static_cast<int64_t>(sample) <= before || !archive.samples[sample].damaged ||
        text.find('\n') > kMaxCauseBytes) {
      return Wrong("has a malformed list of damage");
    }
    const absl::string_view cause = text.substr(0, text.find('\n'));
    const auto record = static_cast<int64_t>(sample);
    damaged.push_back({.record = record, .span = index.span(record), .cause = std::string(cause)});
    text.remove_prefix(cause.size() + 1);
  }
  if (seen_damaged != num_damaged ||
      damaged.size() != std::min<uint64_t>(num_damaged, kMaxDamagedListed)) {
    return Wrong("does not list as many damaged samples as it says");
  }
  archive.index =
      std::move(index).WithDamage(std::move(damaged), static_cast<int64_t>(num_damaged));
  return archive;
}

}  // namespace systole
