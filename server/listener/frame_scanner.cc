#include "server/listener/frame_scanner.h"

#include <algorithm>

namespace systole {
namespace {

constexpr uint8_t kData = 0, kHeaders = 1, kReset = 3, kContinuation = 9;
constexpr uint8_t kEndStream = 1;  // A flag of kData and kHeaders.

}  // namespace

void FrameScanner::Take(absl::Span<const uint8_t> bytes) {
  const auto skip = [&bytes](size_t& left) {
    const size_t now = std::min(left, bytes.size());
    left -= now;
    bytes.remove_prefix(now);
  };
  skip(preface_left_);
  while (!bytes.empty()) {
    if (payload_left_ > 0) {
      skip(payload_left_);
      continue;
    }
    const size_t now = std::min(kHeadBytes - head_bytes_, bytes.size());
    std::copy_n(bytes.begin(), now, head_.begin() + head_bytes_);
    bytes.remove_prefix(now);
    head_bytes_ += now;
    if (head_bytes_ == kHeadBytes) TakeHead();
  }
}

void FrameScanner::TakeHead() {
  head_bytes_ = 0;
  payload_left_ = size_t{head_[0]} << 16 | size_t{head_[1]} << 8 | size_t{head_[2]};
  const uint8_t type = head_[3];
  const bool ends = (head_[4] & kEndStream) != 0;
  const uint32_t stream = (uint32_t{head_[5]} << 24 | uint32_t{head_[6]} << 16 |
                           uint32_t{head_[7]} << 8 | uint32_t{head_[8]}) &
                          0x7fffffff;
  if (type == kHeaders) {
    header_bytes_ = static_cast<int64_t>(payload_left_);
    if (stream % 2 == 1 && stream > last_stream_) {
      last_stream_ = stream;
      ++streams_opened_;
      waiting_.emplace(stream, 0);
    }
  } else if (type == kContinuation) {
    header_bytes_ += static_cast<int64_t>(payload_left_);
  }
  const auto request = waiting_.find(stream);
  if (request == waiting_.end()) return;
  request->second += static_cast<int64_t>(payload_left_);
  bytes_waiting_ += static_cast<int64_t>(payload_left_);
  if (type == kReset || ((type == kData || type == kHeaders) && ends)) {
    bytes_waiting_ -= request->second;
    waiting_.erase(request);
  }
}

}  // namespace systole
