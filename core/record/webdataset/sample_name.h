// Which sample a file of an archive belongs to, by its name and webdataset's rules.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_RECORD_WEBDATASET_SAMPLE_NAME_H_
#define SYSTOLE_CORE_RECORD_WEBDATASET_SAMPLE_NAME_H_

#include <optional>

#include "absl/strings/string_view.h"

namespace systole {

struct SampleName {
  absl::string_view key;        // "train/0001" of "train/0001.seg.PNG".
  absl::string_view extension;  // "seg.PNG" of the same name. webdataset writes "seg.png".
};

// Nullopt: the file is in no sample, because its name has no dot after a key, or its first folder
// is for metadata: "__..__". The views borrow `path`.
std::optional<SampleName> SampleNameOf(absl::string_view path);

}  // namespace systole

#endif  // SYSTOLE_CORE_RECORD_WEBDATASET_SAMPLE_NAME_H_
