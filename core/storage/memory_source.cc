#include "core/storage/memory_source.h"

#include <algorithm>
#include <cstring>

namespace systole {

absl::StatusOr<size_t> MemorySource::ReadAt(uint64_t offset, absl::Span<char> out) const {
  if (offset >= bytes_.size()) return 0;
  const size_t size = std::min<size_t>(out.size(), bytes_.size() - offset);
  if (size > 0) std::memcpy(out.data(), bytes_.data() + offset, size);
  return size;
}

}  // namespace systole
