#include "client/feed/feed_client.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/lanes/feed_lanes.h"
#include "client/lanes/feed_option_table.h"
#include "client/lanes/step_finisher.h"
#include "client/servers/server_answer.h"
#include "client/servers/server_list.h"
#include "client/step/feed_range.h"
#include "core/log/log_line.h"
#include "core/order/feed_position.h"
#include "core/spec/order_spec.h"
#include "core/spec/transform_runs.h"
#include "core/status/check.h"
#include "core/status/status_macros.h"
#include "proto/framing/guarded_message.h"
#include "proto/framing/layout_description.h"

namespace systole {
namespace {

// The most steps in the window. With this many steps, the window hides a short delay even if each
// step is small.
constexpr int64_t kMaxWindowSteps = 4096;
// One step can wait for the trainer while another step is received.
constexpr int64_t kMinWindowSteps = 2;

WantedSteps WantedStepsOf(const FeedClientOptions& options) {
  return {.first_step = options.first_step, .steps = options.steps, .epochs = options.epochs};
}

absl::Status CheckOptions(const v1::FeedSpec& spec, const FeedClientOptions& options) {
  if (spec.ByteSizeLong() > kMaxSpecBytes) {
    return absl::InvalidArgumentError(absl::StrCat("the spec has ", spec.ByteSizeLong(),
                                                   " bytes as a message, want at most ",
                                                   kMaxSpecBytes, ": servers refuse a larger one"));
  }
  SYSTOLE_RETURN_IF_ERROR(CheckWantedSteps(WantedStepsOf(options)));
  SYSTOLE_RETURN_IF_ERROR(CheckWantedCores(options.core_begin, options.core_end, NumCoresOf(spec)));
  if (static_cast<bool>(options.memory.allocate) != static_cast<bool>(options.memory.free)) {
    return absl::InvalidArgumentError("memory: set both allocate and free, or neither");
  }
  for (const FeedOption& option : FeedOptionTable()) {
    SYSTOLE_RETURN_IF_ERROR(CheckFeedOption(option, options, option.name));
  }
  return absl::OkStatus();
}

// The shape of this client's steps. This function checks only the memory that a step takes. The
// rest of the answer was checked before (client/servers/server_answer.h).
absl::StatusOr<StepShape> ShapeOf(const v1::ResolveFeedResponse& answer, const v1::FeedSpec& spec,
                                  const FeedClientOptions& options) {
  SYSTOLE_ASSIGN_OR_RETURN(SliceLayout layout, LayoutOf(answer));
  StepShape shape = {.layout = std::move(layout),
                     .core_begin = options.core_begin,
                     .core_end = options.core_end == 0 ? NumCoresOf(spec) : options.core_end,
                     .placement = options.placement};
  if (shape.layout.slice_bytes() > options.max_step_bytes / shape.num_cores()) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the server says that a step has ", shape.layout.slice_bytes(), " bytes for each of ",
        shape.num_cores(), " cores; want at most ", options.max_step_bytes,
        " bytes per step. Make global_batch smaller, or raise max_step_bytes (--max-step-bytes)"));
  }
  return shape;
}

// What the server says about the transforms of each output.
SpecRuns RunsOf(const v1::ResolveFeedResponse& answer, const v1::FeedSpec& spec) {
  SpecRuns runs;
  for (const v1::Output& output : spec.outputs()) {
    std::vector<v1::TransformRun>& of_output = runs.emplace_back();
    for (const v1::TensorDescription& tensor : answer.tensors()) {
      if (tensor.name() != output.name()) continue;
      for (const int run : tensor.runs()) of_output.push_back(static_cast<v1::TransformRun>(run));
    }
  }
  return runs;
}

ResumeToken TokenOf(const v1::FeedIdentity& identity, const Order& order,
                    const FeedPosition& position) {
  ResumeToken token = {.dataset_fingerprint = identity.dataset_fingerprint(),
                       .order_fingerprint = identity.order_fingerprint(),
                       .content_version = identity.content_version(),
                       .position = position};
  CoverThePastAlone(order, token);
  return token;
}

}  // namespace

class FeedClient::Impl {
 public:
  Impl(const v1::FeedSpec& spec, const FeedClientOptions& options, ServerList servers,
       std::shared_ptr<const ChannelSecurity> security)
      : lanes(spec, options, std::move(servers), std::move(security)) {}

  FeedLanes lanes;
  // Constant after Create().
  v1::ResolveFeedResponse answer;
  std::string explanation;
  std::shared_ptr<const StepShape> shape;
  std::optional<Order> order;
  int64_t first_step = 0;
  int64_t end_step = 0;
  int64_t window_steps = 0;
  bool can_be_compact = false;

  // Makes the lanes ask for steps. Has no effect if Start() was called before.
  void Start() {
    if (started) return;
    lanes.Start(shape, std::move(finisher), *order, first_step, end_step, window_steps);
    started = true;  // Set last: from now on, stats() calls the lanes.
  }
  // Start() hands the finisher to the lanes.
  std::shared_ptr<const StepFinisher> finisher;
  // Atomic, because any thread may call stats().
  std::atomic<bool> started = false;
};

absl::StatusOr<std::unique_ptr<FeedClient>> FeedClient::Make(const v1::FeedSpec& spec,
                                                             const ResumeToken* token,
                                                             FeedClientOptions options) {
  if (token != nullptr) options.first_step = 0;  // The token's step is known only later.
  SYSTOLE_RETURN_IF_ERROR(CheckOptions(spec, options));
  SYSTOLE_ASSIGN_OR_RETURN(ServerList server_list, ServerList::Create(options.servers));
  SYSTOLE_ASSIGN_OR_RETURN(std::shared_ptr<const ChannelSecurity> security,
                           ChannelSecurity::Open(options.security, options.servers));
  auto impl = std::make_unique<Impl>(spec, options, std::move(server_list), std::move(security));
  SYSTOLE_ASSIGN_OR_RETURN(impl->answer, impl->lanes.WaitForAnswer());
  SYSTOLE_ASSIGN_OR_RETURN(impl->order, OrderOf(impl->answer, spec));
  if (token != nullptr) {
    const v1::FeedIdentity& identity = impl->answer.identity();
    SYSTOLE_ASSIGN_OR_RETURN(
        options.first_step,
        StepOfToken(*token, TokenOf(identity, *impl->order, token->position), *impl->order,
                    options.allow_mixed_content, options.log.get(),
                    {.feed = identity.spec_fingerprint(), .dataset = DatasetNames(spec)}));
  }
  impl->first_step = options.first_step;
  SYSTOLE_ASSIGN_OR_RETURN(StepShape shape, ShapeOf(impl->answer, spec, options));
  SYSTOLE_ASSIGN_OR_RETURN(impl->end_step,
                           EndOfWantedSteps(WantedStepsOf(options), impl->answer.total_steps(),
                                            impl->answer.steps_per_epoch()));
  impl->window_steps =
      std::clamp(options.prefetch_bytes / shape.bytes(), kMinWindowSteps, kMaxWindowSteps);
  impl->shape = std::make_shared<const StepShape>(std::move(shape));
  if (options.finish != "server") {
    SYSTOLE_ASSIGN_OR_RETURN(impl->finisher, StepFinisher::Create(impl->answer, impl->shape));
  }
  impl->can_be_compact = impl->finisher != nullptr;
  impl->explanation = ExplainRuns(spec, RunsOf(impl->answer, spec));
  if (options.start_at_once) impl->Start();
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

absl::StatusOr<std::optional<Step>> FeedClient::Next() {
  impl_->Start();
  return impl_->lanes.Next();
}

bool FeedClient::WaitForNext(absl::Duration timeout) {
  impl_->Start();
  return impl_->lanes.WaitForNext(timeout);
}

void FeedClient::Cancel() {
  impl_->lanes.Cancel(absl::CancelledError("the feed was cancelled by its client"));
}

ResumeToken FeedClient::TokenAt(int64_t next_step) const {
  return TokenOf(impl_->answer.identity(), *impl_->order, PositionBefore(*impl_->order, next_step));
}

int64_t FeedClient::next_step() const {
  return impl_->started ? impl_->lanes.next_step() : impl_->first_step;
}
void FeedClient::EndBefore(int64_t step) {
  SYSTOLE_CHECK(!impl_->started && step >= impl_->first_step && step <= impl_->end_step);
  impl_->end_step = step;
}
int64_t FeedClient::end_step() const { return impl_->end_step; }
bool FeedClient::has_end() const { return impl_->end_step < kNoEnd; }
int64_t FeedClient::steps_per_epoch() const { return impl_->answer.steps_per_epoch(); }
int64_t FeedClient::num_records() const { return impl_->answer.num_records(); }
const Order& FeedClient::order() const { return *impl_->order; }
const StepShape& FeedClient::shape() const { return *impl_->shape; }
const v1::ResolveFeedResponse& FeedClient::info() const { return impl_->answer; }
bool FeedClient::can_be_compact() const { return impl_->can_be_compact; }
int64_t FeedClient::window_steps() const { return impl_->window_steps; }
std::string FeedClient::Explain() const { return impl_->explanation; }
FeedClientStats FeedClient::stats() const {
  const bool started = impl_->started;
  FeedClientStats stats = impl_->lanes.stats();
  if (!started) stats.next_step = impl_->first_step;
  return stats;
}

}  // namespace systole
