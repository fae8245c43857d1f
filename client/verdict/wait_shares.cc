#include "client/verdict/wait_shares.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

namespace systole {
namespace {

// After this time, recent waits count half as much.
constexpr double kHalfLifeSeconds = 5;

// A trainer hardly waits if it waits for less than this part of its time, or less than this many
// seconds for a step. Handing a step to a thread that sleeps takes some of these 50 us.
constexpr double kHardlyPart = 0.01;
constexpr double kHardlySeconds = 50e-6;

// Bounds the vector of outputs, because a server says which output a span is for. A spec has fewer
// outputs.
constexpr int kMaxOutputs = 1024;

FeedLimit LimitOf(WaitCause cause) {
  switch (cause) {
    case WaitCause::kStorage:
      return FeedLimit::kStorage;
    case WaitCause::kDecode:
      return FeedLimit::kDecode;
    case WaitCause::kWire:
      return FeedLimit::kWire;
    case WaitCause::kClient:
      return FeedLimit::kClient;
    case WaitCause::kUnknown:
      return FeedLimit::kUnknown;
  }
  return FeedLimit::kUnknown;
}

}  // namespace

void WaitShares::Sums::Fade(double part) {
  steps *= part;
  times.seconds *= part;
  for (double& seconds : times.waited) seconds *= part;
  ready_seconds *= part;
  for (Output& output : outputs) output.seconds *= part;
}

void WaitShares::Sums::Add(const Sums& more) {
  steps += more.steps;
  times.seconds += more.times.seconds;
  for (size_t i = 0; i < kNumWaitCauses; ++i) times.waited[i] += more.times.waited[i];
  ready_seconds += more.ready_seconds;
  if (outputs.size() < more.outputs.size()) outputs.resize(more.outputs.size());
  for (size_t i = 0; i < more.outputs.size(); ++i) {
    outputs[i].seconds += more.outputs[i].seconds;
    if (more.outputs[i].operation >= 0) outputs[i].operation = more.outputs[i].operation;
  }
}

void WaitShares::Take(const StepWait& wait, const StepSpans::Spans& spans) {
  const std::optional<absl::Duration> last = std::exchange(last_, wait.at);
  if (!last.has_value()) return;
  const absl::Duration passed = std::max(absl::ZeroDuration(), wait.at - *last);
  const absl::Duration waited = std::clamp(wait.waited, absl::ZeroDuration(), passed);
  Sums step;
  step.steps = 1;
  step.times.seconds = absl::ToDoubleSeconds(passed);
  const absl::Duration lay_ready = wait.at - waited - wait.ready_at;
  // Without the upper bound, one long pause of the trainer would count for many steps.
  step.ready_seconds =
      absl::ToDoubleSeconds(std::clamp(lay_ready, absl::ZeroDuration(), passed - waited));
  if (waited > absl::ZeroDuration()) {
    const absl::Duration begin = wait.at - waited;
    absl::Duration left = waited;
    const auto count = [&](WaitCause cause, absl::Duration from, absl::Duration to) {
      const absl::Duration overlap = std::min(to, wait.at) - std::max(from, begin);
      if (overlap <= absl::ZeroDuration()) return 0.0;
      left -= overlap;
      const double seconds = absl::ToDoubleSeconds(overlap);
      step.times.waited[static_cast<size_t>(cause)] += seconds;
      return seconds;
    };
    for (const StageSpan& span : spans) {
      const double seconds = count(span.cause, span.begin, span.end);
      if (seconds == 0 || span.cause != WaitCause::kDecode) continue;
      if (span.output < 0 || span.output >= kMaxOutputs) continue;
      const auto output = static_cast<size_t>(span.output);
      if (step.outputs.size() <= output) step.outputs.resize(output + 1);
      step.outputs[output].seconds += seconds;
      if (span.operation >= 0) step.outputs[output].operation = span.operation;
    }
    // The last span ends when the step is complete. After that only this process causes the wait.
    if (!spans.empty()) count(WaitCause::kClient, spans.back().end, wait.at);
    step.times.waited[static_cast<size_t>(rest_)] += std::max(0.0, absl::ToDoubleSeconds(left));
  }
  total_.Add(step);
  recent_.Fade(std::exp2(-step.times.seconds / kHalfLifeSeconds));
  recent_.Add(step);
}

std::optional<LatelyWaited> WaitShares::Lately(const StepWait& so_far) const {
  if (!last_.has_value()) return std::nullopt;
  WaitShares now = *this;
  now.Take(so_far,
           {{.cause = WaitCause::kUnknown, .begin = so_far.at - so_far.waited, .end = so_far.at}});
  LatelyWaited lately = {.verdict = VerdictOf(now.recent_)};
  if (now.recent_.times.seconds > 0) {
    // Take() has counted the step that the trainer still waits for, so this step is subtracted.
    lately.steps_per_second = (now.recent_.steps - 1) / now.recent_.times.seconds;
  }
  return lately;
}

FeedVerdict WaitShares::VerdictOf(const Sums& sums) {
  FeedVerdict verdict;
  if (sums.steps == 0 || sums.times.seconds <= 0) return verdict;
  const double waited = sums.times.all_waited();
  verdict.waits = waited / sums.times.seconds;
  if (verdict.waits < kHardlyPart || waited < kHardlySeconds * sums.steps) {
    // Steps that lie ready for half of the time are enough to say that the feed could give more.
    const double worked = sums.times.seconds - waited;
    verdict.limit = sums.ready_seconds >= worked / 2 ? FeedLimit::kTrainer : FeedLimit::kNothing;
    return verdict;
  }
  const auto& causes = sums.times.waited;
  const auto most = std::max_element(causes.begin(), causes.end());
  verdict.limit = LimitOf(static_cast<WaitCause>(most - causes.begin()));
  verdict.share = *most / waited;
  if (verdict.limit == FeedLimit::kDecode && !sums.outputs.empty()) {
    const auto most_waited = std::max_element(
        sums.outputs.begin(), sums.outputs.end(),
        [](const Sums::Output& a, const Sums::Output& b) { return a.seconds < b.seconds; });
    if (most_waited->seconds > 0) {
      verdict.output = static_cast<int>(most_waited - sums.outputs.begin());
      verdict.operation = most_waited->operation;
    }
  }
  return verdict;
}

}  // namespace systole
