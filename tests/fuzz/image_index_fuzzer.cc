// Reads any bytes as an index of images. An accepted text is sorted, and is written back equal.
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/checksum/xxh3.h"
#include "core/record/images/image_index.h"
#include "core/status/check.h"
#include "core/storage/byte_sink.h"
#include "tests/fuzz/fuzzer.h"

namespace {

void Check(absl::string_view text) {
  using namespace systole;
  const absl::StatusOr<absl::string_view> lines = CheckImageIndex(text);
  if (!lines.ok()) return;
  absl::string_view last_name;
  for (absl::string_view rest = *lines; !rest.empty();) {
    const absl::string_view name = TakeImageIndexLine(rest).name;
    SYSTOLE_CHECK(last_name.empty() || ImageNameIsBefore(last_name, name));
    last_name = name;
  }
  std::string written;
  StringSink sink(&written);
  const absl::Status status = WriteImageIndex(
      [&lines](absl::FunctionRef<void(absl::string_view)> take) {
        for (absl::string_view rest = *lines; !rest.empty();) {
          take(ImageIndexLineText(TakeImageIndexLine(rest)));
        }
      },
      sink);
  SYSTOLE_CHECK(status.ok());
  SYSTOLE_CHECK(written == text);
}

}  // namespace

SYSTOLE_FUZZER(image_index, const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  Check(text);
  // The parser reads the lines only if the first line has the right hash, so the hash is computed
  // here. The first byte of the input is the number of files.
  if (text.empty()) return 0;
  const absl::string_view body = text.substr(1);
  Check(absl::StrCat("systole-images-1 ", static_cast<unsigned char>(text[0]), " ",
                     absl::Hex(systole::Xxh3(body), absl::kZeroPad16), "\n", body));
  return 0;
}
