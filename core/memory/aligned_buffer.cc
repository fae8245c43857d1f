#include "core/memory/aligned_buffer.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/status/status_macros.h"

namespace systole {

absl::StatusOr<AlignedBuffer> AlignedBuffer::Create(int64_t bytes, int64_t alignment) {
  if (bytes < 0 || bytes > std::numeric_limits<int64_t>::max() - alignment) {
    return absl::InvalidArgumentError(
        absl::StrCat("a buffer of ", bytes, " bytes was asked for, want 0 or more"));
  }
  // aligned_alloc needs a multiple of the alignment. An empty buffer gets memory, too, so that its
  // address is not null.
  const int64_t rounded = std::max<int64_t>(1, (bytes + alignment - 1) / alignment) * alignment;
  auto* data = static_cast<uint8_t*>(
      std::aligned_alloc(static_cast<size_t>(alignment), static_cast<size_t>(rounded)));
  if (data == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the system refused a buffer of ", bytes, " bytes"));
  }
  return AlignedBuffer(data, bytes, nullptr);
}

absl::StatusOr<AlignedBuffer> AlignedBuffer::CreateSealed(int64_t bytes) {
  SYSTOLE_ASSIGN_OR_RETURN(SealedMemory memory, SealedMemory::Create(bytes));
  auto sealed = std::make_shared<const SealedMemory>(std::move(memory));
  uint8_t* data = sealed->data();
  return AlignedBuffer(data, bytes, std::move(sealed));
}

}  // namespace systole
