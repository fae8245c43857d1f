// What a client opens over one HTTP/2 connection, read off the heads of its frames (RFC 9113,
// section 4.1), before anybody decodes them. Streams are those that gRPC opens: with odd numbers,
// each higher than all before.
//
// Thread-compatible.
#ifndef SYSTOLE_SERVER_DOOR_FRAME_SCANNER_H_
#define SYSTOLE_SERVER_DOOR_FRAME_SCANNER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>

#include "absl/types/span.h"

namespace systole {

class FrameScanner {
 public:
  // The bytes that come next, from the client's preface on.
  void Take(absl::Span<const uint8_t> bytes);

  int64_t streams_opened() const { return streams_opened_; }
  // Of those, whose request the client has neither ended nor reset, and what has come of these
  // requests.
  int64_t streams_waiting() const { return static_cast<int64_t>(waiting_.size()); }
  int64_t bytes_waiting() const { return bytes_waiting_; }
  // Of the list of headers that came last, as it is on the wire: HEADERS and CONTINUATION.
  int64_t header_bytes() const { return header_bytes_; }

 private:
  static constexpr size_t kPrefaceBytes = 24;
  static constexpr size_t kHeadBytes = 9;

  void TakeHead();

  size_t preface_left_ = kPrefaceBytes;
  std::array<uint8_t, kHeadBytes> head_ = {};
  size_t head_bytes_ = 0;  // Of the next frame's that have come.
  size_t payload_left_ = 0;
  uint32_t last_stream_ = 0;
  int64_t streams_opened_ = 0;
  std::map<uint32_t, int64_t> waiting_;  // How many bytes of each.
  int64_t bytes_waiting_ = 0;            // Their sum.
  int64_t header_bytes_ = 0;
};

}  // namespace systole

#endif  // SYSTOLE_SERVER_DOOR_FRAME_SCANNER_H_
