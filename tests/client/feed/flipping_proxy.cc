#include "tests/client/feed/flipping_proxy.h"

#include <sys/socket.h>
#include <unistd.h>

#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status/check.h"
#include "tests/loopback_socket.h"

namespace systole {
namespace {

constexpr size_t kPrefaceBytes = 24;     // "PRI * HTTP/2.0 ..", from a client.
constexpr size_t kFrameHeaderBytes = 9;  // length:u24 type:u8 flags:u8 stream:u32, big-endian.
constexpr uint8_t kDataFrame = 0;
constexpr size_t kMessagePrefixBytes = 5;  // compressed:u8 length:u32, big-endian.

}  // namespace

struct FlippingProxy::Parser {
  // The place within the messages of a call.
  struct Call {
    size_t prefix_bytes = 0;  // How much of the next message's prefix was read.
    uint32_t message_left = 0;
    int64_t number = -1;  // Number of the current message since Arm(); -1: it stays unchanged.
    int64_t offset = 0;   // Offset in that message.
  };

  Direction direction;
  size_t preface_left = 0;
  uint8_t header[kFrameHeaderBytes] = {};
  size_t header_bytes = 0;
  uint32_t frame_left = 0;
  std::map<uint32_t, Call> calls;

  bool in_data() const { return header[3] == kDataFrame; }
  uint32_t stream() const {
    return (uint32_t{header[5]} << 24 | uint32_t{header[6]} << 16 | uint32_t{header[7]} << 8 |
            header[8]) &
           0x7fffffff;
  }
};

FlippingProxy::FlippingProxy(int server_port)
    : server_port_(server_port), listener_(ListenOnLoopback(port_)) {
  acceptor_ = std::thread([this] { Accept(); });
}

FlippingProxy::~FlippingProxy() {
  {
    MutexLock lock(mu_);
    stopping_ = true;
    shutdown(listener_.get(), SHUT_RDWR);
    for (const OwnedFd& socket : sockets_) shutdown(socket.get(), SHUT_RDWR);
  }
  acceptor_.join();
  std::vector<std::thread> pumps;
  {
    MutexLock lock(mu_);
    pumps.swap(pumps_);
  }
  for (std::thread& pump : pumps) pump.join();
}

std::string FlippingProxy::address() const { return absl::StrCat("127.0.0.1:", port_); }

void FlippingProxy::Arm(Direction direction, int64_t message, int64_t bit) {
  MutexLock lock(mu_);
  direction_ = direction;
  message_ = message;
  bit_ = bit;
  seen_messages_ = 0;
  flipped_ = false;
}

bool FlippingProxy::flipped() const {
  MutexLock lock(mu_);
  return flipped_;
}

void FlippingProxy::Accept() {
  while (true) {
    OwnedFd client = AcceptOnLoopback(listener_);
    if (!client.ok()) return;
    OwnedFd server = ConnectOnLoopback(server_port_);
    SYSTOLE_CHECK(server.ok());
    MutexLock lock(mu_);
    if (stopping_) return;
    pumps_.emplace_back(
        [this, from = client.get(), to = server.get()] { Pump(from, to, Direction::kToServer); });
    pumps_.emplace_back(
        [this, from = server.get(), to = client.get()] { Pump(from, to, Direction::kToClient); });
    sockets_.push_back(std::move(client));
    sockets_.push_back(std::move(server));
  }
}

void FlippingProxy::Pump(int from, int to, Direction direction) {
  Parser parser = {.direction = direction,
                   .preface_left = direction == Direction::kToServer ? kPrefaceBytes : 0};
  std::vector<uint8_t> bytes;
  while (true) {
    bytes.resize(1 << 16);
    const ssize_t got = read(from, bytes.data(), bytes.size());
    if (got <= 0) break;
    bytes.resize(static_cast<size_t>(got));
    Pass(parser, bytes);
    for (size_t sent = 0; sent < bytes.size();) {
      const ssize_t now = send(to, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (now <= 0) {
        shutdown(from, SHUT_RDWR);
        return;
      }
      sent += static_cast<size_t>(now);
    }
  }
  shutdown(to, SHUT_WR);
}

void FlippingProxy::Pass(Parser& parser, std::vector<uint8_t>& bytes) {
  MutexLock lock(mu_);
  for (uint8_t& byte : bytes) {
    if (parser.preface_left > 0) {
      --parser.preface_left;
    } else if (parser.frame_left == 0) {
      parser.header[parser.header_bytes++] = byte;
      if (parser.header_bytes < kFrameHeaderBytes) continue;
      parser.header_bytes = 0;
      parser.frame_left =
          uint32_t{parser.header[0]} << 16 | uint32_t{parser.header[1]} << 8 | parser.header[2];
    } else {
      --parser.frame_left;
      if (parser.in_data()) PassData(parser, byte);
    }
  }
}

void FlippingProxy::PassData(Parser& parser, uint8_t& byte) {
  Parser::Call& call = parser.calls[parser.stream()];
  if (call.prefix_bytes < kMessagePrefixBytes) {
    if (call.prefix_bytes++ > 0) call.message_left = call.message_left << 8 | byte;
    if (call.prefix_bytes < kMessagePrefixBytes) return;
    call.number = parser.direction == direction_ ? seen_messages_++ : -1;
    if (call.message_left == 0) call = {};
    return;
  }
  if (!flipped_ && call.number == message_ && call.offset == bit_ / 8) {
    byte ^= static_cast<uint8_t>(1 << bit_ % 8);
    flipped_ = true;
  }
  ++call.offset;
  if (--call.message_left == 0) call = {};
}

}  // namespace systole
