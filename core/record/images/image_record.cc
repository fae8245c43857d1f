#include "core/record/images/image_record.h"

#include "absl/strings/str_cat.h"

namespace systole {

RecordAround ImageRecordAround(const ImageClass& its_class, const ImageSize& size,
                               uint64_t image_bytes) {
  return ExampleBuilder()
      .AddBytes("class", its_class.name)
      .AddInt64s("label", {its_class.label})
      .AddInt64s("size", {size.height, size.width, size.channels})
      .SerializeAround("image", image_bytes);
}

std::string ImageRecord(absl::string_view image, const ImageClass& its_class,
                        const ImageSize& size) {
  const RecordAround around = ImageRecordAround(its_class, size, image.size());
  return absl::StrCat(around.before, image, around.after);
}

}  // namespace systole
