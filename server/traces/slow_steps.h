// The slowest steps of each dataset in each of the last minutes. They show people why a feed is
// slow now and then. The number of kept steps is bounded, whatever clients request.
//
// Thread-safe.
#ifndef SYSTOLE_SERVER_TRACES_SLOW_STEPS_H_
#define SYSTOLE_SERVER_TRACES_SLOW_STEPS_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/concurrency/mutex.h"
#include "core/trace/trace_context.h"

namespace systole {

// How long the stages of a step took on the server. The stages of different steps overlap: a step
// may be read while the step before it is sent.
struct StepTimes {
  // The stages of the step's slowest slice, as in core/batch/stage_times.h.
  absl::Duration read = absl::ZeroDuration();
  absl::Duration make = absl::ZeroDuration();
  absl::Duration wait = absl::ZeroDuration();
  // The time from the first byte of a slice until gRPC has taken the slice's last byte, summed over
  // all slices. This time depends on the client and the network.
  absl::Duration send = absl::ZeroDuration();
};

// A step that was sent.
struct TracedStep {
  int64_t step = 0;
  int core_begin = 0;
  int core_end = 0;
  int slowest_core = 0;  // The core whose slice took longest to be read and made.
  StepTimes times;
  absl::Time ended;
  TraceId trace = {};
};

struct SlowStep : TracedStep {
  std::string dataset;  // To be shown; "other" for datasets without a list of their own.
  std::vector<std::string> datasets;  // All datasets of the stream.
};

// The newest minute comes first. The steps of a minute are sorted by dataset, and the steps of a
// dataset by time, the slowest first.
struct SlowStepLists {
  std::vector<SlowStep> made;  // By read + make, which depend on the server and its storage.
  std::vector<SlowStep> sent;  // By send, which depends on the network and the client.
};

class SlowSteps {
 public:
  // How many minutes are kept. Minutes in which no step was sent do not count.
  static constexpr size_t kMinutes = 10;
  // How many datasets of a minute have lists of their own. All other datasets share the lists of
  // "other". Without this bound, clients could add lists without end, by naming ever new mixtures
  // of datasets.
  static constexpr size_t kDatasets = 16;
  // How many steps are kept for each dataset and minute.
  static constexpr size_t kSlowestMade = 5;
  static constexpr size_t kSlowestSent = 3;

  // Returns whether the step is now one of the slowest of its dataset in this minute. `dataset` was
  // made by ForeignName(), so its length is bounded. `datasets` are the stream's datasets; this
  // server serves all of them.
  bool Add(absl::string_view dataset, const std::vector<std::string>& datasets,
           const TracedStep& step) ABSL_LOCKS_EXCLUDED(mu_);

  // Returns the kept steps. If `may_list` is false for one of a stream's datasets, the steps of
  // this stream are left out.
  using MayList = absl::FunctionRef<bool(const std::string& dataset)>;
  SlowStepLists Read(MayList may_list) const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // A step is in each list at most once. The slowest step comes first.
  struct OfDataset {
    std::string name;
    std::vector<SlowStep> made;
    std::vector<SlowStep> sent;
  };
  struct Minute {
    int64_t number;  // Minutes since 1970.
    std::vector<OfDataset> datasets;
  };

  OfDataset& ListsOf(absl::string_view dataset, absl::Time time) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  mutable Mutex mu_;
  std::deque<Minute> minutes_ ABSL_GUARDED_BY(mu_);  // Oldest first.
};

}  // namespace systole

#endif  // SYSTOLE_SERVER_TRACES_SLOW_STEPS_H_
