// Reads any bytes as an index of images. An accepted text is sorted, and is written back equal.
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/checksum/xxh3.h"
#include "core/record/images/image_index.h"
#include "core/status/check.h"

namespace {

void Check(absl::string_view text) {
  using namespace systole;
  const auto images = ParseImageIndex(text);
  if (!images.ok()) return;
  for (size_t i = 1; i < images->size(); ++i) {
    SYSTOLE_CHECK(ImageNameIsBefore((*images)[i - 1].name, (*images)[i].name));
  }
  SYSTOLE_CHECK(ImageIndexText(*images) == text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  Check(text);
  // A hash that fits lets the lines be reached. The first byte is the number of files.
  if (text.empty()) return 0;
  const absl::string_view body = text.substr(1);
  Check(absl::StrCat("systole-images-1 ", static_cast<unsigned char>(text[0]), " ",
                     absl::Hex(systole::Xxh3(body), absl::kZeroPad16), "\n", body));
  return 0;
}
