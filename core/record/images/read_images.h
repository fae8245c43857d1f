// Finds the facts about all files of a group. If a file has not changed, its facts come from the
// index. All other files are read.
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
  // Why no image can be read from a file. Has the first kMaxDamagedListed damaged files, by number.
  std::map<size_t, std::string> causes;
  std::string note;  // For a person: why the index was not used or is not kept.
};

// Uses and writes the index as ShardOptions::index_use says. With IndexUse::kUse the index is
// written after an error, too, with all files that were read by then. A file larger than
// max_record_bytes is not read: it counts as good, with a CRC and a size of 0, and is not in the
// index. If only_record is set, all other images are treated as empty files.
//   InvalidArgument     only_record is out of range.
//   PermissionDenied    with IndexUse::kRebuild: the index cannot be written.
//   FailedPrecondition  a file changed while it was read.
//   Cancelled           InterruptRequested().
// Other errors are those of opening and reading files. They name the file as it was given. Their
// reason for clients (core/record/source/client_reason.h) calls the file "rose/1.jpg".
absl::StatusOr<ReadImages> ReadAllImages(const ImageGroup& group, const ShardOptions& options);

}  // namespace systole

#endif  // SYSTOLE_CORE_RECORD_IMAGES_READ_IMAGES_H_
