#include "client/feed/feed_client.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/feed/feed_lanes.h"
#include "client/feed/step_finisher.h"
#include "core/status/check.h"
#include "core/status/status_macros.h"
#include "proto/framing/layout_description.h"
#include "proto/order/order_spec.h"

namespace systole {
namespace {

// Far beyond any feed, and sums of it with any number of steps per stream do not overflow.
constexpr int64_t kMaxStep = int64_t{1} << 60;
// Where a feed without end would end.
constexpr int64_t kNoEnd = 2 * kMaxStep;
// Servers, and with them lanes, sockets and streams.
constexpr size_t kMaxServers = 256;
// Places in the window: tiny steps do not need more to hide a hiccup.
constexpr int64_t kMaxWindowSteps = 4096;

absl::Status CheckOptions(const v1::FeedSpec& spec, const FeedClientOptions& options) {
  if (options.servers.empty() || options.servers.size() > kMaxServers) {
    return absl::InvalidArgumentError(absl::StrCat("servers has ", options.servers.size(),
                                                   " addresses, want 1 to ", kMaxServers));
  }
  for (const std::string& address : options.servers) {
    SYSTOLE_RETURN_IF_ERROR(CheckServerAddress(address));
  }
  if (!v1::Wire_IsValid(spec.wire())) {
    return absl::InvalidArgumentError(absl::StrCat("wire is ", static_cast<int>(spec.wire()),
                                                   ": want FINISHED, COMPACT or AUTO"));
  }
  if (options.first_step < 0 || options.first_step > kMaxStep) {
    return absl::InvalidArgumentError(
        absl::StrCat("first_step is ", options.first_step, ", want 0 to ", kMaxStep));
  }
  if (options.steps < 0 || options.epochs < 0 || (options.steps > 0 && options.epochs > 0)) {
    return absl::InvalidArgumentError(absl::StrCat("steps is ", options.steps, ", epochs ",
                                                   options.epochs,
                                                   ", want 0 (all) or more, and one of them 0"));
  }
  const bool all_cores = options.core_begin == 0 && options.core_end == 0;
  if (!all_cores && (options.core_begin < 0 || options.core_begin >= options.core_end ||
                     options.core_end > spec.num_cores())) {
    return absl::InvalidArgumentError(absl::StrCat(
        "cores ", options.core_begin, ":", options.core_end,
        ", want a half-open range inside 0:", spec.num_cores(), ", the cores of the spec"));
  }
  if (options.prefetch_bytes < 0 || options.max_step_bytes <= 0) {
    return absl::InvalidArgumentError(absl::StrCat("prefetch_bytes is ", options.prefetch_bytes,
                                                   " and max_step_bytes ", options.max_step_bytes,
                                                   ", want at least 0 and 1"));
  }
  if (static_cast<bool>(options.memory.allocate) != static_cast<bool>(options.memory.free)) {
    return absl::InvalidArgumentError("memory: set both allocate and free, or neither");
  }
  const std::pair<const char*, absl::Duration> durations[] = {
      {"connect_timeout", options.connect_timeout},
      {"retry_for", options.retry_for},
      {"silence_timeout", options.silence_timeout},
      {"backoff", options.backoff},
      {"max_backoff", options.max_backoff}};
  for (const auto& [name, duration] : durations) {
    if (duration <= absl::ZeroDuration() || duration > absl::Hours(24 * 365)) {
      return absl::InvalidArgumentError(absl::StrCat(name, " is ", absl::FormatDuration(duration),
                                                     ", want more than 0 and at most a year"));
    }
  }
  return absl::OkStatus();
}

// What a step of this client is. The answer was checked (client/feed/server_answer.h), but for what
// it would allocate.
absl::StatusOr<StepShape> ShapeOf(const v1::ResolveFeedResponse& answer, const v1::FeedSpec& spec,
                                  const FeedClientOptions& options) {
  SYSTOLE_ASSIGN_OR_RETURN(SliceLayout layout, LayoutOf(answer));
  StepShape shape = {.layout = std::move(layout),
                     .core_begin = options.core_begin,
                     .core_end = options.core_end == 0 ? spec.num_cores() : options.core_end};
  if (shape.layout.slice_bytes() > options.max_step_bytes / shape.num_cores()) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the server describes ", shape.layout.slice_bytes(), " bytes per core, ", shape.num_cores(),
        " cores; want at most ", options.max_step_bytes,
        " bytes per step. Make global_batch smaller, or raise max_step_bytes (--max-step-bytes)"));
  }
  return shape;
}

// Where the feed ends for this client; kNoEnd if it does not.
absl::StatusOr<int64_t> EndStep(const v1::ResolveFeedResponse& answer,
                                const FeedClientOptions& options) {
  const int64_t total = answer.total_steps() == 0 ? kNoEnd : std::min(answer.total_steps(), kNoEnd);
  if (options.first_step > total) {
    return absl::InvalidArgumentError(absl::StrCat("the first step wanted is ", options.first_step,
                                                   ", but the feed has ", total, " steps"));
  }
  const int64_t left = total - options.first_step;
  if (options.steps > 0) return options.first_step + std::min(options.steps, left);
  if (options.epochs == 0 || answer.steps_per_epoch() == 0 ||
      options.epochs > left / answer.steps_per_epoch()) {
    return total;
  }
  return options.first_step + options.epochs * answer.steps_per_epoch();
}

absl::Status CheckToken(const ResumeToken& token, const v1::FeedIdentity& identity,
                        bool allow_mixed_content) {
  const char* differs = nullptr;
  if (token.dataset_fingerprint != identity.dataset_fingerprint()) {
    differs = "the dataset's fingerprint differs: its records are not what they were";
  } else if (token.order_fingerprint != identity.order_fingerprint()) {
    differs =
        "the order's fingerprint differs: dataset, seed, shuffle, global_batch or tail of the "
        "spec are not what they were";
  } else if (!allow_mixed_content && token.content_version != identity.content_version()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the token cannot be resumed: it was taken at content version '",
                     token.content_version, "', the server has '", identity.content_version(),
                     "'. Use the release of then, or give --allow-mixed-content: steps may then "
                     "differ in a few bits"));
  }
  if (differs == nullptr) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("the token cannot be resumed: ", differs));
}

}  // namespace

class FeedClient::Impl {
 public:
  Impl(const v1::FeedSpec& spec, const FeedClientOptions& options) : lanes(spec, options) {}

  FeedLanes lanes;
  // Constant after Create().
  v1::ResolveFeedResponse answer;
  std::shared_ptr<const StepShape> shape;
  int64_t end_step = 0;
  int64_t window_steps = 0;
  bool can_be_compact = false;
};

absl::StatusOr<std::unique_ptr<FeedClient>> FeedClient::Make(const v1::FeedSpec& spec,
                                                             const ResumeToken* token,
                                                             FeedClientOptions options) {
  if (token != nullptr) options.first_step = token->next_step;
  SYSTOLE_RETURN_IF_ERROR(CheckOptions(spec, options));
  auto impl = std::make_unique<Impl>(spec, options);
  SYSTOLE_ASSIGN_OR_RETURN(impl->answer, impl->lanes.WaitForAnswer());
  if (token != nullptr) {
    SYSTOLE_RETURN_IF_ERROR(
        CheckToken(*token, impl->answer.identity(), options.allow_mixed_content));
  }
  SYSTOLE_ASSIGN_OR_RETURN(StepShape shape, ShapeOf(impl->answer, spec, options));
  SYSTOLE_ASSIGN_OR_RETURN(impl->end_step, EndStep(impl->answer, options));
  const int64_t lanes = static_cast<int64_t>(options.servers.size());
  impl->window_steps = std::clamp(options.prefetch_bytes / shape.bytes(),
                                  std::max<int64_t>(2, lanes + 1), kMaxWindowSteps);
  impl->shape = std::make_shared<const StepShape>(std::move(shape));
  std::shared_ptr<const StepFinisher> finisher;
  if (spec.wire() != v1::FINISHED) finisher = StepFinisher::Create(spec, impl->shape);
  impl->can_be_compact = finisher != nullptr;
  // An answer that fits no order is not for us to judge: without it, no place is taken for padding.
  absl::StatusOr<Order> order = Order::Create(OrderSpecOf(spec, impl->answer.num_records()));
  impl->lanes.Start(impl->shape, std::move(finisher),
                    order.ok() ? std::make_optional(*std::move(order)) : std::nullopt,
                    impl->end_step, impl->window_steps);
  return std::unique_ptr<FeedClient>(new FeedClient(std::move(impl)));
}

absl::StatusOr<std::unique_ptr<FeedClient>> FeedClient::Create(const v1::FeedSpec& spec,
                                                               FeedClientOptions options) {
  return Make(spec, nullptr, std::move(options));
}

absl::StatusOr<std::unique_ptr<FeedClient>> FeedClient::Resume(const v1::FeedSpec& spec,
                                                               const ResumeToken& token,
                                                               FeedClientOptions options) {
  return Make(spec, &token, std::move(options));
}

FeedClient::FeedClient(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
FeedClient::~FeedClient() = default;

absl::StatusOr<std::optional<Step>> FeedClient::Next() { return impl_->lanes.Next(); }

void FeedClient::Cancel() {
  impl_->lanes.Cancel(absl::CancelledError("the feed was cancelled by its client"));
}

ResumeToken FeedClient::TokenAt(int64_t next_step) const {
  SYSTOLE_CHECK(next_step >= 0);
  const v1::FeedIdentity& identity = impl_->answer.identity();
  return {.dataset_fingerprint = identity.dataset_fingerprint(),
          .order_fingerprint = identity.order_fingerprint(),
          .content_version = identity.content_version(),
          .next_step = next_step};
}

int64_t FeedClient::next_step() const { return impl_->lanes.next_step(); }
int64_t FeedClient::end_step() const { return impl_->end_step; }
bool FeedClient::has_end() const { return impl_->end_step < kNoEnd; }
const SliceLayout& FeedClient::layout() const { return impl_->shape->layout; }
int FeedClient::core_begin() const { return impl_->shape->core_begin; }
int FeedClient::core_end() const { return impl_->shape->core_end; }
const v1::ResolveFeedResponse& FeedClient::info() const { return impl_->answer; }
bool FeedClient::can_be_compact() const { return impl_->can_be_compact; }
int64_t FeedClient::window_steps() const { return impl_->window_steps; }
FeedClientStats FeedClient::stats() const { return impl_->lanes.stats(); }

}  // namespace systole
