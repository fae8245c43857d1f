// Maps a local file, so that its bytes are read in place, in the page cache.
#ifndef SYSTOLE_CORE_STORAGE_LOCAL_FILE_MAPPING_H_
#define SYSTOLE_CORE_STORAGE_LOCAL_FILE_MAPPING_H_

#include <cstdint>

#include "core/storage/mapping.h"

namespace systole {

// Thread-safe. The descriptor must stay open until the bytes are first read.
class FileMapping final : public Mapping {
 public:
  // Maps the first `bytes` bytes of `fd`.
  FileMapping(int fd, uint64_t bytes) : Mapping(bytes), fd_(fd) {}

 private:
  void* Map(uint64_t bytes) const override;

  const int fd_;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_STORAGE_LOCAL_FILE_MAPPING_H_
