// Messages in the form in which gRPC hands them over: in slices of any size.
//
// Thread-safe: no state.
#ifndef SYSTOLE_TESTS_PROTO_FRAMING_SLICED_MESSAGE_H_
#define SYSTOLE_TESTS_PROTO_FRAMING_SLICED_MESSAGE_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/status/check.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/slice.h"

namespace systole {

// `bytes` in slices of `piece` bytes, with an empty slice before and after each.
inline grpc::ByteBuffer SlicedMessage(absl::string_view bytes, size_t piece) {
  std::vector<grpc::Slice> slices = {grpc::Slice("")};
  for (size_t at = 0; at < bytes.size(); at += piece) {
    slices.emplace_back(std::string(bytes.substr(at, piece)));
    slices.emplace_back("");
  }
  return grpc::ByteBuffer(slices.data(), slices.size());
}

inline std::string BytesOf(const grpc::ByteBuffer& message) {
  std::vector<grpc::Slice> slices;
  SYSTOLE_CHECK(message.Dump(&slices).ok());
  std::string bytes;
  for (const grpc::Slice& slice : slices) bytes.append(slice.begin(), slice.end());
  return bytes;
}

}  // namespace systole

#endif  // SYSTOLE_TESTS_PROTO_FRAMING_SLICED_MESSAGE_H_
