#include "bench/object_server.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <deque>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "core/descriptor/owned_fd.h"
#include "core/status/check.h"

namespace systole::bench {
namespace {

using Clock = std::chrono::steady_clock;

// At most this many bytes of one answer are sent before the next answer has its turn.
constexpr int64_t kTurnBytes = 128 << 10;
constexpr size_t kMostHeadBytes = 64 << 10;
// If the process did not run for a while, it sends at once what the link would have sent in this
// time, but at most what the link sends in kBurstSeconds. So the rate is kept on a busy machine,
// where the process does not run every millisecond.
constexpr double kBurstSeconds = 0.02;

struct File {
  OwnedFd fd;
  int64_t size = 0;
  std::string etag;
};

struct Connection {
  OwnedFd socket;
  std::string received;
  // Whether an answer waits for its time or is being sent.
  bool answers = false;
  Clock::time_point due;
  std::string head;
  int file = -1;
  off_t offset = 0;
  int64_t left = 0;   // Bytes of the body.
  bool full = false;  // The socket takes no more now.
};

std::string HeaderValue(absl::string_view request, absl::string_view name) {
  for (absl::string_view line : absl::StrSplit(request, "\r\n")) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(line, absl::MaxSplits(':', 1));
    if (absl::EqualsIgnoreCase(parts.first, name)) {
      return std::string(absl::StripAsciiWhitespace(parts.second));
    }
  }
  return "";
}

// Reads "bytes=FIRST-LAST" or "bytes=FIRST-" for an object of `size` bytes. False if `text` has
// another form, or if the object has none of these bytes.
bool ParseRange(absl::string_view text, int64_t size, int64_t& begin, int64_t& end) {
  if (!absl::ConsumePrefix(&text, "bytes=")) return false;
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(text, absl::MaxSplits('-', 1));
  int64_t last = size - 1;
  if (!absl::SimpleAtoi(parts.first, &begin)) return false;
  if (!parts.second.empty() && !absl::SimpleAtoi(parts.second, &last)) return false;
  end = std::min(last, size - 1) + 1;
  return begin >= 0 && begin < end;
}

int ListenOnLoopback(int& port) {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  SYSTOLE_CHECK(bind(listener, reinterpret_cast<sockaddr*>(&address), size) == 0);
  SYSTOLE_CHECK(listen(listener, SOMAXCONN) == 0);
  SYSTOLE_CHECK(getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  port = ntohs(address.sin_port);
  return listener;
}

}  // namespace

// Runs the server in its process, in one thread.
class ObjectServer::Loop {
 public:
  Loop(std::string folder, const ObjectServerLink& link, int listener, Shared& shared)
      : folder_(std::move(folder)),
        link_(link),
        listener_(listener),
        shared_(shared),
        epoll_(epoll_create1(EPOLL_CLOEXEC)) {
    Watch(listener_.get(), EPOLLIN);
  }

  [[noreturn]] void Run() {
    while (true) {
      epoll_event events[128];
      const int count = epoll_wait(epoll_.get(), events, std::size(events), WaitMilliseconds());
      for (int i = 0; i < count; ++i) {
        const int fd = events[i].data.fd;
        if (fd == listener_.get()) {
          Accept();
        } else if (Receive(fd) && (events[i].events & EPOLLOUT) != 0) {
          Connection& connection = connections_.at(fd);
          if (std::exchange(connection.full, false)) sending_.push_back(fd);
        }
      }
      const Clock::time_point now = Clock::now();
      while (!waiting_.empty() && waiting_.front().first <= now) {
        sending_.push_back(waiting_.front().second);
        waiting_.pop_front();
      }
      Allow(now);
      Send();
    }
  }

 private:
  void Watch(int fd, uint32_t events) {
    epoll_event event = {.events = events, .data = {.fd = fd}};
    SYSTOLE_CHECK(epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0);
  }

  int WaitMilliseconds() const {
    if (!sending_.empty()) return allowance_ > 0 ? 0 : 1;
    if (waiting_.empty()) return -1;
    const auto wait = waiting_.front().first - Clock::now();
    return std::max(0,
                    static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(wait).count()));
  }

  void Accept() {
    while (true) {
      OwnedFd socket(accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (!socket.ok()) return;
      const int fd = socket.get();
      const int on = 1;
      setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
      connections_[fd].socket = std::move(socket);
      // With EPOLLET, a socket that has room is reported only once, and again after it was full. So
      // Connection::full says which sockets are full.
      Watch(fd, EPOLLIN | EPOLLOUT | EPOLLET);
    }
  }

  void Close(int fd) {
    std::erase_if(waiting_, [fd](const auto& entry) { return entry.second == fd; });
    std::erase(sending_, fd);
    connections_.erase(fd);
  }

  // Returns false if the connection has ended.
  bool Receive(int fd) {
    Connection& connection = connections_.at(fd);
    while (true) {
      char buffer[4096];
      const ssize_t size = recv(fd, buffer, sizeof(buffer), 0);
      if (size < 0 && errno == EAGAIN) break;
      if (size > 0) connection.received.append(buffer, static_cast<size_t>(size));
      if (size <= 0 || connection.received.size() > kMostHeadBytes) {
        Close(fd);
        return false;
      }
    }
    BeginAnswer(fd, connection);
    return true;
  }

  // Begins to answer the next request, if all of it was received and no other answer is under way.
  void BeginAnswer(int fd, Connection& connection) {
    const size_t end = connection.received.find("\r\n\r\n");
    if (connection.answers || end == std::string::npos) return;
    const std::string request = connection.received.substr(0, end);
    connection.received.erase(0, end + 4);
    ++shared_.requests;
    connection.answers = true;
    connection.left = 0;
    Prepare(request, connection);
    // All answers wait equally long, so `waiting_` stays sorted.
    waiting_.emplace_back(Clock::now() + link_.latency, fd);
  }

  void Prepare(const std::string& request, Connection& connection) {
    const std::vector<absl::string_view> words =
        absl::StrSplit(absl::string_view(request).substr(0, request.find('\r')), ' ');
    const auto refuse = [&](absl::string_view status, absl::string_view headers = "") {
      connection.head =
          absl::StrCat("HTTP/1.1 ", status, "\r\nContent-Length: 0\r\n", headers, "\r\n");
    };
    const bool is_head = words[0] == "HEAD";
    if (words.size() != 3 || (!is_head && words[0] != "GET")) return refuse("405 Method");
    const File* file = Find(words[1]);
    if (file == nullptr) return refuse("404 Not Found");
    const std::string if_match = HeaderValue(request, "If-Match");
    if (!if_match.empty() && if_match != file->etag) return refuse("412 Precondition Failed");
    int64_t begin = 0;
    int64_t last_end = file->size;
    const std::string range = HeaderValue(request, "Range");
    if (!range.empty() && !ParseRange(range, file->size, begin, last_end)) {
      return refuse("416 Range", absl::StrCat("Content-Range: bytes */", file->size, "\r\n"));
    }
    connection.head =
        range.empty() ? "HTTP/1.1 200 OK\r\n"
                      : absl::StrFormat("HTTP/1.1 206 Partial\r\nContent-Range: bytes %d-%d/%d\r\n",
                                        begin, last_end - 1, file->size);
    absl::StrAppend(&connection.head, "Accept-Ranges: bytes\r\nETag: ", file->etag,
                    "\r\nContent-Length: ", last_end - begin, "\r\n\r\n");
    if (is_head) return;
    connection.file = file->fd.get();
    connection.offset = begin;
    connection.left = last_end - begin;
  }

  // Null: there is no such file. Addresses that differ only after a '?' name the same file.
  const File* Find(absl::string_view address) {
    const std::string target(address.substr(0, address.find('?')));
    const auto known = files_.find(target);
    if (known != files_.end()) return &known->second;
    if (absl::StrContains(target, "..")) return nullptr;
    OwnedFd fd(open((folder_ + target).c_str(), O_RDONLY | O_CLOEXEC));
    struct stat state;
    if (!fd.ok() || fstat(fd.get(), &state) != 0 || !S_ISREG(state.st_mode)) return nullptr;
    File& file = files_[target];
    file.size = state.st_size;
    file.etag =
        absl::StrFormat("\"%x-%x-%x\"", state.st_ino, state.st_mtim.tv_sec, state.st_mtim.tv_nsec);
    file.fd = std::move(fd);
    return &file;
  }

  // Adds to allowance_ the bytes that the link could send since the last call.
  void Allow(Clock::time_point now) {
    const std::chrono::duration<double> passed = now - allowed_at_;
    allowed_at_ = now;
    if (link_.bytes_per_second == 0) {
      allowance_ = 64.0 * kTurnBytes;
      return;
    }
    const auto rate = static_cast<double>(link_.bytes_per_second);
    allowance_ = std::min(allowance_ + passed.count() * rate, kBurstSeconds * rate);
  }

  // Sends parts of the answers, in turns, while the link takes bytes.
  void Send() {
    while (!sending_.empty() && allowance_ > 0) {
      const int fd = sending_.front();
      sending_.pop_front();
      Connection& connection = connections_.at(fd);
      if (!SendTurn(connection)) {
        Close(fd);
      } else if (!connection.head.empty() || connection.left > 0) {
        if (!connection.full) sending_.push_back(fd);
      } else {
        connection.answers = false;
        BeginAnswer(fd, connection);
      }
    }
  }

  // Sends the next part of an answer. Returns false if the connection has ended.
  bool SendTurn(Connection& connection) {
    const int fd = connection.socket.get();
    if (!connection.head.empty()) {
      const int more = connection.left > 0 ? MSG_MORE : 0;
      const ssize_t sent =
          send(fd, connection.head.data(), connection.head.size(), MSG_NOSIGNAL | more);
      if (sent > 0) connection.head.erase(0, static_cast<size_t>(sent));
      if (sent <= 0 || !connection.head.empty()) {
        connection.full = true;
        return sent > 0 || errno == EAGAIN;
      }
    }
    if (connection.left == 0) return true;
    const ssize_t sent = sendfile(fd, connection.file, &connection.offset,
                                  static_cast<size_t>(std::min(connection.left, kTurnBytes)));
    if (sent <= 0) {
      connection.full = true;
      return sent < 0 && errno == EAGAIN;
    }
    connection.left -= sent;
    allowance_ -= static_cast<double>(sent);
    shared_.bytes_sent += sent;
    return true;
  }

  const std::string folder_;
  const ObjectServerLink link_;
  const OwnedFd listener_;
  Shared& shared_;
  const OwnedFd epoll_;
  std::unordered_map<std::string, File> files_;
  std::unordered_map<int, Connection> connections_;
  std::deque<std::pair<Clock::time_point, int>> waiting_;  // Answers whose time has not come.
  std::deque<int> sending_;  // Connections that have an answer to send and are not full.
  double allowance_ = 0;     // Bytes that the link takes now. The last turn may overdraw it.
  Clock::time_point allowed_at_ = Clock::now();
};

ObjectServer::ObjectServer(std::string folder, const ObjectServerLink& link)
    : folder_(std::move(folder)),
      shared_(static_cast<Shared*>(mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE,
                                        MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {
  SYSTOLE_CHECK(shared_ != MAP_FAILED);
  new (shared_) Shared;
  // Requests to this server must not go through a proxy that the environment names.
  setenv("no_proxy", "127.0.0.1", 1);
  const int listener = ListenOnLoopback(port_);
  process_ = fork();
  SYSTOLE_CHECK(process_ >= 0);
  if (process_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    Loop(folder_, link, listener, *shared_).Run();
  }
  close(listener);
}

ObjectServer::~ObjectServer() {
  kill(process_, SIGKILL);
  waitpid(process_, nullptr, 0);
  munmap(shared_, sizeof(Shared));
}

std::string ObjectServer::Url(absl::string_view path) const {
  SYSTOLE_CHECK(absl::ConsumePrefix(&path, folder_));
  return absl::StrCat("http://127.0.0.1:", port_, path);
}

}  // namespace systole::bench
