// A file descriptor with an owner. The owner's destructor closes it.
//
// Thread-compatible. Can be moved, not copied.
#ifndef SYSTOLE_CORE_DESCRIPTOR_OWNED_FD_H_
#define SYSTOLE_CORE_DESCRIPTOR_OWNED_FD_H_

#include <unistd.h>

#include <utility>

namespace systole {

class OwnedFd {
 public:
  // Owns no descriptor.
  OwnedFd() = default;
  // Takes over `fd`. A negative number, which a failed system call returns, means no descriptor.
  explicit OwnedFd(int fd) : fd_(fd) {}
  OwnedFd(OwnedFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  OwnedFd& operator=(OwnedFd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~OwnedFd() {
    if (fd_ >= 0) ::close(fd_);
  }

  int get() const { return fd_; }
  bool ok() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_DESCRIPTOR_OWNED_FD_H_
