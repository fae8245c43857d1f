// The index of a WebDataset archive. It is kept in a file for two reasons. Making the index takes a
// read of the whole archive. And later damage is found only by the checksums in the index, because
// an archive has no checksums of the content of its files.
//   systole-samples-1 <archive bytes> <samples> <damaged> <XXH3-64 of all that follows, 16 hex>\n
//   <identity>\n                            of the file, which may be compressed (StoredState)
//   <size> <CRC-32C, 8 hex> <good|damaged>\n  for each sample
//   <sample> <cause>\n                        for each of the first 100 damaged ones
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_RECORD_WEBDATASET_SAMPLE_INDEX_H_
#define SYSTOLE_CORE_RECORD_WEBDATASET_SAMPLE_INDEX_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/record/webdataset/scan_archive.h"

namespace systole {

std::string SampleIndexText(const ScannedArchive& archive, uint64_t archive_bytes,
                            absl::string_view identity);

// The most bytes of the text of an index for an archive of `archive_bytes` and at most
// `max_samples`.
uint64_t MaxSampleIndexBytes(uint64_t archive_bytes, uint64_t max_samples = kMaxIndexedRecords);

// Reads the text of an index.
//   FailedPrecondition  the text was made for another state of the file or of the archive, or
//                       `identity` is empty, so that states cannot be told apart.
//   InvalidArgument     `text` is not that of an index. The message says what is wrong.
absl::StatusOr<ScannedArchive> ParseSampleIndex(absl::string_view text, uint64_t archive_bytes,
                                                absl::string_view identity);

}  // namespace systole

#endif  // SYSTOLE_CORE_RECORD_WEBDATASET_SAMPLE_INDEX_H_
