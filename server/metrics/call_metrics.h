// Metrics of calls. Names and buckets are those of gRPC's own convention (A66), in Prometheus'
// spelling. gRPC 1.51 itself has no such metrics.
//
//   grpc_server_call_started_total{grpc_method}
//   grpc_server_call_duration_seconds{grpc_method,grpc_status}
//   grpc_server_call_sent_total_compressed_message_size_bytes{grpc_method,grpc_status}
//
// Thread-safe.
#ifndef SYSTOLE_SERVER_METRICS_CALL_METRICS_H_
#define SYSTOLE_SERVER_METRICS_CALL_METRICS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/concurrency/monotonic_clock.h"
#include "core/metrics/histogram.h"
#include "core/metrics/metric_family.h"
#include "grpcpp/support/server_interceptor.h"

namespace systole {

class CallMetrics {
 public:
  // gRPC has 17 status codes. The 18th place counts calls that end with any other number.
  static constexpr size_t kStatuses = 18;

  // `methods`: the served methods, written "package.Service/Method". All other methods that
  // clients call count as one method, "other".
  CallMetrics(const std::vector<std::string>& methods, MonotonicClock clock);

  // The number of a method, for Began() and Ended(). `name` is written as gRPC writes it:
  // "/package.Service/Method".
  size_t MethodOf(absl::string_view name) const;
  void Began(size_t method) { ++methods_[method]->started; }
  // `sent_bytes`: the size of all messages that the call sent, without the frames around them.
  void Ended(size_t method, int status, absl::Duration took, int64_t sent_bytes);

  // The time since a fixed moment.
  absl::Duration Now() const { return clock_(); }

  // Every method has a series of started calls from the beginning. Each other series is for one
  // method and one status. It appears when a call of this method first ends with this status.
  std::vector<MetricFamily> Read() const;

 private:
  struct Outcome {
    Outcome();
    Histogram seconds;
    Histogram sent_bytes;
  };
  struct Method {
    std::string name;
    std::atomic<int64_t> started = 0;
    Outcome outcomes[kStatuses];
  };

  const MonotonicClock clock_;
  std::vector<std::unique_ptr<Method>> methods_;  // The last one is "other".
  std::map<std::string, size_t, std::less<>> by_name_;
};

// For ServerBuilder: counts each call in `metrics`.
std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> CallTimer(
    std::shared_ptr<CallMetrics> metrics);

}  // namespace systole

#endif  // SYSTOLE_SERVER_METRICS_CALL_METRICS_H_
