// The record of an image: a tf.train.Example with the features
//   image  bytes      the file
//   class  bytes      the name of its class
//   label  int64      the number of its class
//   size   int64[3]   height, width, channels of the image
// `systole pack` writes such records, and a group of image files has them.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_RECORD_IMAGES_IMAGE_RECORD_H_
#define SYSTOLE_CORE_RECORD_IMAGES_IMAGE_RECORD_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "core/example/example_builder.h"
#include "core/image/image_size.h"

namespace systole {

struct ImageClass {
  std::string name;
  int64_t label = 0;
};

// The record without the image, which has `image_bytes` bytes.
RecordAround ImageRecordAround(const ImageClass& its_class, const ImageSize& size,
                               uint64_t image_bytes);

// The whole record.
std::string ImageRecord(absl::string_view image, const ImageClass& its_class,
                        const ImageSize& size);

}  // namespace systole

#endif  // SYSTOLE_CORE_RECORD_IMAGES_IMAGE_RECORD_H_
