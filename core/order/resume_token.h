// A trainer's checkpoint of its input: one line of printable text. Any server of the dataset can
// resume a feed from it. The form of the text is
//   systole2:<dataset fingerprint, 16 hex>:<order fingerprint, 16 hex>:<epoch, decimal>:
//            <examples of the epoch, decimal>:<content version, %-escaped>:
//            <crc32c of all before, 8 hex>
// without blanks or line breaks. For each change of a mixture's weights before the checkpoint,
// `+<hash of the change, 4 hex>` stands after the order fingerprint.
//
// Thread-compatible.
#ifndef SYSTOLE_CORE_ORDER_RESUME_TOKEN_H_
#define SYSTOLE_CORE_ORDER_RESUME_TOKEN_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/order/feed_position.h"

namespace systole {

inline constexpr size_t kMaxContentVersionBytes = 200;

struct ResumeToken {
  uint64_t dataset_fingerprint = 0;
  // The fingerprint of the order before `position` (Order::FingerprintBefore). A change of a
  // mixture's weights at `position` or later does not count.
  uint64_t order_fingerprint = 0;
  // The hash of each change of a mixture's weights before `position` (WeightChange::hash), at most
  // kMaxWeightChanges hashes. They do not decide whether a feed may resume. If order_fingerprint
  // differs from the feed's, they let the error name the change that differs.
  std::vector<uint16_t> weight_changes = {};
  // The servers' content version: any text of at most kMaxContentVersionBytes. Servers of another
  // content version may make other bytes.
  std::string content_version;
  // What the trainer has consumed: the epoch, and how many examples of the epoch. Both numbers are
  // >= 0.
  FeedPosition position;

  bool operator==(const ResumeToken&) const = default;

  // The token's text: letters, digits and ":.%+-_" only, so it may stand in a command line, a file
  // name or a JSON string. CHECKs the bounds of content_version, position and weight_changes.
  std::string Encode() const;

  // InvalidArgument if `text` is not a text that Encode() can write. The message says what is
  // wrong: not a token, an older or newer format, cut short, or a wrong character (checksum).
  static absl::StatusOr<ResumeToken> Decode(absl::string_view text);
};

}  // namespace systole

#endif  // SYSTOLE_CORE_ORDER_RESUME_TOKEN_H_
