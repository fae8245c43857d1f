#include "server/metrics/call_metrics.h"

#include <utility>

#include "absl/strings/strip.h"
#include "grpcpp/support/byte_buffer.h"

namespace systole {
namespace {

// gRPC's proposal A66 sets these bounds. Histograms with the same bounds can be added up over
// several programs.
constexpr double kSecondsBounds[] = {
    0,     0.00001, 0.00005, 0.0001, 0.0003, 0.0006, 0.0008, 0.001, 0.002, 0.003, 0.004,
    0.005, 0.006,   0.008,   0.01,   0.013,  0.016,  0.02,   0.025, 0.03,  0.04,  0.05,
    0.065, 0.08,    0.1,     0.13,   0.16,   0.2,    0.25,   0.3,   0.4,   0.5,   0.65,
    0.8,   1,       2,       5,      10,     20,     50,     100};
constexpr double kBytesBounds[] = {0,        1024,      2048,       4096,      16384,
                                   65536,    262144,    1048576,    4194304,   16777216,
                                   67108864, 268435456, 1073741824, 4294967296};

// gRPC's names of its codes, by number.
constexpr absl::string_view kStatusNames[CallMetrics::kStatuses] = {"OK",
                                                                    "CANCELLED",
                                                                    "UNKNOWN",
                                                                    "INVALID_ARGUMENT",
                                                                    "DEADLINE_EXCEEDED",
                                                                    "NOT_FOUND",
                                                                    "ALREADY_EXISTS",
                                                                    "PERMISSION_DENIED",
                                                                    "RESOURCE_EXHAUSTED",
                                                                    "FAILED_PRECONDITION",
                                                                    "ABORTED",
                                                                    "OUT_OF_RANGE",
                                                                    "UNIMPLEMENTED",
                                                                    "INTERNAL",
                                                                    "UNAVAILABLE",
                                                                    "DATA_LOSS",
                                                                    "UNAUTHENTICATED",
                                                                    "OTHER"};

constexpr absl::string_view kOtherMethod = "other";

// Lives as long as its call.
class TimedCall final : public grpc::experimental::Interceptor {
 public:
  TimedCall(std::shared_ptr<CallMetrics> metrics, size_t method)
      : metrics_(std::move(metrics)), method_(method), begun_(metrics_->Now()) {
    metrics_->Began(method_);
  }
  ~TimedCall() override {
    metrics_->Ended(method_, status_, metrics_->Now() - begun_, sent_bytes_);
  }

  void Intercept(grpc::experimental::InterceptorBatchMethods* methods) override {
    using grpc::experimental::InterceptionHookPoints;
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_MESSAGE)) {
      sent_bytes_ += static_cast<int64_t>(methods->GetSerializedSendMessage()->Length());
    }
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_STATUS)) {
      status_ = methods->GetSendStatus().error_code();
    }
    methods->Proceed();
  }

 private:
  const std::shared_ptr<CallMetrics> metrics_;
  const size_t method_;
  const absl::Duration begun_;
  int64_t sent_bytes_ = 0;
  int status_ = grpc::StatusCode::CANCELLED;  // Stays so if no status is sent.
};

class Timer final : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  explicit Timer(std::shared_ptr<CallMetrics> metrics) : metrics_(std::move(metrics)) {}

  grpc::experimental::Interceptor* CreateServerInterceptor(
      grpc::experimental::ServerRpcInfo* info) override {
    return new TimedCall(metrics_, metrics_->MethodOf(info->method()));
  }

 private:
  const std::shared_ptr<CallMetrics> metrics_;
};

}  // namespace

CallMetrics::Outcome::Outcome() : seconds(kSecondsBounds), sent_bytes(kBytesBounds) {}

CallMetrics::CallMetrics(const std::vector<std::string>& methods, MonotonicClock clock)
    : clock_(std::move(clock)) {
  for (const std::string& name : methods) {
    by_name_[name] = methods_.size();
    methods_.push_back(std::make_unique<Method>());
    methods_.back()->name = name;
  }
  methods_.push_back(std::make_unique<Method>());
  methods_.back()->name = std::string(kOtherMethod);
}

size_t CallMetrics::MethodOf(absl::string_view name) const {
  const auto known = by_name_.find(absl::StripPrefix(name, "/"));
  return known == by_name_.end() ? methods_.size() - 1 : known->second;
}

void CallMetrics::Ended(size_t method, int status, absl::Duration took, int64_t sent_bytes) {
  const bool known = status >= 0 && static_cast<size_t>(status) < kStatuses;
  Outcome& outcome =
      methods_[method]->outcomes[known ? static_cast<size_t>(status) : kStatuses - 1];
  outcome.seconds.Add(absl::ToDoubleSeconds(took));
  outcome.sent_bytes.Add(static_cast<double>(sent_bytes));
}

std::vector<MetricFamily> CallMetrics::Read() const {
  MetricFamily started = {.name = "grpc_server_call_started_total",
                          .kind = MetricKind::kCounter,
                          .help =
                              "Calls begun. `grpc_method` is \"other\" for all methods that are "
                              "not served."};
  MetricFamily seconds = {.name = "grpc_server_call_duration_seconds",
                          .kind = MetricKind::kHistogram,
                          .help =
                              "How long calls took until their end. The duration of a stream of "
                              "steps says nothing about speed, because it depends on how many "
                              "steps its client wants and how fast it takes them."};
  MetricFamily sent = {.name = "grpc_server_call_sent_total_compressed_message_size_bytes",
                       .kind = MetricKind::kHistogram,
                       .help = "Bytes of all messages that a call sent, added up."};
  for (const std::unique_ptr<Method>& method : methods_) {
    started.samples.push_back(
        {.labels = {{"grpc_method", method->name}}, .value = static_cast<double>(method->started)});
    for (size_t status = 0; status < kStatuses; ++status) {
      HistogramReading took = method->outcomes[status].seconds.Read();
      if (took.count() == 0) continue;
      const std::vector<MetricLabel> labels = {{"grpc_method", method->name},
                                               {"grpc_status", std::string(kStatusNames[status])}};
      seconds.samples.push_back({.labels = labels, .histogram = std::move(took)});
      sent.samples.push_back(
          {.labels = labels, .histogram = method->outcomes[status].sent_bytes.Read()});
    }
  }
  return {std::move(started), std::move(seconds), std::move(sent)};
}

std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> CallTimer(
    std::shared_ptr<CallMetrics> metrics) {
  return std::make_unique<Timer>(std::move(metrics));
}

}  // namespace systole
