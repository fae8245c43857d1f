#include "proto/framing/guarded_message.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/checksum/crc32c.h"
#include "core/text/foreign_text.h"
#include "grpcpp/support/slice.h"

namespace systole {

GuardedMessage EncodeGuarded(const google::protobuf::MessageLite& message) {
  const std::string bytes = message.SerializeAsString();
  const grpc::Slice slice(bytes);
  return {.bytes = grpc::ByteBuffer(&slice, 1), .checksum = MessageChecksum(bytes)};
}

std::string MessageChecksum(absl::string_view bytes) {
  return absl::StrFormat("%08x", Crc32c(bytes));
}

absl::Status DecodeGuarded(const grpc::ByteBuffer& bytes, const CallMetadata& metadata,
                           google::protobuf::MessageLite& message) {
  std::vector<grpc::Slice> slices;
  // Damage to a frame can end a call before its message comes.
  if (!bytes.Dump(&slices).ok())
    return absl::DataLossError(
        "no message arrived: a frame was damaged on the way, and this ended the call");
  std::string whole;
  whole.reserve(bytes.Length());
  for (const grpc::Slice& slice : slices) whole.append(slice.begin(), slice.end());
  const std::string seen = MessageChecksum(whole);
  const auto [begin, end] = metadata.equal_range(kMessageChecksumKey);
  for (auto it = begin; it != end; ++it) {
    const absl::string_view sent(it->second.data(), it->second.size());
    if (sent != seen) {
      return absl::DataLossError(absl::StrCat("the message was damaged on the way: its CRC-32C is ",
                                              seen, ", but its sender computed '",
                                              ForeignName(sent), "'"));
    }
  }
  if (!message.ParseFromString(whole)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the bytes are not a ", message.GetTypeName(), " message"));
  }
  return absl::OkStatus();
}

}  // namespace systole
