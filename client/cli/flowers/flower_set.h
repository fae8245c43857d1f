// Makes a folder of flower photographs, for `systole make-flowers`.
//   DIR/daisy/daisy_000000.jpg  DIR/dandelion/dandelion_000001.jpg  ...
//
// Thread-safe: no state.
#ifndef SYSTOLE_CLIENT_CLI_FLOWERS_FLOWER_SET_H_
#define SYSTOLE_CLIENT_CLI_FLOWERS_FLOWER_SET_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "client/cli/flowers/flower_painter.h"
#include "client/cli/flowers/flower_shape.h"

namespace systole {

struct FlowerSetOptions {
  // 1 to 1,000,000. Each kind gets a fifth. If a remainder is left, each of the first kinds gets
  // one image more.
  int64_t images = 0;
  uint64_t seed = 0;
  FlowerStyle style;
  int threads = 1;  // At least 1. The files are the same with any number.
};

struct FlowerSet {
  int64_t images = 0;
  uint64_t bytes = 0;  // The size of all files.
  int64_t images_of_kind[kFlowerKinds] = {};
};

// The JPEG file of photograph `number`, whose kind is number % kFlowerKinds.
absl::StatusOr<std::string> MakeFlowerJpeg(uint64_t seed, int64_t number,
                                           const FlowerStyle& style = {});

// Writes the set to `dir`, which is created if needed. Replaces files of the same names. Calls
// `progress` from any thread with the number of images made since the last call. The run stops if
// `progress` returns false. Removes the unfinished files of an earlier run that was killed.
//   InvalidArgument  an option is out of range.
//   AlreadyExists    the folder of a kind holds a file that is neither of this set nor hidden.
//   Cancelled        `progress` returned false; the files made so far are whole.
absl::StatusOr<FlowerSet> MakeFlowerSet(const std::string& dir, const FlowerSetOptions& options,
                                        absl::FunctionRef<bool(int64_t)> progress);

}  // namespace systole

#endif  // SYSTOLE_CLIENT_CLI_FLOWERS_FLOWER_SET_H_
