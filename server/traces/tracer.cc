#include "server/traces/tracer.h"

#include <sys/random.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/random/counter_rng.h"
#include "core/text/foreign_text.h"

namespace systole {
namespace {

// Keeps the random draws of server/traces apart from all other draws.
constexpr uint32_t kPurpose = 0x74726163;

constexpr size_t kMaxErrorBytes = 256;

constexpr char kService[] = "systole.v1.Systole";

uint64_t Seed() {
  uint64_t seed = 0;
  // The ids of two servers must differ, so the seed is random. If the kernel gives no random
  // number, the seed is the time.
  if (::getrandom(&seed, sizeof(seed), 0) != static_cast<ssize_t>(sizeof(seed))) {
    seed = static_cast<uint64_t>(absl::ToInt64Nanoseconds(SteadyClock()()));
  }
  return seed;
}

// Whether an RPC that ends with this code counts as failed for the server, by OpenTelemetry's
// conventions. All other codes are the client's mistakes.
bool IsServersFault(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kUnknown:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kUnimplemented:
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDataLoss:
      return true;
    default:
      return false;
  }
}

}  // namespace

bool Tracer::Rate::Take(absl::Duration now) {
  left = std::min(at_once, left + per_second * absl::ToDoubleSeconds(now - since));
  since = now;
  if (left < 1) return false;
  left -= 1;
  return true;
}

Tracer::Tracer(TracerOptions options) : options_(std::move(options)), seed_(Seed()) {}

uint64_t Tracer::NewId() {
  const uint64_t number = ids_.fetch_add(1, std::memory_order_relaxed);
  CounterRng draws(seed_, 0, static_cast<int64_t>(number), kPurpose);
  uint64_t id = draws.NextU64();
  while (id == 0) id = draws.NextU64();  // 0 is no id.
  return id;
}

CallTrace Tracer::Begin(const std::optional<TraceContext>& parent) {
  CallTrace call;
  if (parent.has_value()) {
    call.trace = parent->trace;
    call.parent_span = parent->span;
    call.state = parent->state;
  }
  if (options_.spans == nullptr || (parent.has_value() && !parent->sampled)) return call;
  {
    MutexLock lock(mu_);
    if (!calls_.Take(options_.clock())) {
      options_.spans->CountTooMany();
      return call;
    }
  }
  if (!parent.has_value()) call.trace = {.high = NewId(), .low = NewId()};
  call.span = NewId();
  call.begin = options_.time_of_day();
  return call;
}

void Tracer::End(const CallTrace& call, const char* method, const absl::Status& status,
                 std::vector<SpanAttribute> attributes) {
  if (call.span == 0) return;
  if (!status.ok() && !call.is_stream) {
    MutexLock lock(mu_);
    calls_.GiveBack();
    if (!refused_.Take(options_.clock())) return options_.spans->CountTooMany();
  }
  attributes.insert(attributes.begin(),
                    {{"rpc.system", "grpc"},
                     {"rpc.service", kService},
                     {"rpc.method", method},
                     {"rpc.grpc.status_code", static_cast<int64_t>(status.code())}});
  options_.spans->Add({.trace = call.trace,
                       .span = call.span,
                       .parent = call.parent_span,
                       .parent_is_remote = call.parent_span != 0,
                       .trace_state = call.state,
                       .name = absl::StrCat(kService, "/", method),
                       .is_call = true,
                       .begin = call.begin,
                       .end = std::max(call.begin, options_.time_of_day()),
                       .attributes = std::move(attributes),
                       .error = IsServersFault(status.code())
                                    ? ForeignText(status.message(), kMaxErrorBytes)
                                    : ""});
}

void Tracer::AddStep(const CallTrace& call, absl::string_view dataset,
                     const std::vector<std::string>& datasets, const TracedStep& step,
                     absl::Duration took) {
  const bool is_slow = slow_steps_.Add(dataset, datasets, step);
  if (call.span == 0) return;
  if (!is_slow) {
    MutexLock lock(mu_);
    if (!steps_.Take(options_.clock())) return;
  }
  const auto seconds = [](absl::Duration time) { return absl::ToDoubleSeconds(time); };
  options_.spans->Add({.trace = call.trace,
                       .span = NewId(),
                       .parent = call.span,
                       .trace_state = call.state,
                       .name = "step",
                       .begin = step.ended - took,
                       .end = step.ended,
                       .attributes = {{"systole.dataset", std::string(dataset)},
                                      {"systole.step", step.step},
                                      {"systole.core_begin", int64_t{step.core_begin}},
                                      {"systole.core_end", int64_t{step.core_end}},
                                      {"systole.slowest_core", int64_t{step.slowest_core}},
                                      {"systole.read_seconds", seconds(step.times.read)},
                                      {"systole.make_seconds", seconds(step.times.make)},
                                      {"systole.wait_seconds", seconds(step.times.wait)},
                                      {"systole.send_seconds", seconds(step.times.send)}}});
}

}  // namespace systole
