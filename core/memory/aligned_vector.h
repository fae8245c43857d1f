// A std::vector whose first element is on a 64-byte boundary. So a SIMD load that begins at a
// multiple of its own size crosses no cache line.
//
// Thread-compatible.
#ifndef SYSTOLE_CORE_MEMORY_ALIGNED_VECTOR_H_
#define SYSTOLE_CORE_MEMORY_ALIGNED_VECTOR_H_

#include <cstddef>
#include <new>
#include <vector>

#include "core/memory/aligned_buffer.h"

namespace systole {

template <typename T>
struct AlignedAllocator {
  using value_type = T;

  AlignedAllocator() = default;
  template <typename U>
  AlignedAllocator(const AlignedAllocator<U>&) {}  // NOLINT: allocators convert.

  T* allocate(size_t n) {
    return static_cast<T*>(::operator new (n * sizeof(T), std::align_val_t{kBufferAlignment}));
  }
  void deallocate(T* p, size_t) { ::operator delete (p, std::align_val_t{kBufferAlignment}); }

  friend bool operator==(AlignedAllocator, AlignedAllocator) { return true; }
};

template <typename T>
using AlignedVector = std::vector<T, AlignedAllocator<T>>;

}  // namespace systole

#endif  // SYSTOLE_CORE_MEMORY_ALIGNED_VECTOR_H_
