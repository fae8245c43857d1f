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
  int64_t images = 0;  // 1 to 1,000,000; each kind gets a fifth, the first kinds one more.
  uint64_t seed = 0;
  FlowerStyle style;
  int threads = 1;  // At least 1. Files do not depend on it.
};

struct FlowerSet {
  int64_t images = 0;
  uint64_t bytes = 0;  // The size of all files.
  int64_t images_of_kind[kFlowerKinds] = {};
};

// The JPEG file of photograph `number`, whose kind is number % kFlowerKinds.
absl::StatusOr<std::string> MakeFlowerJpeg(uint64_t seed, int64_t number,
                                           const FlowerStyle& style = {});

// Writes the set to `dir`, which is created if needed. Replaces files of the same names. `progress`
// gets, from any thread, how many more images are done; if it returns false, the run stops.
// Unfinished files of a killed run are removed.
//   InvalidArgument  an option is out of range.
//   AlreadyExists    a class folder holds a file that is not of this set, so packing the folder
//                    would give a mixture.
//   Cancelled        `progress` said stop; the files made so far are whole.
absl::StatusOr<FlowerSet> MakeFlowerSet(const std::string& dir, const FlowerSetOptions& options,
                                        absl::FunctionRef<bool(int64_t)> progress);

}  // namespace systole

#endif  // SYSTOLE_CLIENT_CLI_FLOWERS_FLOWER_SET_H_
