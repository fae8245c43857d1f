// Finds the samples of a WebDataset archive: the consecutive files of one key. Damage is part of
// the result, not an error.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_RECORD_WEBDATASET_SCAN_ARCHIVE_H_
#define SYSTOLE_CORE_RECORD_WEBDATASET_SCAN_ARCHIVE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/record/source/record_index.h"
#include "core/storage/byte_source.h"

namespace systole {

// A sample. Its bytes begin at the end of the previous sample, and end with this sample's last
// file.
struct Sample {
  uint32_t crc = 0;      // CRC-32C of all these bytes.
  bool damaged = false;  // A file of the sample may be missing.
};

struct ScannedArchive {
  RecordIndex index;
  std::vector<Sample> samples;
};

// Reads all of `archive`. A tar header is trusted only if its checksum matches and its file ends
// within the archive. Otherwise the scan goes on at the next block that is a header. The skipped
// bytes may have held a file of the sample before or of the sample after, so both samples are
// marked as damaged. If the files before and after the skipped bytes are of one sample, only this
// sample is damaged. An entry without a readable name also damages the samples before and after it,
// and so does a block of zeros with data after it. An archive that ends without a block of zeros
// was cut: its last sample is damaged. If an archive is damaged and no file is found in it, the
// whole archive is one damaged sample. Each sample takes 16 bytes of memory.
//   ResourceExhausted  there are more than `max_samples` (not set: any number). The message names
//                      the archive.
//   Otherwise only errors of `archive`.
absl::StatusOr<ScannedArchive> ScanArchive(const ByteSource& archive,
                                           std::optional<uint64_t> max_samples = {});

}  // namespace systole

#endif  // SYSTOLE_CORE_RECORD_WEBDATASET_SCAN_ARCHIVE_H_
