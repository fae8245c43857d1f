#include "core/dataset/look_up_memory.h"

namespace systole {

LookUpMemory::Share LookUpMemory::Take() {
  MutexLock lock(mu_);
  const int64_t bytes = left_ / 4;
  left_ -= bytes;
  return Share(*this, bytes);
}

int64_t LookUpMemory::left_bytes() const {
  MutexLock lock(mu_);
  return left_;
}

LookUpMemory::Share::~Share() {
  MutexLock lock(memory_.mu_);
  memory_.left_ += bytes_;
}

}  // namespace systole
