// Reads any bytes as a request of HTTP: once as a whole, and once in two pieces. Both readings
// accept the same requests, but one may refuse garbage earlier than the other. An accepted request
// is within bounds. Every refusal has a status from 400 to 499 and an answer.
#include <cstddef>
#include <cstdint>
#include <string>

#include "core/status/check.h"
#include "server/admin/http_messages.h"
#include "tests/fuzz/fuzzer.h"

namespace {

using namespace systole;

bool IsAccepted(const HttpRequestReader& reader, bool is_done) {
  if (!is_done) return false;
  if (!reader.refusal().has_value()) return true;
  SYSTOLE_CHECK(reader.refusal()->status >= 400 && reader.refusal()->status < 500);
  SYSTOLE_CHECK(!BytesOf(*reader.refusal(), reader.is_head()).empty());
  return false;
}

}  // namespace

SYSTOLE_FUZZER(http_request, const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const absl::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const bool only_loopback_names = (data[0] & 1) != 0;
  HttpRequestReader whole(only_loopback_names);
  const bool is_done = whole.Take(bytes);
  SYSTOLE_CHECK(is_done || bytes.size() < kMaxRequestHeadBytes);
  HttpRequestReader pieces(only_loopback_names);
  const size_t cut = data[0] % (bytes.size() + 1);
  const bool pieces_done = pieces.Take(bytes.substr(0, cut)) || pieces.Take(bytes.substr(cut));
  const bool is_accepted = IsAccepted(whole, is_done);
  SYSTOLE_CHECK(is_accepted == IsAccepted(pieces, pieces_done));
  if (!is_accepted) return 0;
  const std::string& path = whole.request().path;
  SYSTOLE_CHECK(path == pieces.request().path && path[0] == '/');
  SYSTOLE_CHECK(path.find('?') == std::string::npos && path.size() < kMaxRequestHeadBytes);
  for (const std::string& value : whole.request().authorization) {
    SYSTOLE_CHECK(value.find_first_of("\r\n") == std::string::npos);
  }
  return 0;
}
