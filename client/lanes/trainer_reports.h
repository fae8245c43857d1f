// Decides when this client tells each server how long the trainer waits (ReportTrainer), and owns
// these calls.
//
// Only servers that send steps now are called. A server gets one call at a time. Failures of calls
// are ignored, but a server that does not have the method is not called again.
//
// Thread-compatible. The caller of this class starts and cancels the calls, and holds no lock
// meanwhile.
#ifndef SYSTOLE_CLIENT_LANES_TRAINER_REPORTS_H_
#define SYSTOLE_CLIENT_LANES_TRAINER_REPORTS_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/servers/report_call.h"
#include "proto/framing/trainer_report.h"
#include "systole/v1/service.pb.h"

namespace systole {

class TrainerReports {
 public:
  // `client`: this client's number. It is in every report, so that servers can tell clients apart.
  // The first reports are due `every` after `now`. `every` is at least a millisecond, so that the
  // caller of Due() does not spin.
  TrainerReports(uint64_t client, absl::Duration every, absl::Duration now)
      : client_(client == 0 ? 1 : client),
        every_(std::max(every, absl::Milliseconds(1))),
        due_at_(now + every_) {}

  // `report` as a message of this client.
  v1::TrainerReport MessageOf(const TrainerReport& report) const;

  // When the caller must call Due() next.
  absl::Duration due_at() const { return due_at_; }
  // The servers to call now. Before due_at() there are none. `streaming`: the servers that send
  // steps.
  std::vector<int> Due(const std::set<int>& streaming, absl::Duration now);
  // Makes the call. REQUIRES: the server is one of Due(). `ended` is called once, on one of gRPC's
  // threads, and must pass its status to Ended().
  ReportCall* Tell(int server, const TrainerReport& report,
                   std::function<void(absl::Status)> ended);
  void Ended(int server, const absl::Status& status);
  // The calls that have ended, for the caller to destroy.
  std::vector<std::unique_ptr<ReportCall>> TakeEnded();
  // The calls under way that were not cancelled yet. The caller cancels them. From now on Due()
  // returns no server.
  std::vector<ReportCall*> CancelAll();
  // The server is used no more. A call to it may still be under way.
  void Forget(int server);
  // Whether no call is under way, and none waits for TakeEnded().
  bool idle() const { return calls_.empty(); }

 private:
  struct Call {
    std::unique_ptr<ReportCall> call;
    bool ended = false;
    bool cancelled = false;
    bool forgotten = false;
  };

  const uint64_t client_;
  const absl::Duration every_;
  absl::Duration due_at_;
  std::set<int> without_;  // The servers that do not have the method.
  std::map<int, Call> calls_;
};

}  // namespace systole

#endif  // SYSTOLE_CLIENT_LANES_TRAINER_REPORTS_H_
