// The answer to "what limits this feed?", and texts for it. README.md says what each answer means.
//
// Thread-compatible value types; functions without state.
#ifndef SYSTOLE_CLIENT_VERDICT_FEED_VERDICT_H_
#define SYSTOLE_CLIENT_VERDICT_FEED_VERDICT_H_

#include <array>
#include <cstddef>
#include <string>

#include "core/batch/feed_limit.h"
#include "core/batch/slice_layout.h"
#include "systole/v1/feed.pb.h"

namespace systole {

// What happened to a step while the trainer waited for the step.
enum class WaitCause {
  kStorage,  // Its records were read.
  kDecode,   // Its examples were made, or waited for a processor.
  kWire,     // The step, or the request for it, was on its way.
  kClient,   // This process checked, copied or finished the step.
  kUnknown,  // Not known: the server is of an older release, or the wait goes on.
};
inline constexpr size_t kNumWaitCauses = 5;

// The seconds that a trainer waited for steps, by cause.
struct WaitTimes {
  // From the moment when the trainer got its first step to the moment when it got its last step.
  double seconds = 0;
  // The part of this time in which the trainer waited.
  std::array<double, kNumWaitCauses> waited = {};

  double of(WaitCause cause) const { return waited[static_cast<size_t>(cause)]; }
  double all_waited() const;
};

struct FeedVerdict {
  FeedLimit limit = FeedLimit::kUnknown;
  // The part of the time in which the trainer waited for steps, 0 to 1.
  double waits = 0;
  // The part of these waits for which `limit` is the cause, 0 to 1. 0 if the trainer hardly waits.
  double share = 0;
  // If `limit` is kDecode: the number of the tensor of the output that costs most to make. -1: not
  // known.
  int output = -1;
  // The number, among the transforms of this output, of the transform that costs most. The number
  // comes from a server, so it may have any value. -1: not known.
  int operation = -1;
};

// What is known of a trainer's waits.
struct FeedWaits {
  WaitTimes times;
  FeedVerdict verdict;  // Since the first step.
  FeedVerdict recent;   // Of the last steps. Steps of half a minute ago hardly count.
};

// The name of verdict.output in a feed of this layout. Empty: not known.
std::string OutputName(const FeedVerdict& verdict, const SliceLayout& layout);

// The name of verdict.operation, such as "decode_jpeg", in the feed of this spec. Empty: not known.
std::string CostliestOperation(const FeedVerdict& verdict, const SliceLayout& layout,
                               const v1::FeedSpec& spec);

// For the end of a run: "The trainer waited 12 % of the time: 80 % of that for decode (output
// image, operation decode_jpeg)." Empty if nothing is known.
std::string VerdictText(const FeedVerdict& verdict, const SliceLayout& layout,
                        const v1::FeedSpec& spec);

// For a progress bar: "waits 12 % for decode (output image, operation decode_jpeg)". Empty if the
// trainer hardly waits.
std::string VerdictRemark(const FeedVerdict& verdict, const SliceLayout& layout,
                          const v1::FeedSpec& spec);

}  // namespace systole

#endif  // SYSTOLE_CLIENT_VERDICT_FEED_VERDICT_H_
