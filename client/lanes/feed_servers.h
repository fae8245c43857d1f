// The servers of a feed. FeedServers has the list of servers, asks each server what the feed
// yields, and checks each answer. It returns events, which its caller passes to the schedule.
//
// Thread-compatible.
#ifndef SYSTOLE_CLIENT_LANES_FEED_SERVERS_H_
#define SYSTOLE_CLIENT_LANES_FEED_SERVERS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "client/lanes/feed_client_options.h"
#include "client/lanes/feed_lane.h"
#include "client/lanes/feed_log.h"
#include "client/schedule/step_schedule.h"
#include "client/servers/known_server.h"
#include "client/servers/receive_meter.h"
#include "client/servers/server_security.h"
#include "client/servers/trace_headers.h"
#include "client/step/feed_client_stats.h"
#include "systole/v1/feed.pb.h"
#include "systole/v1/service.pb.h"

namespace systole {

class FeedServers {
 public:
  // Counts in `stats` and logs to `log`. Both belong to the feed, and the lock that guards this
  // object guards them, too.
  // `client`, this client's number, decides which servers are used first.
  FeedServers(const v1::FeedSpec& spec, const FeedClientOptions& options,
              std::shared_ptr<const ChannelSecurity> security, uint64_t client, FeedLog& log,
              FeedClientStats& stats);

  // From now on the servers are those at `addresses`. New servers get numbers that were never used.
  // Servers that have left the list are kept until Forget(). Returns the events for the schedule.
  // The events of new servers come first, so that these servers can take over the work of servers
  // that left. The new servers are in the order in which this client is to use them
  // (server_subset.h). `running`: the feed has begun, so new servers are logged.
  std::vector<ScheduleEvent> SetAddresses(const std::vector<std::string>& addresses, bool running);
  // Returns the link to a server that stays in the list, for the caller to destroy. Null if the
  // server has no link. REQUIRES: the server has neither a stream nor a question.
  std::unique_ptr<ServerLink> Release(int server);
  // Like Release(), but also forgets the server.
  std::unique_ptr<ServerLink> Forget(int server);

  // Makes a question: the call that asks the server what the feed yields. The caller starts the
  // call. `ended` is called once, on one of gRPC's threads, and must pass its status to
  // QuestionEnded().
  ResolveCall* Ask(int server, std::function<void(absl::Status)> ended);
  void QuestionEnded(int server, absl::Status status);
  // The servers whose questions have ended but whose answers are not judged yet.
  std::vector<int> Answering() const;
  // The questions under way that were not cancelled yet. The caller cancels them.
  std::vector<ResolveCall*> CancelQuestions();

  struct Judged {
    ScheduleEvent event;                // Answered or AskFailed.
    absl::Status cause;                 // The error of AskFailed, with the address.
    std::unique_ptr<ResolveCall> call;  // For the caller to destroy.
  };
  // Judges the answer of a server of Answering(). A failure is counted and logged only if `wanted`
  // is true.
  Judged Judge(int server, bool wanted);

  // A stream of the server ended early, at `step`.
  void StreamLost(int server, int64_t step, const LaneEnding& ending);

  // The first good answer of any server.
  const std::optional<v1::ResolveFeedResponse>& answer() const { return answer_; }
  // REQUIRES: the server has answered, and no stream of it was lost since.
  const v1::FeedIdentity& IdentityOf(int server) const;
  // REQUIRES: the server was asked, and not released since.
  ServerLink& LinkOf(int server) const { return *servers_.at(server).link; }
  // The server's last error.
  const absl::Status& LastErrorOf(int server) const { return servers_.at(server).last_error; }
  // `status` with the server's address in its message.
  absl::Status Named(int server, const absl::Status& status) const {
    return servers_.at(server).Named(status);
  }
  // The server's name in the log, even after Forget().
  std::string AddressOf(int server) const;
  // An Unavailable error. Its message has `what`, and each server's address and last error.
  absl::Status Unreachable(absl::string_view what) const;
  bool empty() const { return servers_.empty(); }
  // Whether no question is under way.
  bool idle() const;

 private:
  // FailedPrecondition if `answer` is about another feed than the first answer; Internal if no
  // correct server could give such an answer for the spec.
  absl::Status CheckAnswer(const v1::ResolveFeedResponse& answer);

  const v1::FeedSpec& spec_;
  const FeedClientOptions& options_;
  const std::shared_ptr<const ChannelSecurity> security_;
  const TraceHeaders trace_;
  const uint64_t client_;
  FeedLog& log_;
  FeedClientStats& stats_;
  ReceiveWatch receive_watch_;
  std::map<int, KnownServer> servers_;
  int next_server_ = 0;
  std::optional<v1::ResolveFeedResponse> answer_;
};

}  // namespace systole

#endif  // SYSTOLE_CLIENT_LANES_FEED_SERVERS_H_
