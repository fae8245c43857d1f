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
  // The page's heading. If empty, it is the dataset's name.
  std::string title;
  // Where the steps came from, such as "127.0.0.1:8470". If empty, the page does not say it.
  std::string source;
  // The version of the program or server that made the steps. If empty, the page does not say it.
  std::string version;
  // How the feed's transforms run (Feed::Explain()). If empty, the page does not say it.
  std::string explanation;
  // The feed's order. If it is nullopt, the page has no record ids. Then the page may also mark a
  // place as "padding or masked", because it cannot know which.
  std::optional<Order> order;
  // How many places are shown, 1 to kMaxSheetExamples. The first one is the first place of the
  // first step. An example of 224 x 224 pixels adds about 30 kB to the page. The table of ranges
  // counts all examples, also those that are not shown.
  int64_t max_examples = 64;
};

// Returns the page for `steps`. Their StepPlacement may be any.
//   InvalidArgument  there are no steps, they are not of `spec`, or an option is out of range.
absl::StatusOr<std::string> ContactSheet(const v1::FeedSpec& spec, absl::Span<const Step> steps,
                                         const ContactSheetOptions& options);

}  // namespace systole

#endif  // SYSTOLE_CLIENT_LOOK_CONTACT_SHEET_H_
