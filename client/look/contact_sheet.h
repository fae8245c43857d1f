// Shows steps of a feed as one HTML page, so that people see what the trainer really gets. The page
// has a picture for each image, with `normalize` undone. It shows labels and other values as text,
// and has a table of all outputs with their ranges. It marks padding and masked places.
//
// The page needs no network, no other file and no script. It holds no date, so the same steps give
// the same page.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CLIENT_LOOK_CONTACT_SHEET_H_
#define SYSTOLE_CLIENT_LOOK_CONTACT_SHEET_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "client/step/step.h"
#include "core/order/order.h"
#include "systole/v1/feed.pb.h"

namespace systole {

// The most examples that a page shows. A larger page would be too much for browsers.
inline constexpr int64_t kMaxSheetExamples = 1024;

struct ContactSheetOptions {
  // The page's heading. If empty, the dataset's name is the heading.
  std::string title;
  // Where the steps came from, such as "127.0.0.1:8470". If empty, the page leaves this out.
  std::string source;
  // The version of the program or server that made the steps. If empty, the page leaves this out.
  std::string version;
  // How the feed's transforms run (Feed::Explain()). If empty, the page leaves this out.
  std::string explanation;
  // The feed's order. Without it, the page has no record ids, and may mark a place as "padding or
  // masked", because only the order tells the two apart.
  std::optional<Order> order;
  // How many places are shown, from the first place of the first step on: 1 to kMaxSheetExamples.
  // An example of 224 x 224 pixels adds about 30 kB to the page. The table of ranges counts all
  // examples, also those that are not shown.
  int64_t max_examples = 64;
};

// Returns the page for `steps`, which may have any StepPlacement.
//   InvalidArgument  there are no steps, they are not of `spec`, or an option is out of range.
absl::StatusOr<std::string> ContactSheet(const v1::FeedSpec& spec, absl::Span<const Step> steps,
                                         const ContactSheetOptions& options);

}  // namespace systole

#endif  // SYSTOLE_CLIENT_LOOK_CONTACT_SHEET_H_
