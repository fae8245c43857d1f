// Packs JPEGs and PNGs, which lie in a folder for each class, into TFRecord shards of
// tf.train.Example. `systole pack` does this. Each record (core/record/images/image_record.h) has
//   image  bytes      the unchanged file; or a newly encoded JPEG, if the image was made smaller or
//                     `quality` is set; or, with `raw`, the pixels, [height, width, 3] uint8
//   class  bytes      name of the class folder
//   label  int64      the place of this folder among the sorted class folders, counted from 0
//   size   int64[3]   height, width, channels of `image`; channels is 1 for the unchanged file of a
//                     grey image, else 3
// The output depends only on the files and the options, not on threads, time or paths.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CLIENT_CLI_SHARDS_PACKER_H_
#define SYSTOLE_CLIENT_CLI_SHARDS_PACKER_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/cli/shards/pack_plan.h"
#include "core/compression/compression.h"
#include "core/dataset/manifest.h"

namespace systole {

struct PackOptions {
  PackPlanOptions plan;
  // Shrinks images whose short side has more pixels than this, so that it has this many.
  std::optional<int64_t> resize_short;
  // JPEG quality, 1 to 100. If set, every image is encoded anew. If not set, only images that were
  // made smaller are encoded anew, with quality 90.
  std::optional<int64_t> quality;
  // Stores pixels instead of JPEGs. If this is true, `quality` must not be set.
  bool raw = false;
  // How each shard is compressed, as a whole.
  Compression compression = Compression::kNone;
  // Leaves out files that are not whole JPEGs or PNGs, and lists them. Otherwise such files are an
  // error.
  bool skip_bad = false;
  int threads = 1;  // At least 1.
};

struct SkippedFile {
  std::string path;
  std::string cause;
};

struct PackReport {
  std::vector<std::string> classes;  // By label.
  std::string labels_path;           // The file that lists them.
  int64_t train_images = 0;
  int64_t validation_images = 0;
  std::vector<ShardCount> shards;  // Train, then validation.
  std::string manifest_path;       // The file that says how many records each shard has.
  std::vector<SkippedFile> skipped;
};

// Called as packing goes on.
struct PackObserver {
  // A pass over `files` files begins: "checking", then "packing".
  std::function<void(absl::string_view pass, int64_t files)> begins;
  // `files` more files of the pass are done. Returns false to stop. Called from any thread.
  std::function<bool(int64_t files)> done;
};

// `images` is what ListImages() takes. Reads every file twice: once to find broken files before any
// shard is written, and once to pack the file. Creates the folder of `out_prefix` if needed, and
// writes there:
//   * the shards; a shard's file gets its final name only when the shard is complete
//   * labels.txt, with the names of the classes of labels 0, 1, .., one on each line
//   * OUT_PREFIX.manifest, which says how many records and bytes each shard has
// After an error, removes the shards of this run; the error names files that could not be removed.
// Before the first shard is written, removes the unfinished files of an earlier, killed run. In a
// bucket, only a lifecycle rule of the bucket removes the uploaded parts of a killed run.
//   NotFound         no images.
//   InvalidArgument  an option is out of range (see PlanPack).
//   AlreadyExists    there are shards of this prefix that this run would not replace (a glob over
//                    the prefix would match shards of two runs), or a labels.txt of other classes.
//   DataLoss         a file is not a whole JPEG or PNG, and `skip_bad` is not set. The error names
//                    the first such file.
//   Cancelled        PackObserver::done returned false, or InterruptRequested().
// If a file cannot be read for another reason (a server that does not answer, no permission), that
// error is returned, even with `skip_bad`.
absl::StatusOr<PackReport> Pack(const std::string& images, const std::string& out_prefix,
                                const PackOptions& options, const PackObserver& observer);

}  // namespace systole

#endif  // SYSTOLE_CLIENT_CLI_SHARDS_PACKER_H_
