// A sample of a WebDataset archive as a format of records. The record is the stretch of the archive
// that has the sample's files, headers included. Its features:
//   __key__      bytes: the key
//   EXTENSION    bytes: the content of the file KEY.EXTENSION, for every file ("jpg", "seg.png").
//                int64 if the last part of the extension is "cls": from a whole number as text
//   EXTENSION/MEMBER, if the last part of the extension is "json": the members of the JSON object
//                that are strings (bytes), whole numbers and booleans (int64), or other numbers
//                (float)
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
// while an example is made. The copies take at most twice as many bytes, plus 100 bytes for each
// copy.
inline constexpr size_t kMaxSampleJsonBytes = size_t{1} << 20;

// Decode() returns DataLoss if a record is not the stretch of exactly one sample, if two files of
// the sample have the same extension, or if a `cls` or JSON file cannot be read. The message names
// the file.
const ExampleFormat& WebDatasetSample();

}  // namespace systole

#endif  // SYSTOLE_CORE_RECORD_WEBDATASET_WEBDATASET_SAMPLE_H_
