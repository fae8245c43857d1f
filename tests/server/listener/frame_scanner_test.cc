#include "server/listener/frame_scanner.h"

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "tests/http2_frames.h"

namespace systole {
namespace {

constexpr int kEndStream = 1, kEndHeaders = 4;

void Take(FrameScanner& scanner, absl::string_view bytes) {
  scanner.Take({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
}

// Three requests: one is whole, one has no end, one was reset. Between them are frames that open
// no stream.
std::string Requests() {
  return kHttp2Preface + Http2Frame(4, 0, 0, "") + Http2Frame(1, kEndHeaders, 1, "abc") +
         Http2Frame(0, 0, 1, "half") + Http2Frame(0, kEndStream, 1, "whole") +
         Http2Frame(6, 0, 0, "12345678") + Http2Frame(1, 0, 3, "ab") +
         Http2Frame(9, kEndHeaders, 3, "cde") +
         Http2Frame(1, kEndHeaders, 5, std::string(300, 'h')) + Http2Frame(3, 0, 5, "1234") +
         Http2Frame(8, 0, 0, "1234") + Http2Frame(99, 0, 9, "?");
}

TEST(FrameScannerTest, CountsStreamsHoweverTheBytesAreSplit) {
  const std::string bytes = Requests();
  for (size_t piece = 1; piece <= bytes.size(); ++piece) {
    FrameScanner scanner;
    for (size_t at = 0; at < bytes.size(); at += piece) {
      Take(scanner, absl::string_view(bytes).substr(at, piece));
    }
    EXPECT_EQ(scanner.streams_opened(), 3) << piece;
    EXPECT_EQ(scanner.streams_waiting(), 1) << piece;
    EXPECT_EQ(scanner.header_bytes(), 300) << piece;
  }
}

TEST(FrameScannerTest, ARequestWithoutABodyIsNotCountedAsWaiting) {
  FrameScanner scanner;
  Take(scanner, kHttp2Preface + Http2Frame(1, kEndHeaders | kEndStream, 1, "abc"));
  EXPECT_EQ(scanner.streams_opened(), 1);
  EXPECT_EQ(scanner.streams_waiting(), 0);
}

// gRPC ignores a stream with an even number. After such a stream, gRPC still accepts any odd
// number, also a smaller one.
TEST(FrameScannerTest, AnEvenStreamIdIsIgnoredAndHidesNoLaterStreams) {
  FrameScanner scanner;
  Take(scanner, kHttp2Preface + Http2Frame(1, kEndHeaders | kEndStream, 0x7ffffffe, "abc"));
  EXPECT_EQ(scanner.streams_opened(), 0);
  for (uint32_t stream = 1; stream < 100; stream += 2) {
    Take(scanner, Http2Frame(1, kEndHeaders, stream, "abc"));
  }
  EXPECT_EQ(scanner.streams_opened(), 50);
  EXPECT_EQ(scanner.streams_waiting(), 50);
  EXPECT_EQ(scanner.bytes_waiting(), 50 * 3);
}

TEST(FrameScannerTest, TrailersDoNotOpenAStream) {
  FrameScanner scanner;
  Take(scanner, kHttp2Preface + Http2Frame(1, kEndHeaders, 1, "abc") + Http2Frame(0, 0, 1, "body") +
                    Http2Frame(1, kEndHeaders | kEndStream, 1, "trailers"));
  EXPECT_EQ(scanner.streams_opened(), 1);
  EXPECT_EQ(scanner.streams_waiting(), 0);
}

TEST(FrameScannerTest, HeaderBytesIncludeAllContinuationFrames) {
  FrameScanner scanner;
  Take(scanner, kHttp2Preface + Http2Frame(1, 0, 1, std::string(1000, 'h')));
  for (int i = 0; i < 100; ++i) Take(scanner, Http2Frame(9, 0, 1, std::string(1000, 'h')));
  EXPECT_EQ(scanner.header_bytes(), 101'000);
  // The length in a frame's header counts before the rest of the frame has come.
  Take(scanner, Http2Frame(9, 0, 1, std::string(1000, 'h')).substr(0, 9));
  EXPECT_EQ(scanner.header_bytes(), 102'000);
}

}  // namespace
}  // namespace systole
