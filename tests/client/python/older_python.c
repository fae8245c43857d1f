// What Debian 12's Python uses of newer versions of glibc, beside what a wheel uses. older_python.py.
#include "client/python/wheel/newer_glibc.c"

// glibc 2.33. Before, these were inline functions of its headers.
EXPORTED int stat64(const char* restrict path, struct stat64* restrict status) {
  return (int)syscall(SYS_newfstatat, AT_FDCWD, path, status, 0);
}
EXPORTED int lstat64(const char* restrict path, struct stat64* restrict status) {
  return (int)syscall(SYS_newfstatat, AT_FDCWD, path, status, AT_SYMLINK_NOFOLLOW);
}
EXPORTED int fstatat64(int folder, const char* restrict path, struct stat64* restrict status,
                       int flags) {
  return (int)syscall(SYS_newfstatat, folder, path, status, flags);
}
EXPORTED int mknod(const char* path, mode_t mode, dev_t device) {
  return (int)syscall(SYS_mknodat, AT_FDCWD, path, mode, (unsigned)device);
}
EXPORTED int mknodat(int folder, const char* path, mode_t mode, dev_t device) {
  return (int)syscall(SYS_mknodat, folder, path, mode, (unsigned)device);
}

// glibc 2.34.
EXPORTED int close_range(unsigned first, unsigned last, int flags) {
  return (int)syscall(SYS_close_range, first, last, flags);
}

// glibc 2.35 computes it in another way.
__asm__(".symver older_hypot, hypot@" FIRST_VERSION);
extern double older_hypot(double, double);
EXPORTED double hypot(double x, double y) { return older_hypot(x, y); }

// glibc 2.36.
EXPORTED void arc4random_buf(void* buffer, size_t bytes) {
  for (char* to = buffer; bytes > 0;) {
    const size_t part = bytes < 256 ? bytes : 256;  // The most that getentropy() gives.
    if (getentropy(to, part) != 0) abort();
    to += part;
    bytes -= part;
  }
}
