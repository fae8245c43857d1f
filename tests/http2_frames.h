// Makes HTTP/2 frames by hand (RFC 9113, RFC 7541), for peers that send what gRPC never sends.
//
// Thread-safe: no state.
#ifndef SYSTOLE_TESTS_HTTP2_FRAMES_H_
#define SYSTOLE_TESTS_HTTP2_FRAMES_H_

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/status/check.h"

namespace systole {

// A client's first bytes.
inline const std::string kHttp2Preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

inline std::string Http2Frame(int type, int flags, uint32_t stream, absl::string_view payload) {
  std::string head;
  const auto size = static_cast<uint32_t>(payload.size());
  for (const int shift : {16, 8, 0}) head.push_back(static_cast<char>(size >> shift));
  head.push_back(static_cast<char>(type));
  head.push_back(static_cast<char>(flags));
  for (const int shift : {24, 16, 8, 0}) head.push_back(static_cast<char>(stream >> shift));
  return absl::StrCat(head, payload);
}

// A header in plain text, without Huffman coding. If `kept`, the receiver adds the header to its
// table.
inline std::string Http2Header(absl::string_view name, absl::string_view value, bool kept = false) {
  SYSTOLE_CHECK(name.size() < 127 && value.size() < 127);
  return absl::StrCat(std::string(1, kept ? '\x40' : '\0'),
                      std::string(1, static_cast<char>(name.size())), name,
                      std::string(1, static_cast<char>(value.size())), value);
}

}  // namespace systole

#endif  // SYSTOLE_TESTS_HTTP2_FRAMES_H_
