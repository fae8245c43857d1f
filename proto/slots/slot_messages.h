// Writes and checks the messages of the slot socket (systole/v1/slots.proto).
//
// Thread-safe: pure functions.
#ifndef SYSTOLE_PROTO_SLOTS_SLOT_MESSAGES_H_
#define SYSTOLE_PROTO_SLOTS_SLOT_MESSAGES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace systole {

inline constexpr int kSlotVersion = 1;
inline constexpr size_t kSlotSessionBytes = 16;
// The longest packet, in bytes.
inline constexpr int64_t kMaxSlotMessageBytes = 4096;
// The most slots that one SlotOffer retires. With so many, the message still fits into a packet.
inline constexpr size_t kMaxRetiredInOffer = 256;
// The largest number of slots that a client maps at a time. The kernel allows a process some 65,000
// mappings. Without this bound, a server could use up the client's mappings by offering more and
// more slots.
inline constexpr int kMaxMappedSlots = 4096;
// The largest number of slots that a server has at a time. kMaxSlots is below kMaxMappedSlots,
// because a client may map all slots of the server and also slots that the server has retired. The
// client unmaps a retired slot when the SlotOffer that retires it arrives.
inline constexpr int kMaxSlots = 3072;

// A new session's id, from the kernel's random source. The id is a secret, because a process that
// knows the id can request a stream whose slices go to the connection of this session. (Random
// numbers that decide a feed's bytes come from core/random.)
//   Unavailable  the kernel gives no random bytes.
absl::StatusOr<std::string> NewSlotSession();

std::string EncodeSlotHello(absl::string_view session);
// Parses a SlotHello and returns its session. InvalidArgument names the field that is wrong.
absl::StatusOr<std::string> ParseSlotHello(absl::string_view message);

std::string EncodeSlotReturn(uint64_t slot);
absl::StatusOr<uint64_t> ParseSlotReturn(absl::string_view message);

struct SlotOffer {
  // 0: no slot is offered. In this case `bytes` is 0, and at least one slot is retired.
  uint64_t slot = 0;
  int64_t bytes = 0;
  std::vector<uint64_t> retired;

  friend bool operator==(const SlotOffer&, const SlotOffer&) = default;
};
// REQUIRES: at most kMaxRetiredInOffer slots are retired.
std::string EncodeSlotOffer(const SlotOffer& offer);
absl::StatusOr<SlotOffer> ParseSlotOffer(absl::string_view message);

}  // namespace systole

#endif  // SYSTOLE_PROTO_SLOTS_SLOT_MESSAGES_H_
