#include "client/step/feed_range.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "client/step/past_weights.h"
#include "core/order/feed_position.h"
#include "core/order/mixture.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

// FailedPrecondition if `token` is not from the feed in `order`. `own` is the token that this feed
// gives at the position of `token`.
absl::Status CheckToken(const ResumeToken& token, const ResumeToken& own, const Order& order,
                        bool allow_mixed_content) {
  std::string differs;
  if (token.dataset_fingerprint != own.dataset_fingerprint) {
    differs = "the dataset's fingerprint differs: its records have changed";
  } else if (token.order_fingerprint != own.order_fingerprint) {
    differs = DifferentPast(token, order);
    if (differs.empty()) {
      differs =
          "the order's fingerprint differs: dataset, seed, shuffle, select, mixture or tail of the "
          "spec have changed";
    }
  } else if (!allow_mixed_content && token.content_version != own.content_version) {
    return absl::FailedPreconditionError(
        absl::StrCat("the token cannot be resumed: it was taken at content version '",
                     token.content_version, "', here it is '", own.content_version,
                     "'. Use the release that made the token, or give --allow-mixed-content: steps "
                     "may then differ in a few bits"));
  }
  if (differs.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("the token cannot be resumed: ", differs));
}

// Says how many examples a feed skips when it is resumed from `token`.
std::string SkippedText(const ResumeToken& token, const Order& order, const ResumedStep& resumed) {
  return absl::StrCat("examples skipped: ", resumed.skipped, ". The token was taken ",
                      PositionText(order, token.position),
                      ", where no step of global_batch: ", order.spec().global_batch,
                      " begins, so the feed goes on at step ", resumed.step,
                      ". With the global_batch of the token's feed, no example is skipped");
}

}  // namespace

absl::Status CheckWantedSteps(const WantedSteps& wanted) {
  if (wanted.first_step < 0 || wanted.first_step > kMaxStep) {
    return absl::InvalidArgumentError(
        absl::StrCat("first_step is ", wanted.first_step, ", want 0 to ", kMaxStep));
  }
  if (wanted.steps < 0 || wanted.epochs < 0 || (wanted.steps > 0 && wanted.epochs > 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("steps is ", wanted.steps, ", epochs ", wanted.epochs,
                     ", want 0 or more, and at most one above 0 (both 0: all steps)"));
  }
  return absl::OkStatus();
}

absl::Status CheckWantedCores(int core_begin, int core_end, int num_cores) {
  if (core_begin == 0 && core_end == 0) return absl::OkStatus();
  if (core_begin < 0 || core_begin >= core_end || core_end > num_cores) {
    return absl::InvalidArgumentError(absl::StrCat("cores ", core_begin, ":", core_end,
                                                   ", want a half-open range inside 0:", num_cores,
                                                   ", the cores of the spec"));
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> EndOfWantedSteps(const WantedSteps& wanted, int64_t total_steps,
                                         int64_t steps_per_epoch) {
  const int64_t total = total_steps == 0 ? kNoEnd : std::min(total_steps, kNoEnd);
  if (wanted.first_step > total) {
    return absl::InvalidArgumentError(absl::StrCat("the first step wanted is ", wanted.first_step,
                                                   ", but the feed has ", total, " steps"));
  }
  const int64_t left = total - wanted.first_step;
  if (wanted.steps > 0) return wanted.first_step + std::min(wanted.steps, left);
  if (wanted.epochs == 0 || wanted.epochs > left / steps_per_epoch) {
    return total;
  }
  return wanted.first_step + wanted.epochs * steps_per_epoch;
}

void CoverThePastAlone(const Order& order, ResumeToken& token) {
  const Mixture* const mixture = order.spec().mixture.get();
  if (mixture == nullptr || mixture->changes().empty()) return;
  const absl::uint128 turns = TurnsBefore(order, token.position);
  token.order_fingerprint = order.FingerprintBefore(token.dataset_fingerprint, turns);
  token.weight_changes = HashesOf(order.WeightChangesBefore(turns));
}

absl::StatusOr<int64_t> StepOfToken(const ResumeToken& token, const ResumeToken& own,
                                    const Order& order, bool allow_mixed_content, EventLog* log,
                                    LogFields subject) {
  SYSTOLE_RETURN_IF_ERROR(CheckToken(token, own, order, allow_mixed_content));
  SYSTOLE_ASSIGN_OR_RETURN(const ResumedStep resumed, StepFrom(order, token.position));
  SYSTOLE_RETURN_IF_ERROR(CheckWantedSteps({.first_step = resumed.step}));
  if (resumed.skipped > 0 && log != nullptr) {
    subject.step = resumed.step;
    log->Add(LogCause::kProgram, LogLevel::kWarn, SkippedText(token, order, resumed), subject);
  }
  return resumed.step;
}

}  // namespace systole
