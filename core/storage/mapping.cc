#include "core/storage/mapping.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "core/status/check.h"

namespace systole {
namespace {

// The action that SIGBUS had before InstallHandler() installed the handler.
struct sigaction previous_action;

// The newest MappedRead of the calling thread. With this TLS model, the handler reads the variable
// without a call. With the default model, a thread's first access may call a function that
// allocates the variable, if this code is in a library that was loaded late.
[[gnu::tls_model("initial-exec")]] thread_local const MappedRead* newest_read = nullptr;

// Handles a SIGBUS that does not come from a mapping of this file.
void PassOn(int signal, siginfo_t* info, void* context) {
  if ((previous_action.sa_flags & SA_SIGINFO) != 0) {
    previous_action.sa_sigaction(signal, info, context);
    return;
  }
  const bool sent = info->si_code <= 0;  // True: a process sent it. False: the kernel raised it.
  if (previous_action.sa_handler == SIG_IGN && sent) return;
  if (previous_action.sa_handler != SIG_DFL && previous_action.sa_handler != SIG_IGN) {
    previous_action.sa_handler(signal);
    return;
  }
  // From here on SIGBUS has its default action, which ends the process. If an access caused the
  // signal, the processor repeats the access after the handler returns, and SIGBUS comes again. So
  // the core dump shows the access. If a process sent the signal, the signal does not come again by
  // itself, so it is raised here.
  struct sigaction default_action = {};
  default_action.sa_handler = SIG_DFL;
  ::sigaction(SIGBUS, &default_action, nullptr);
  if (sent) ::raise(SIGBUS);
}

constexpr uint64_t kCacheLineBytes = 64;

}  // namespace

void Mapping::Prefetch(uint64_t offset, uint64_t bytes) const {
  const char* const data = data_.load(std::memory_order_acquire);
  if (data == nullptr || data == MAP_FAILED) return;
  if (offset >= bytes_) return;
  const char* const end = data + offset + std::min(bytes, bytes_ - offset);
  for (const char* p = data + offset; p < end; p += kCacheLineBytes) __builtin_prefetch(p);
}

char* Mapping::Data() {
  char* data = data_.load(std::memory_order_acquire);
  if (data == nullptr) {
    static const bool guarded = MappedRead::InstallHandler();
    void* const mapped = guarded && bytes_ > 0 ? Map(bytes_) : MAP_FAILED;
    if (data_.compare_exchange_strong(data, static_cast<char*>(mapped))) {
      data = static_cast<char*>(mapped);
    } else if (mapped != MAP_FAILED) {
      ::munmap(mapped, bytes_);  // Another thread was faster.
    }
  }
  return data == MAP_FAILED ? nullptr : data;
}

Mapping::~Mapping() {
  char* const data = data_.load();
  if (data != nullptr && data != MAP_FAILED) ::munmap(data, bytes_);
}

bool Mapping::ReplaceByZeros(uintptr_t address) {
  char* const data = data_.load();
  const auto begin = reinterpret_cast<uintptr_t>(data);
  // Readers touch only the first `bytes_` bytes, and not the rest of the last page.
  if (address < begin || address - begin >= bytes_) return false;
  failed_.store(true);  // Before the zeros come: a thread that sees a zero sees the mark.
  // Replaces the whole mapping in one call, so that a mapping fails at most once. The zeros take no
  // memory.
  //   A signal handler may make this system call directly. mmap() itself may be intercepted:
  // ThreadSanitizer takes mmap() for a write to bytes that other threads read. Other threads may
  // indeed read the mapping now. They get the file's bytes or zeros, and look at the mark before
  // they trust these bytes. Each argument of syscall() must fill a register, so no argument may be
  // an int.
  constexpr int64_t kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE;
  return ::syscall(SYS_mmap, data, bytes_, int64_t{PROT_READ}, kFlags, int64_t{-1}, int64_t{0}) !=
         -1;
}

bool MappedRead::InstallHandler() {
  if (::sigaction(SIGBUS, nullptr, &previous_action) != 0) return false;
  struct sigaction action = {};
  // If a thread has an alternate stack, the handler runs on this stack, because the handler to
  // which PassOn() passes a signal may need this stack.
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  ::sigemptyset(&action.sa_mask);
  action.sa_sigaction = [](int signal, siginfo_t* info, void* context) {
    const int saved_errno = errno;
    const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
    for (const MappedRead* read = newest_read; read != nullptr; read = read->outer_) {
      if (info->si_code > 0 && read->mapping_->ReplaceByZeros(address)) {
        errno = saved_errno;
        return;
      }
    }
    PassOn(signal, info, context);
  };
  return ::sigaction(SIGBUS, &action, nullptr) == 0;
}

MappedRead::MappedRead(Mapping* mapping) : mapping_(mapping), outer_(newest_read) {
  if (mapping == nullptr || mapping->failed_) return;
  const char* const data = mapping->Data();
  if (data == nullptr) return;
  bytes_ = absl::string_view(data, mapping->bytes_);
  newest_read = this;
  // newest_read must be set before any byte is read.
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

MappedRead::~MappedRead() {
  if (bytes_.empty()) return;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  SYSTOLE_CHECK(newest_read == this);
  newest_read = outer_;
}

bool MappedRead::failed() const {
  // All earlier reads of bytes must come before this read of the mark.
  std::atomic_thread_fence(std::memory_order_acquire);
  return mapping_ != nullptr && mapping_->failed_.load(std::memory_order_acquire);
}

}  // namespace systole
