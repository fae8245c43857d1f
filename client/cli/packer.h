// Packs a folder tree of JPEGs into TFRecord shards of tf.train.Example: what `systole pack` does.
// Each record has
//   image  bytes      the file as it is, or encoded anew if it was made smaller or a quality was
//                     asked for; with `raw`, the pixels, [height, width, 3] uint8
//   class  bytes      name of the class folder
//   label  int64      its place among the sorted class folders
//   size   int64[3]   height, width, channels of `image`; channels is 1 for a grey JPEG kept as it
//                     is, else 3
// The output is a function of the files and the options: not of threads, time or paths.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CLIENT_CLI_PACKER_H_
#define SYSTOLE_CLIENT_CLI_PACKER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "client/cli/pack_plan.h"

namespace systole {

struct PackOptions {
  PackPlanOptions plan;
  // Makes images smaller until their short side has this many pixels; smaller ones stay as they
  // are.
  std::optional<int64_t> resize_short;
  // JPEG quality, 1 to 100. Set: every image is encoded anew. Unset: only those made smaller,
  // at 90.
  std::optional<int64_t> quality;
  // Stores pixels. Not together with `quality`.
  bool raw = false;
  // Leaves out files that are not whole JPEGs, and lists them. Otherwise they are an error.
  bool skip_bad = false;
  int threads = 1;  // At least 1.
};

struct PackedShard {
  std::string path;
  int64_t records = 0;
  uint64_t bytes = 0;
};

struct SkippedFile {
  std::string path;
  std::string cause;
};

struct PackReport {
  std::vector<std::string> classes;
  int64_t train_images = 0;
  int64_t validation_images = 0;
  std::vector<PackedShard> shards;  // Train, then validation.
  std::vector<SkippedFile> skipped;
};

// Reads every file twice: once to find what is broken before anything is written, once to pack it.
// Each shard appears under its name when it is whole; the folder of `out_prefix` is made if need
// be. `started` is told the number of steps, then `progress`, from any thread, how many more are
// done.
//   NotFound         no images in `dir`.
//   InvalidArgument  an option is out of range (see PlanPack).
//   AlreadyExists    shards of this prefix are there that would not be replaced, so that a glob
//   over
//                    the prefix would get a mixture.
//   DataLoss         a file is not a whole JPEG and `skip_bad` is not set; names the first.
absl::StatusOr<PackReport> Pack(const std::string& dir, const std::string& out_prefix,
                                const PackOptions& options,
                                absl::FunctionRef<void(int64_t total)> started,
                                absl::FunctionRef<void(int64_t)> progress);

}  // namespace systole

#endif  // SYSTOLE_CLIENT_CLI_PACKER_H_
