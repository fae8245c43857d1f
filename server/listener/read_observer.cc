#include "server/listener/read_observer.h"

#include <dlfcn.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <optional>
#include <unordered_map>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "core/concurrency/mutex.h"
#include "core/descriptor/socket_cookie.h"
#include "openssl/ssl.h"

#define SYSTOLE_REPLACES_LIBRARY_FUNCTION __attribute__((visibility("default")))

namespace systole {
namespace {

struct Observed {
  uint64_t cookie = 0;
  std::shared_ptr<ReadObserver> observer;
  bool over_tls = false;
};

// The observed sockets, by descriptor. A socket that was closed stays until its number is used
// again, so there are no more entries than descriptors.
class ObservedSockets {
 public:
  void Add(int fd, std::shared_ptr<ReadObserver> observer) ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    sockets_[fd] = {.cookie = SocketCookie(fd), .observer = std::move(observer)};
    any_ = true;
  }
  std::optional<Observed> Find(int fd) ABSL_LOCKS_EXCLUDED(mu_) {
    if (!any_) return std::nullopt;
    MutexLock lock(mu_);
    const auto found = sockets_.find(fd);
    if (found == sockets_.end()) return std::nullopt;
    if (found->second.cookie == SocketCookie(fd)) return found->second;
    sockets_.erase(found);
    return std::nullopt;
  }
  // Notes that the socket is read through TLS. Returns its observer; null if there is none.
  std::shared_ptr<ReadObserver> UseTls(int fd) ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    const auto found = sockets_.find(fd);
    if (found == sockets_.end()) return nullptr;
    found->second.over_tls = true;
    return found->second.observer;
  }

 private:
  std::atomic<bool> any_ = false;
  Mutex mu_;
  std::unordered_map<int, Observed> sockets_ ABSL_GUARDED_BY(mu_);
};

ObservedSockets& Sockets() {
  static ObservedSockets& sockets = *new ObservedSockets;
  return sockets;
}

thread_local int handed_over = -1;

// The library's function that ours replaces.
template <typename Function>
Function* Replaced(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

// The index under which an SSL object keeps its observer. OpenSSL frees the observer with the
// object.
int ObserverIndex() {
  static const int index = ::SSL_get_ex_new_index(
      0, nullptr, nullptr, nullptr,
      [](void* /*ssl*/, void* observer, CRYPTO_EX_DATA* /*data*/, int /*index*/, long /*argl*/,
         void* /*argp*/) { delete static_cast<std::shared_ptr<ReadObserver>*>(observer); });
  return index;
}

bool IsAdmitted(int fd, const msghdr& message, size_t bytes) {
  const std::optional<Observed> socket = Sockets().Find(fd);
  if (!socket.has_value()) return true;
  if (!socket->observer->OnBytes(bytes)) return false;
  if (socket->over_tls) return true;
  for (size_t i = 0; bytes > 0 && i < message.msg_iovlen; ++i) {
    const iovec& piece = message.msg_iov[i];
    const size_t now = std::min(bytes, piece.iov_len);
    bytes -= now;
    if (!socket->observer->OnPlainText({static_cast<const uint8_t*>(piece.iov_base), now})) {
      return false;
    }
  }
  return true;
}

}  // namespace

void ObserveReads(int fd, std::shared_ptr<ReadObserver> observer) {
  Sockets().Add(fd, std::move(observer));
}

HandedOver::HandedOver(int fd) { handed_over = fd; }

HandedOver::~HandedOver() { handed_over = -1; }

absl::Status CheckReadsAreSeen() {
  const std::pair<const char*, void*> ours[] = {{"recvmsg", reinterpret_cast<void*>(&::recvmsg)},
                                                {"SSL_new", reinterpret_cast<void*>(&::SSL_new)},
                                                {"SSL_read", reinterpret_cast<void*>(&::SSL_read)}};
  for (const auto& [name, function] : ours) {
    if (::dlsym(RTLD_DEFAULT, name) == function) continue;
    return absl::InternalError(
        absl::StrCat("gRPC does not call this program's ", name,
                     ", so nothing bounds what connections send; link gRPC and OpenSSL "
                     "dynamically, and export this function"));
  }
  return absl::OkStatus();
}

}  // namespace systole

// The dynamic linker finds the functions below before the libraries' functions of the same names,
// also for calls in gRPC's library.
extern "C" {

SYSTOLE_REPLACES_LIBRARY_FUNCTION ssize_t recvmsg(int fd, msghdr* message, int flags) {
  static auto* const replaced = systole::Replaced<decltype(recvmsg)>("recvmsg");
  const ssize_t got = replaced(fd, message, flags);
  // Bytes that are only peeked at, and messages about errors, do not count as read.
  if (got <= 0 || (flags & (MSG_PEEK | MSG_ERRQUEUE)) != 0) return got;
  if (systole::IsAdmitted(fd, *message, static_cast<size_t>(got))) return got;
  errno = ECONNRESET;
  return -1;
}

SYSTOLE_REPLACES_LIBRARY_FUNCTION SSL* SSL_new(SSL_CTX* context) {
  static auto* const replaced = systole::Replaced<decltype(SSL_new)>("SSL_new");
  SSL* const ssl = replaced(context);
  if (ssl == nullptr || systole::handed_over < 0) return ssl;
  if (auto observer = systole::Sockets().UseTls(systole::handed_over); observer != nullptr) {
    ::SSL_set_ex_data(ssl, systole::ObserverIndex(),
                      new std::shared_ptr<systole::ReadObserver>(std::move(observer)));
  }
  return ssl;
}

SYSTOLE_REPLACES_LIBRARY_FUNCTION int SSL_read(SSL* ssl, void* buffer, int size) {
  static auto* const replaced = systole::Replaced<decltype(SSL_read)>("SSL_read");
  const int got = replaced(ssl, buffer, size);
  const auto* const observer = static_cast<std::shared_ptr<systole::ReadObserver>*>(
      ::SSL_get_ex_data(ssl, systole::ObserverIndex()));
  if (got <= 0 || observer == nullptr) return got;
  const bool admitted =
      (*observer)->OnPlainText({static_cast<const uint8_t*>(buffer), static_cast<size_t>(got)});
  return admitted ? got : -1;
}

}  // extern "C"
