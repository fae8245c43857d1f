#include "tests/system/stranger.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/descriptor/owned_fd.h"
#include "core/status/check.h"
#include "gtest/gtest.h"
#include "tests/http2_frames.h"
#include "tests/loopback_socket.h"

namespace systole {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr size_t kFrameHead = 9;
constexpr int kHangUpMs = 300'000;

std::string BigEndian(uint32_t value, int bytes) {
  std::string text;
  while (bytes-- > 0) text.push_back(static_cast<char>(value >> (8 * bytes)));
  return text;
}

uint32_t NumberAt(absl::string_view bytes, size_t at, size_t size) {
  uint32_t number = 0;
  for (size_t i = at; i < at + size; ++i) number = number << 8 | static_cast<uint8_t>(bytes[i]);
  return number;
}

std::string RequestHeaders() {
  std::string block;
  for (const auto& [name, value] :
       {std::pair(":method", "POST"), std::pair(":scheme", "http"),
        std::pair(":path", "/systole.v1.Systole/StreamSteps"), std::pair(":authority", "x"),
        std::pair("te", "trailers"), std::pair("content-type", "application/grpc")}) {
    block += Http2Header(name, value, /*kept=*/true);
  }
  return block;
}

// The headers of RequestHeaders() as entries of the receiver's table. The last header is entry 62,
// and the first is entry 67.
constexpr char kKnownHeaders[] = "\xc3\xc2\xc1\xc0\xbf\xbe";

// Makes the bytes that one connection sends. It also reads what the server sends, for flow control.
class Source {
 public:
  explicit Source(RequestFlood flood) : flood_(flood) {}

  std::string Opening() {
    std::string opening = kHttp2Preface + Http2Frame(4, 0, 0, "");
    const bool ends =
        flood_ != RequestFlood::kContinuation && flood_ != RequestFlood::kTableEntries;
    absl::StrAppend(&opening, Http2Frame(1, ends ? 4 : 0, 1, RequestHeaders()));
    if (flood_ == RequestFlood::kEndlessMessage) {
      absl::StrAppend(&opening, Http2Frame(0, 0, 1, std::string("\0\xff\xff\xff\xf0", 5)));
      connection_window_ -= 5;
      stream_window_ -= 5;
    }
    if (flood_ == RequestFlood::kHiddenRequests) {
      absl::StrAppend(&opening, Http2Frame(1, 4 | 1, 0x7ffffffe, kKnownHeaders));
    }
    stream_ = 3;
    return opening;
  }

  // Returns the next bytes to send: at least 8 KiB, unless flow control allows less.
  std::string Next() {
    std::string bytes = std::exchange(answers_, "");
    while (bytes.size() < (8 << 10)) {
      const std::string frames = NextFrames();
      if (frames.empty()) break;
      bytes += frames;
    }
    return bytes;
  }

  // Reads what the server has sent.
  void Take(absl::string_view bytes) {
    heard_.append(bytes.data(), bytes.size());
    while (heard_.size() >= kFrameHead) {
      const size_t size = NumberAt(heard_, 0, 3);
      if (heard_.size() < kFrameHead + size) return;
      const absl::string_view payload(heard_.data() + kFrameHead, size);
      if (heard_[3] == 8 && size == 4) {
        (NumberAt(heard_, 5, 4) == 0 ? connection_window_ : stream_window_) +=
            NumberAt(payload, 0, 4);
      } else if (heard_[3] == 4) {
        for (size_t at = 0; at + 6 <= size; at += 6) {
          if (NumberAt(payload, at, 2) != 4) continue;  // Setting 4 is a stream's first window.
          const int64_t first = NumberAt(payload, at + 2, 4);
          stream_window_ += first - first_window_;
          first_window_ = first;
        }
      }
      // The server gives larger windows to a client that answers the server's settings and pings.
      const bool asks = (heard_[3] == 4 || heard_[3] == 6) && (heard_[4] & 1) == 0;
      if (asks && flood_ == RequestFlood::kEndlessMessage) {
        absl::StrAppend(&answers_, Http2Frame(heard_[3], 1, 0, heard_[3] == 6 ? payload : ""));
      }
      heard_.erase(0, kFrameHead + size);
    }
  }

 private:
  std::string NextFrames() {
    const uint32_t stream = stream_;
    stream_ += 2;
    switch (flood_) {
      case RequestFlood::kEndlessMessage: {
        const int64_t most = std::min({connection_window_, stream_window_, int64_t{16} << 10});
        if (most <= 0) return "";
        connection_window_ -= most;
        stream_window_ -= most;
        return Http2Frame(0, 0, 1, std::string(static_cast<size_t>(most), 'x'));
      }
      case RequestFlood::kContinuation:
        return Http2Frame(9, 0, 1,
                          Repeated(Http2Header("x-a", std::string(100, 'y'), /*kept=*/false), 100));
      case RequestFlood::kTableEntries:
        return Http2Frame(9, 0, 1, Repeated(Http2Header("a", "", /*kept=*/true), 2000));
      case RequestFlood::kRequests:
      case RequestFlood::kHiddenRequests:
        return Http2Frame(1, 4, stream, kKnownHeaders);
      case RequestFlood::kEmptyRequests:
        return Http2Frame(1, 4 | 1, stream, kKnownHeaders);
      case RequestFlood::kResets:
        return absl::StrCat(Http2Frame(1, 4, stream, kKnownHeaders),
                            Http2Frame(3, 0, stream, BigEndian(8, 4)));
      case RequestFlood::kTableSizes:
        return Http2Frame(1, 4 | 1, stream, absl::StrCat("\x20\x3f\xe1\x1f", RequestHeaders()));
      case RequestFlood::kWindowUpdates:
        return Http2Frame(8, 0, 0, BigEndian(1, 4));
      case RequestFlood::kPings:
        return Http2Frame(6, 0, 0, "12345678");
      case RequestFlood::kUnknownFrames:
        return Http2Frame(99, 0, 0, "");
    }
    return "";
  }
  static std::string Repeated(const std::string& text, int times) {
    std::string all;
    while (times-- > 0) all += text;
    return all;
  }

  const RequestFlood flood_;
  uint32_t stream_ = 1;
  std::string heard_;
  std::string answers_;
  int64_t first_window_ = 65535;
  int64_t connection_window_ = 65535;
  int64_t stream_window_ = 65535;
};

}  // namespace

const std::vector<RequestFloodCase>& AllRequestFloods() {
  static const std::vector<RequestFloodCase>& floods = *new std::vector<RequestFloodCase>{
      {RequestFlood::kEndlessMessage, "EndlessMessage", 512 * kMiB},
      {RequestFlood::kContinuation, "Continuation", 128 * kMiB},
      {RequestFlood::kTableEntries, "TableEntries", 64 * kMiB},
      {RequestFlood::kRequests, "Requests", 8 * kMiB},
      {RequestFlood::kHiddenRequests, "HiddenRequests", 8 * kMiB},
      {RequestFlood::kEmptyRequests, "EmptyRequests", 8 * kMiB},
      {RequestFlood::kResets, "Resets", 8 * kMiB},
      {RequestFlood::kTableSizes, "TableSizes", 16 * kMiB},
      {RequestFlood::kWindowUpdates, "WindowUpdates", 512 * kMiB},
      {RequestFlood::kPings, "Pings", 32 * kMiB},
      {RequestFlood::kUnknownFrames, "UnknownFrames", 512 * kMiB},
  };
  return floods;
}

int64_t SendFlood(const std::string& server, RequestFlood flood, int64_t bytes, int host) {
  const OwnedFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in from = LoopbackAddress(0, host);
  const sockaddr_in to = LoopbackAddress(PortOf(server));
  SYSTOLE_CHECK(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&from), sizeof(from)) == 0);
  SYSTOLE_CHECK(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof(to)) == 0);
  Source source(flood);
  std::string left = source.Opening();
  int64_t sent = 0;
  while (true) {
    if (left.empty() && sent < bytes) left = source.Next();
    pollfd ready = {.fd = fd.get(), .events = POLLIN, .revents = 0};
    if (!left.empty()) ready.events |= POLLOUT;
    if (::poll(&ready, 1, kHangUpMs) != 1) break;
    if ((ready.revents & POLLIN) != 0) {
      char buffer[16 << 10];
      const ssize_t got = ::recv(fd.get(), buffer, sizeof(buffer), MSG_DONTWAIT);
      if (got <= 0) return sent;
      source.Take(absl::string_view(buffer, static_cast<size_t>(got)));
    } else if ((ready.revents & POLLOUT) != 0) {
      const ssize_t gone = ::send(fd.get(), left.data(), left.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      if (gone < 0) return sent;
      sent += gone;
      left.erase(0, static_cast<size_t>(gone));
    } else {
      return sent;
    }
  }
  ADD_FAILURE() << "the server has not hung up after " << sent << " bytes";
  return sent;
}

}  // namespace systole
