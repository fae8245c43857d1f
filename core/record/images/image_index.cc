#include "core/record/images/image_index.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "core/checksum/xxh3.h"
#include "core/record/images/class_labels.h"
#include "core/record/images/image_group.h"
#include "core/record/source/consume_number.h"
#include "core/status/check.h"
#include "core/storage/store.h"

namespace systole {
namespace {

constexpr absl::string_view kIndexMagic = "systole-images-1 ";
// The largest height and width that an index may have. Decoders accept less.
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

// Takes the numbers at the beginning of a line off the front of `text`.
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

bool IsSane(const ImageIndexLine& line) {
  const ImageSize& size = line.facts.size;
  if (line.identity.empty() || !IsNameInGroup(line.name)) return false;
  if (line.facts.is_damaged()) {
    return size.height == 0 && size.width == 0 && !line.cause.empty();
  }
  return (size.channels == 1 || size.channels == 3) && size.height >= 1 &&
         size.height <= kMaxIndexedEdge && size.width >= 1 && size.width <= kMaxIndexedEdge &&
         line.cause.empty();
}

// Takes a line off the front of `text`. False if it is malformed.
bool ConsumeLine(absl::string_view& text, ImageIndexLine& line) {
  constexpr size_t kMost[3] = {kMaxIdentityBytes, kMaxClassBytes + 1 + kMaxImageNameBytes,
                               kMaxImageCauseBytes};
  size_t sizes[3] = {};
  if (!ConsumeNumbers(text, line.facts, sizes)) return false;
  absl::string_view* const texts[3] = {&line.identity, &line.name, &line.cause};
  for (size_t i = 0; i < 3; ++i) {
    if (sizes[i] > std::min(kMost[i], text.size())) return false;
    *texts[i] = text.substr(0, sizes[i]);
    text.remove_prefix(sizes[i]);
  }
  return absl::ConsumePrefix(&text, "\n") && IsSane(line);
}

}  // namespace

bool ImageNameIsBefore(absl::string_view a, absl::string_view b) {
  const auto parts = [](absl::string_view name) {
    const size_t slash = std::min(name.find('/'), name.size());
    return std::pair(name.substr(0, slash), name.substr(slash));
  };
  return parts(a) < parts(b);
}

std::string ImageIndexLineText(const ImageIndexLine& line) {
  const ImageFacts& facts = line.facts;
  std::string text = absl::StrFormat("%d %08x %d %d %d %d %d %d ", facts.bytes, facts.crc,
                                     facts.size.height, facts.size.width, facts.size.channels,
                                     line.identity.size(), line.name.size(), line.cause.size());
  absl::StrAppend(&text, line.identity, line.name, line.cause, "\n");
  return text;
}

absl::StatusOr<absl::string_view> CheckImageIndex(absl::string_view text) {
  uint64_t count = 0;
  uint64_t hash = 0;
  if (!absl::ConsumePrefix(&text, kIndexMagic)) return Wrong("is not an index of images");
  if (!ConsumeNumber(text, ' ', count) || text.find('\n') != 16 ||
      !ConsumeNumber(text, '\n', hash, 16)) {
    return Wrong("has a malformed first line");
  }
  if (Xxh3(text) != hash) return Wrong("is damaged: its hash does not match");
  if (count > kMaxGroupFiles) {
    return Wrong(absl::StrCat("is of ", count, " files, the limit is ", kMaxGroupFiles));
  }
  const absl::string_view lines = text;
  absl::string_view last_name;
  uint64_t seen = 0;
  for (; !text.empty(); ++seen) {
    if (seen == count) return Wrong("has more files than it says");
    ImageIndexLine line;
    if (!ConsumeLine(text, line)) {
      return Wrong(absl::StrCat("has a malformed line for file ", seen));
    }
    if (seen > 0 && !ImageNameIsBefore(last_name, line.name)) {
      return Wrong(absl::StrCat("has file ", seen, " in a wrong place"));
    }
    last_name = line.name;
  }
  if (seen != count) return Wrong("does not have as many files as it says");
  return lines;
}

ImageIndexLine TakeImageIndexLine(absl::string_view& lines) {
  ImageIndexLine line;
  SYSTOLE_CHECK(ConsumeLine(lines, line));
  return line;
}

absl::Status WriteImageIndex(EachImageIndexLine each, ByteSink& sink) {
  uint64_t count = 0;
  Xxh3Hasher hasher;
  each([&](absl::string_view line) {
    ++count;
    hasher.Update(line);
  });
  absl::Status status =
      sink.Append(absl::StrFormat("%s%d %016x\n", kIndexMagic, count, hasher.Digest64()));
  each([&](absl::string_view line) {
    if (status.ok()) status = sink.Append(line);
  });
  return status;
}

}  // namespace systole
