// Names what limits a feed's speed. Clients find out the limit and report it to servers.
// client/verdict/README.md says what each answer means.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_BATCH_FEED_LIMIT_H_
#define SYSTOLE_CORE_BATCH_FEED_LIMIT_H_

#include <array>
#include <cstddef>

#include "absl/strings/string_view.h"

namespace systole {

enum class FeedLimit {
  kUnknown,  // Too early to say, or the servers' release is too old to send stage times.
  kStorage,
  kDecode,
  kWire,
  kClient,
  kTrainer,  // Steps wait for the trainer.
  kNothing,  // The trainer hardly waits, but no steps wait for it either: equal speeds.
};
inline constexpr size_t kNumFeedLimits = 7;

// The limits' names, in the order of the limits.
inline constexpr std::array<absl::string_view, kNumFeedLimits> kFeedLimitNames = {
    "unknown", "storage", "decode", "wire", "client", "trainer", "nothing"};

inline absl::string_view LimitName(FeedLimit limit) {
  return kFeedLimitNames[static_cast<size_t>(limit)];
}

}  // namespace systole

#endif  // SYSTOLE_CORE_BATCH_FEED_LIMIT_H_
