// A whole message with a checksum. The checksum travels in the call's metadata, so damage to the
// message cannot hide the checksum. The metadata's key is kMessageChecksumKey. The value is the
// CRC-32C of the message's bytes, as 8 lower-case hex digits.
//
// Thread-safe: no state.
#ifndef SYSTOLE_PROTO_FRAMING_GUARDED_MESSAGE_H_
#define SYSTOLE_PROTO_FRAMING_GUARDED_MESSAGE_H_

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/message_lite.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/string_ref.h"

namespace systole {

inline constexpr char kMessageChecksumKey[] = "systole-crc32c";

// The largest request that a server takes. Requests carry specs, which are small: a larger request
// is an attack or a mistake. The bound also limits the server's memory: a parsed request takes many
// times as much memory as its bytes, and the server keeps the parsed specs of 64 plans and of all
// streams.
inline constexpr int kMaxRequestBytes = 64 << 10;
// The largest spec in a request. The request's other fields take less than 1 KiB.
inline constexpr int kMaxSpecBytes = kMaxRequestBytes - (1 << 10);

// A call's metadata, as gRPC gives it.
using CallMetadata = std::multimap<grpc::string_ref, grpc::string_ref>;

struct GuardedMessage {
  grpc::ByteBuffer bytes;
  std::string checksum;  // The value of kMessageChecksumKey in the metadata.
};

GuardedMessage EncodeGuarded(const google::protobuf::MessageLite& message);

// The value of kMessageChecksumKey for a message of these bytes.
std::string MessageChecksum(absl::string_view bytes);

// Parses `bytes` into `message`. If `metadata` has no checksum, the bytes are not checked.
//   DataLoss         the bytes do not match the checksum that came with them, or no message came.
//   InvalidArgument  the bytes are not a message of this type.
absl::Status DecodeGuarded(const grpc::ByteBuffer& bytes, const CallMetadata& metadata,
                           google::protobuf::MessageLite& message);

}  // namespace systole

#endif  // SYSTOLE_PROTO_FRAMING_GUARDED_MESSAGE_H_
