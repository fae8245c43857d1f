#include "core/storage/local/file_mapping.h"

#include <sys/mman.h>

namespace systole {

void* FileMapping::Map(uint64_t bytes) const {
  return ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd_, 0);
}

}  // namespace systole
