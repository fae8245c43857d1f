#include "server/open_files.h"

#include "absl/strings/str_cat.h"
#include "proto/slots/slot_messages.h"
#include "server/slot_server.h"

namespace systole {
namespace {

// Standard streams, listeners, gRPC's pollers and wake-ups (some 20 were seen), and indexes or
// configuration files read on the way.
constexpr int64_t kOwn = 64;

}  // namespace

absl::Status CheckOpenFiles(const OpenFilesNeed& need, uint64_t limit) {
  const int64_t connections =
      need.shares ? 2 * need.streams + static_cast<int64_t>(kMaxGuests) : need.streams;
  const int64_t slots = need.shares ? MaxSlotsFor(limit) : 0;
  const int64_t sum = need.shards + connections + kOwn + slots;
  if (limit >= static_cast<uint64_t>(sum)) return absl::OkStatus();
  // A higher limit makes for more slots.
  const int64_t enough = sum - slots + (need.shares ? kMaxSlots : 0);
  return absl::ResourceExhaustedError(absl::StrCat(
      "this process may open ", limit, " files and could need ", sum, ": ", need.shards,
      " shards, ", connections, " connections, ", slots, " slots of shared memory and ", kOwn,
      " of its own. A server that runs out of them hears no new client any more; raise the hard "
      "limit, `ulimit -Hn`, to ",
      enough));
}

}  // namespace systole
