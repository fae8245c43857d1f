// A library preloaded into a server. It makes reads and writes of some files fail, hang or take
// longer, as on a dying disk, a full disk or a dead network file system. It takes its order from
// the file that SYSTOLE_SHIM names, so a test can change the order while the server runs:
//   eio PART     reads of files whose path contains PART fail with EIO
//   hang PART    reads of such files wait, asleep, for the lock on the file $SYSTOLE_SHIM.gate
//   slow PART    reads of such files take 20 ms longer, asleep
//   full PART    a write to such a file writes half of its bytes, and in the end none (ENOSPC)
// With any other order, or without the file, it does nothing.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

using Read = ssize_t (*)(int, void*, size_t, off_t);
using Write = ssize_t (*)(int, const void*, size_t);

// Reads the order and splits it at the blank. The file is read again each time, since the shim need
// not be fast.
bool Orders(char* verb, char* part) {
  const char* const path = std::getenv("SYSTOLE_SHIM");
  if (path == nullptr) return false;
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  char text[256] = {};
  const ssize_t got = ::read(fd, text, sizeof(text) - 1);
  ::close(fd);
  return got > 0 && std::sscanf(text, "%15s %200s", verb, part) == 2;
}

bool IsMeant(int fd, const char* part) {
  char link[64];
  char path[1024] = {};
  std::snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
  return ::readlink(link, path, sizeof(path) - 1) > 0 && std::strstr(path, part) != nullptr;
}

void WaitAtGate() {
  char gate[1024];
  std::snprintf(gate, sizeof(gate), "%s.gate", std::getenv("SYSTOLE_SHIM"));
  const int fd = ::open(gate, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  ::flock(fd, LOCK_SH);
  ::close(fd);
}

// Returns 0, or the error with which the read fails.
int Fate(int fd) {
  char verb[16];
  char part[201];
  while (Orders(verb, part) && IsMeant(fd, part)) {
    if (std::strcmp(verb, "eio") == 0) return EIO;
    if (std::strcmp(verb, "slow") == 0) ::usleep(20000);
    if (std::strcmp(verb, "hang") != 0) return 0;
    WaitAtGate();
  }
  return 0;
}

// Makes every attempt to map a shard fail, because reads of a mapped file would bypass pread.
void* Map(const char* name, void* where, size_t size, int protection, int flags, int fd,
          off_t offset) {
  using Real = void* (*)(void*, size_t, int, int, int, off_t);
  if (fd >= 0 && IsMeant(fd, ".tfrecord")) {
    errno = ENODEV;
    return reinterpret_cast<void*>(-1);
  }
  return reinterpret_cast<Real>(::dlsym(RTLD_NEXT, name))(where, size, protection, flags, fd,
                                                          offset);
}

}  // namespace

// The functions below are visible from outside, unlike everything else here.
#pragma GCC visibility push(default)
extern "C" {

ssize_t pread(int fd, void* to, size_t size, off_t offset) {
  static const auto real = reinterpret_cast<Read>(::dlsym(RTLD_NEXT, "pread"));
  errno = Fate(fd);
  return errno != 0 ? -1 : real(fd, to, size, offset);
}

ssize_t pread64(int fd, void* to, size_t size, off_t offset) {
  static const auto real = reinterpret_cast<Read>(::dlsym(RTLD_NEXT, "pread64"));
  errno = Fate(fd);
  return errno != 0 ? -1 : real(fd, to, size, offset);
}

ssize_t write(int fd, const void* from, size_t size) {
  static const auto real = reinterpret_cast<Write>(::dlsym(RTLD_NEXT, "write"));
  char verb[16];
  char part[201];
  const int before = errno;
  struct stat file = {};
  if (size > 0 && ::fstat(fd, &file) == 0 && S_ISREG(file.st_mode) && Orders(verb, part) &&
      std::strcmp(verb, "full") == 0 && IsMeant(fd, part)) {
    size /= 2;
    errno = ENOSPC;
    if (size == 0) return -1;
  }
  errno = before;
  return real(fd, from, size);
}

void* mmap(void* where, size_t size, int protection, int flags, int fd, off_t offset) {
  return Map("mmap", where, size, protection, flags, fd, offset);
}

void* mmap64(void* where, size_t size, int protection, int flags, int fd, off_t offset) {
  return Map("mmap64", where, size, protection, flags, fd, offset);
}

}  // extern "C"
#pragma GCC visibility pop
