#include "tests/client/feed/flooding_server.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status/check.h"
#include "grpcpp/server_builder.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/slice.h"
#include "tests/client/servers/paced_sockets.h"
#include "tests/http2_frames.h"
#include "tests/loopback_socket.h"

namespace systole {
namespace {

constexpr int kData = 0, kHeaders = 1, kPriority = 2, kReset = 3, kSettings = 4, kPushPromise = 5,
              kPing = 6, kGoAway = 7, kWindowUpdate = 8, kContinuation = 9, kUnknown = 0xbb;
constexpr int kEndHeaders = 4;
constexpr size_t kBlockBytes = 256 << 10;               // About this much is sent at a time.
constexpr std::chrono::microseconds kBlockPause(2500);  // The pause after each block.

std::string Times(const std::string& bytes, size_t times) {
  std::string all;
  for (size_t i = 0; i < times; ++i) all += bytes;
  return all;
}

std::string Block(const std::string& frame) {
  return Times(frame, std::max<size_t>(1, kBlockBytes / frame.size()));
}

bool ReadExactly(int fd, char* bytes, size_t count) {
  while (count > 0) {
    const ssize_t got = ::read(fd, bytes, count);
    if (got <= 0) return false;
    bytes += got;
    count -= static_cast<size_t>(got);
  }
  return true;
}

// Reads what a client sends, up to the headers of its first call.
bool ReadFirstCall(int fd) {
  char preface[24];
  if (!ReadExactly(fd, preface, sizeof(preface))) return false;
  while (true) {
    unsigned char head[9];
    if (!ReadExactly(fd, reinterpret_cast<char*>(head), sizeof(head))) return false;
    std::string payload(static_cast<size_t>(head[0] << 16 | head[1] << 8 | head[2]), '\0');
    if (!ReadExactly(fd, payload.data(), payload.size())) return false;
    if (head[3] == kHeaders) return true;
  }
}

}  // namespace

std::vector<AnswerFlood> AllAnswerFloods() {
  const std::string answer =
      Http2Header(":status", "200") + Http2Header("content-type", "application/grpc");
  const std::string begin = Http2Frame(kHeaders, kEndHeaders, 1, answer);
  const std::string open = Http2Frame(kHeaders, 0, 1, answer);
  const std::string four_bytes("\0\0\0\2", 4);
  std::vector<AnswerFlood> floods = {
      {"empty data", begin, Http2Frame(kData, 0, 1, "")},
      {"headers of other calls", "", Http2Frame(kHeaders, kEndHeaders, 2, answer)},
      {"priorities", begin, Http2Frame(kPriority, 0, 1, four_bytes + "1")},
      {"resets of other calls", "", Http2Frame(kReset, 0, 3, four_bytes)},
      {"settings", begin,
       Http2Frame(kSettings, 0, 0, Times(std::string("\0\1\0\0\x10\0", 6), 2000))},
      {"pushes", begin, Http2Frame(kPushPromise, kEndHeaders, 1, four_bytes + answer)},
      {"pings", begin, Http2Frame(kPing, 0, 0, "12345678")},
      {"farewells", "", Http2Frame(kGoAway, 0, 0, Times(four_bytes, 2) + std::string(16000, 'd'))},
      {"window updates", begin, Http2Frame(kWindowUpdate, 0, 1, std::string("\0\0\0\1", 4))},
      {"empty continuations", open, Http2Frame(kContinuation, 0, 1, "")},
      {"many headers", open,
       Http2Frame(kContinuation, 0, 1, Times(Http2Header("abc", std::string(50, 'v')), 250))},
      {"frames of no kind", begin, Http2Frame(kUnknown, 0, 1, std::string(16000, 'u'))},
  };
  for (AnswerFlood& flood : floods) flood.again = Block(flood.again);
  return floods;
}

FloodingServer::FloodingServer(const AnswerFlood& flood, int64_t flood_bytes, int floods)
    : flood_(flood),
      flood_bytes_(flood_bytes),
      floods_(floods),
      listener_(ListenOnLoopback(port_)) {
  acceptor_ = std::thread([this] { Accept(); });
}

FloodingServer::~FloodingServer() {
  {
    MutexLock lock(mu_);
    ::shutdown(listener_.get(), SHUT_RDWR);
    for (const OwnedFd& socket : sockets_) ::shutdown(socket.get(), SHUT_RDWR);
  }
  acceptor_.join();
}

std::string FloodingServer::address() const { return absl::StrCat("127.0.0.1:", port_); }

void FloodingServer::Accept() {
  while (true) {
    OwnedFd client = AcceptOnLoopback(listener_);
    if (!client.ok()) return;
    const int fd = client.get();
    {
      MutexLock lock(mu_);
      sockets_.push_back(std::move(client));
    }
    if (ended_ == floods_) continue;
    most_bytes_ = std::max(most_bytes_.load(), Answer(fd));
    ++ended_;
  }
}

int64_t FloodingServer::Answer(int fd) const {
  // gRPC makes no call before it gets the settings.
  const std::string settings = Http2Frame(kSettings, 0, 0, "");
  ::send(fd, settings.data(), settings.size(), MSG_NOSIGNAL);
  if (!ReadFirstCall(fd)) return 0;
  int64_t sent = 0;
  for (const std::string* bytes = &flood_.begin; sent < flood_bytes_; bytes = &flood_.again) {
    for (size_t begin = 0; begin < bytes->size();) {
      // The loop also reads the client's acknowledgements of settings and pings. A client that
      // cannot send them reads no further.
      pollfd ready = {.fd = fd, .events = POLLIN | POLLOUT, .revents = 0};
      ::poll(&ready, 1, -1);
      char answer[4096];
      if ((ready.revents & POLLIN) != 0 && ::recv(fd, answer, sizeof(answer), 0) <= 0) return sent;
      const ssize_t now =
          ::send(fd, bytes->data() + begin, bytes->size() - begin, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (now < 0 && errno == EAGAIN) continue;
      if (now <= 0) return sent;
      begin += static_cast<size_t>(now);
      sent += now;
    }
    std::this_thread::sleep_for(kBlockPause);
  }
  return sent;
}

class GiantServer::Service : public grpc::CallbackGenericService {
 public:
  Service(int64_t message_bytes, bool compressed) : compressed_(compressed) {
    // The slices all use one block, so the server needs little memory.
    static const std::string& block = *new std::string(1 << 20, '\0');
    std::vector<grpc::Slice> slices;
    for (int64_t bytes = 0; bytes < message_bytes; bytes += static_cast<int64_t>(block.size())) {
      slices.emplace_back(block.data(), block.size(), grpc::Slice::STATIC_SLICE);
    }
    message_ = grpc::ByteBuffer(slices.data(), slices.size());
  }

  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override {
    if (compressed_) context->set_compression_algorithm(GRPC_COMPRESS_GZIP);
    return new Call(message_);
  }

 private:
  class Call : public grpc::ServerGenericBidiReactor {
   public:
    explicit Call(const grpc::ByteBuffer& message) : message_(message) {
      StartWriteAndFinish(&message_, grpc::WriteOptions(), grpc::Status::OK);
    }
    void OnDone() override { delete this; }

   private:
    const grpc::ByteBuffer message_;
  };

  const bool compressed_;
  grpc::ByteBuffer message_;
};

GiantServer::GiantServer(int64_t message_bytes, const Options& options)
    : service_(std::make_unique<Service>(message_bytes, options.compressed)) {
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", options.credentials, &port);
  builder.SetOption(PacedSockets());
  builder.RegisterCallbackGenericService(service_.get());
  server_ = builder.BuildAndStart();
  SYSTOLE_CHECK(server_ != nullptr && port != 0);
  address_ = absl::StrCat("127.0.0.1:", port);
}

GiantServer::~GiantServer() { server_->Shutdown(std::chrono::system_clock::now()); }

}  // namespace systole
