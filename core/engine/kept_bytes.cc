#include "core/engine/kept_bytes.h"

#include <cstddef>

#include "core/memory/little_endian.h"

namespace systole {
namespace {

size_t HeaderBytes(const ValueType& type) { return type.has_size() ? 0 : 12; }

}  // namespace

int64_t KeptBytes(const ImageInfo& decoded, ValueType type) {
  const auto header = static_cast<int64_t>(HeaderBytes(type));
  if (!type.has_size()) type.shape = {decoded.height, decoded.width, type.shape[2]};
  return header + type.num_bytes();
}

std::string ToKept(const Value& image, const ValueType& type) {
  std::string kept;
  kept.reserve(HeaderBytes(type) + static_cast<size_t>(image.type.num_bytes()));
  kept.resize(HeaderBytes(type));
  for (size_t i = 0; i < kept.size() / 4; ++i) {
    StoreU32Le(static_cast<uint32_t>(image.type.shape[i]), kept.data() + 4 * i);
  }
  const absl::Span<const uint8_t> values = image.memory();
  kept.append(reinterpret_cast<const char*>(values.data()), values.size());
  return kept;
}

std::optional<KeptImage> ParseKept(absl::string_view kept, const ValueType& type) {
  const size_t header = HeaderBytes(type);
  if (kept.size() < header) return std::nullopt;
  KeptImage image = {.shape = type.shape, .values = kept.substr(header)};
  int64_t bytes = ElementBytes(type.element);
  for (size_t i = 0; i < image.shape.size(); ++i) {
    if (header > 0) image.shape[i] = LoadU32Le(kept.data() + 4 * i);
    const bool is_any = type.shape[i] == kAnySize;
    if (is_any ? image.shape[i] < 1 || image.shape[i] > kMaxImageEdge
               : image.shape[i] != type.shape[i]) {
      return std::nullopt;
    }
    bytes *= image.shape[i];
  }
  if (bytes != static_cast<int64_t>(image.values.size())) return std::nullopt;
  return image;
}

bool IsKept(absl::string_view kept, const KeptForm& form) {
  return form.value.finished ? static_cast<int64_t>(kept.size()) == form.value.cost.bytes
                             : ParseKept(kept, form.value.type).has_value();
}

}  // namespace systole
