// The format of the records of a WebDataset archive. A record is a sample: the stretch of the
// archive that has the sample's files, headers included. Its features:
//   __key__      bytes: the key
//   EXTENSION    bytes: the content of the file KEY.EXTENSION, for every file ("jpg", "seg.png").
//                If the last part of the extension is "cls", the content is a whole number as
//                text, and the feature is an int64
//   EXTENSION/MEMBER   for each member of the outermost JSON object, if the last part of the
//                extension is "json": bytes for a string, int64 for a boolean or for a whole number
//                that fits, float for any other number. Members with other values are left out
// Extensions are in lower case. Other entries of the stretch are skipped.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_RECORD_WEBDATASET_WEBDATASET_SAMPLE_H_
#define SYSTOLE_CORE_RECORD_WEBDATASET_WEBDATASET_SAMPLE_H_

#include <cstddef>

#include "core/example/example_format.h"

namespace systole {

// The most files of a sample. The limit exists because each extension is compared with all others.
inline constexpr int kMaxSampleFiles = 1000;
// The most bytes of a sample's JSON files together. Names and strings of their members are copied
// while an example is made. The copies take at most twice as many bytes as the files, plus 100
// bytes for each copy.
inline constexpr size_t kMaxSampleJsonBytes = size_t{1} << 20;

// Decode() returns DataLoss if a record is not the stretch of exactly one sample, if two files of
// the sample have the same extension, or if a `cls` or JSON file cannot be read. The message names
// the file.
const ExampleFormat& WebDatasetSample();

}  // namespace systole

#endif  // SYSTOLE_CORE_RECORD_WEBDATASET_WEBDATASET_SAMPLE_H_
