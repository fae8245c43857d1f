// Finds the facts about all files of a group. If the index has a line for a file, and the file has
// not changed, the facts come from the index. All other files are read.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_RECORD_IMAGES_READ_IMAGES_H_
#define SYSTOLE_CORE_RECORD_IMAGES_READ_IMAGES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/record/images/image_group.h"
#include "core/record/images/image_index.h"
#include "core/record/source/shard_format.h"

namespace systole {

// The base name of a group's index, without ".idx". Without an index_dir, the index lies in the
// common folder.
inline constexpr char kImageIndexBase[] = "images";

struct SeenImage {
  ImageFacts facts;
  uint64_t identity_hash = 0;  // XXH3-64 of the file's identity.
  std::string identity = {};   // Set for an object on a server.
};

struct ReadImages {
  std::vector<SeenImage> images;  // In the order of ImageGroup::images.
  // Says why no image can be read from a damaged file. The key is the file's index in `images`. Has
  // only the first kMaxDamagedListed damaged files.
  std::map<size_t, std::string> causes;
  std::string note;  // For a person: why the index was not used or is not kept.
};

// Uses and writes the index as ShardOptions::index_use says. With kUse and kKeep, the index is
// written after an error, too, with the lines of all files that were read by then. A file above
// max_record_bytes is not read. It counts as good, with a CRC, a height and a width of 0, and no
// line is made for it in the index. If only_record is set, all other images are treated as empty
// files.
//   InvalidArgument     only_record is out of range.
//   PermissionDenied    MustKeepIndex(), and the index cannot be written.
//   FailedPrecondition  a file changed while it was read.
//   Cancelled           InterruptRequested().
// Other errors are those of opening and reading files. Their messages name the file as it was
// given. The text for clients (core/record/source/client_reason.h) calls the file "rose/1.jpg".
absl::StatusOr<ReadImages> ReadAllImages(const ImageGroup& group, const ShardOptions& options);

}  // namespace systole

#endif  // SYSTOLE_CORE_RECORD_IMAGES_READ_IMAGES_H_
