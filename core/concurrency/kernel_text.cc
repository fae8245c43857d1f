#include "core/concurrency/kernel_text.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>

#include "core/descriptor/owned_fd.h"

namespace systole {

std::string KernelText(const std::string& path) {
  const OwnedFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.ok()) return "";
  std::array<char, 4096> text;
  // The kernel returns such a file in one read.
  const ssize_t got = ::read(fd.get(), text.data(), text.size());
  return got > 0 ? std::string(text.data(), static_cast<size_t>(got)) : "";
}

}  // namespace systole
