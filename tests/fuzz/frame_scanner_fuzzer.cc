// Tests the scanner of HTTP/2 frames. Its counts are within bounds, and do not change if the bytes
// come in pieces. The first byte gives the size of the pieces.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "absl/types/span.h"
#include "server/listener/frame_scanner.h"
#include "tests/fuzz/fuzzer.h"

namespace {

void Require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

}  // namespace

SYSTOLE_FUZZER(frame_scanner, const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const absl::Span<const uint8_t> bytes(data + 1, size - 1);
  systole::FrameScanner whole;
  whole.Take(bytes);
  const size_t piece = 1 + data[0] % 32;
  systole::FrameScanner cut;
  for (size_t at = 0; at < bytes.size(); at += piece) cut.Take(bytes.subspan(at, piece));
  Require(whole.streams_opened() == cut.streams_opened() &&
              whole.streams_waiting() == cut.streams_waiting() &&
              whole.bytes_waiting() == cut.bytes_waiting() &&
              whole.header_bytes() == cut.header_bytes(),
          "the counts depend on where the bytes are cut");
  Require(whole.streams_waiting() >= 0 && whole.streams_waiting() <= whole.streams_opened(),
          "more streams wait than were opened");
  Require(whole.bytes_waiting() >= 0, "the number of waiting bytes is negative");
  Require(whole.streams_opened() <= static_cast<int64_t>(size / 9),
          "more streams were opened than frames came");
  return 0;
}
