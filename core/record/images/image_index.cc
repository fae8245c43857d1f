#include "core/record/images/image_index.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "core/checksum/xxh3.h"
#include "core/record/images/class_labels.h"
#include "core/record/images/image_group.h"
#include "core/record/source/consume_number.h"
#include "core/storage/byte_source.h"
#include "core/storage/store.h"

namespace systole {
namespace {

constexpr absl::string_view kIndexMagic = "systole-images-1 ";
// A line of the shortest texts: "0 00000000 1 1 1 1 3 0 ia/b\n".
constexpr uint64_t kMinLineBytes = 28;
// The largest height and width that an index may say. Decoders accept less.
constexpr int kMaxIndexedEdge = 1 << 20;

absl::Status Wrong(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("index ", what));
}

// Whether the name is "class/base name", neither of them empty.
bool IsNameInGroup(absl::string_view name) {
  const size_t slash = name.rfind('/');
  return slash != absl::string_view::npos && slash > 0 && slash + 1 < name.size() &&
         name.find('/') == slash;
}

// Takes the beginning of a line, up to the texts.
bool ConsumeNumbers(absl::string_view& text, ImageFacts& facts, size_t (&sizes)[3]) {
  if (!ConsumeNumber(text, ' ', facts.bytes) || text.find(' ') != 8 ||
      !ConsumeNumber(text, ' ', facts.crc, 16)) {
    return false;
  }
  return ConsumeNumber(text, ' ', facts.size.height) &&
         ConsumeNumber(text, ' ', facts.size.width) &&
         ConsumeNumber(text, ' ', facts.size.channels) && ConsumeNumber(text, ' ', sizes[0]) &&
         ConsumeNumber(text, ' ', sizes[1]) && ConsumeNumber(text, ' ', sizes[2]);
}

bool IsSane(const IndexedImage& image) {
  const ImageSize& size = image.facts.size;
  if (image.identity.empty() || !IsNameInGroup(image.name)) return false;
  if (image.facts.is_damaged()) {
    return size.height == 0 && size.width == 0 && !image.cause.empty();
  }
  return (size.channels == 1 || size.channels == 3) && size.height >= 1 &&
         size.height <= kMaxIndexedEdge && size.width >= 1 && size.width <= kMaxIndexedEdge &&
         image.cause.empty();
}

}  // namespace

bool ImageNameIsBefore(absl::string_view a, absl::string_view b) {
  const auto parts = [](absl::string_view name) {
    const size_t slash = std::min(name.find('/'), name.size());
    return std::pair(name.substr(0, slash), name.substr(slash));
  };
  return parts(a) < parts(b);
}

std::string ImageIndexText(absl::Span<const IndexedImage> images) {
  std::string body;
  for (const IndexedImage& image : images) {
    const ImageFacts& facts = image.facts;
    absl::StrAppendFormat(&body, "%d %08x %d %d %d %d %d %d ", facts.bytes, facts.crc,
                          facts.size.height, facts.size.width, facts.size.channels,
                          image.identity.size(), image.name.size(), image.cause.size());
    absl::StrAppend(&body, image.identity, image.name, image.cause, "\n");
  }
  std::string text = absl::StrFormat("%s%d %016x\n", kIndexMagic, images.size(), Xxh3(body));
  text += body;
  return text;
}

absl::StatusOr<std::vector<IndexedImage>> ParseImageIndex(absl::string_view text) {
  uint64_t count = 0;
  uint64_t hash = 0;
  if (!absl::ConsumePrefix(&text, kIndexMagic)) return Wrong("is no index of images");
  if (!ConsumeNumber(text, ' ', count) || text.find('\n') != 16 ||
      !ConsumeNumber(text, '\n', hash, 16)) {
    return Wrong("has a malformed first line");
  }
  if (Xxh3(text) != hash) return Wrong("is damaged: its hash does not match");
  if (count > std::min<uint64_t>(kMaxGroupFiles, text.size() / kMinLineBytes)) {
    return Wrong("does not have as many files as it says");
  }
  std::vector<IndexedImage> images;
  images.reserve(count);
  constexpr size_t kMost[3] = {kMaxIdentityBytes, kMaxClassBytes + 1 + kMaxImageNameBytes,
                               kMaxImageCauseBytes};
  while (!text.empty()) {
    if (images.size() == count) return Wrong("has more files than it says");
    IndexedImage image;
    size_t sizes[3] = {};
    bool good = ConsumeNumbers(text, image.facts, sizes);
    std::string* const texts[3] = {&image.identity, &image.name, &image.cause};
    for (size_t i = 0; good && i < 3; ++i) {
      good = sizes[i] <= std::min(kMost[i], text.size());
      if (!good) break;
      *texts[i] = std::string(text.substr(0, sizes[i]));
      text.remove_prefix(sizes[i]);
    }
    if (!good || !absl::ConsumePrefix(&text, "\n") || !IsSane(image)) {
      return Wrong(absl::StrCat("has a malformed line for file ", images.size()));
    }
    if (!images.empty() && !ImageNameIsBefore(images.back().name, image.name)) {
      return Wrong(absl::StrCat("has file ", images.size(), " in a wrong place"));
    }
    images.push_back(std::move(image));
  }
  if (images.size() != count) return Wrong("does not have as many files as it says");
  return images;
}

}  // namespace systole
