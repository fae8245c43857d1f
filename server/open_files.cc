#include "server/open_files.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "proto/slots/slot_messages.h"
#include "server/slots/slot_server.h"

namespace systole {
namespace {

// Descriptors for standard streams, listeners, gRPC's pollers and wake-ups (about 20 in all), and
// for index and configuration files while they are read.
constexpr int64_t kOwn = 64;

constexpr int64_t kMinConnections = 8;
constexpr int64_t kMaxConnections = 4096;

// Descriptors that one connection takes.
int64_t DescriptorsEach(const OpenFilesNeed& need) { return need.shares ? 3 : 2; }

// Descriptors for all but the connections and the slots.
int64_t Fixed(const OpenFilesNeed& need) {
  return need.shards + kOwn + (need.shares ? static_cast<int64_t>(kMaxGuests) : 0);
}

}  // namespace

int64_t MaxConnectionsFor(const OpenFilesNeed& need, uint64_t limit) {
  const int64_t enough = Fixed(need) + kMaxSlots + DescriptorsEach(need) * kMaxConnections;
  const int64_t slots = need.shares ? MaxSlotsFor(limit) : 0;
  const int64_t left =
      static_cast<int64_t>(std::min(limit, static_cast<uint64_t>(enough))) - Fixed(need) - slots;
  return std::clamp(left / DescriptorsEach(need), kMinConnections, kMaxConnections);
}

absl::Status CheckOpenFiles(const OpenFilesNeed& need, uint64_t limit) {
  const int64_t connections = DescriptorsEach(need) * need.connections;
  const int64_t slots = need.shares ? MaxSlotsFor(limit) : 0;
  const int64_t sum = Fixed(need) + connections + slots;
  if (limit >= static_cast<uint64_t>(sum)) return absl::OkStatus();
  // A higher limit also brings more slots, kMaxSlots at most.
  const int64_t enough = sum - slots + (need.shares ? kMaxSlots : 0);
  return absl::ResourceExhaustedError(absl::StrCat(
      "this process may open ", limit, " files and could need ", sum, ": ", need.shards,
      " shards, ", connections, " for ", need.connections, " connections, ", slots,
      " slots of shared memory and ", Fixed(need) - need.shards,
      " of its own. A server that cannot open another file turns new clients away; raise the hard "
      "limit, `ulimit -Hn`, to ",
      enough));
}

}  // namespace systole
