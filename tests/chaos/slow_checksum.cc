// A library preloaded into a client. It imitates a slow processor by making the client's checksum
// of the arriving bytes slow. The checksum of a byte costs two microseconds more of processor time.
#include <dlfcn.h>

#include <cstdint>
#include <ctime>

namespace {

constexpr int64_t kNanosecondsPerByte = 2000;

int64_t OwnCpuNanoseconds() {
  timespec time = {};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return time.tv_sec * int64_t{1'000'000'000} + time.tv_nsec;
}

}  // namespace

#pragma GCC visibility push(default)
// ISA-L's CRC-32C, which core/checksum calls.
extern "C" unsigned int crc32_iscsi(unsigned char* bytes, int size, unsigned int seed) {
  using Real = unsigned int (*)(unsigned char*, int, unsigned int);
  static const auto real = reinterpret_cast<Real>(::dlsym(RTLD_NEXT, "crc32_iscsi"));
  const int64_t end = OwnCpuNanoseconds() + size * kNanosecondsPerByte;
  while (OwnCpuNanoseconds() < end) {
  }
  return real(bytes, size, seed);
}
#pragma GCC visibility pop
