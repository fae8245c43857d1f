#include "client/lanes/feed_servers.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/schedule/server_subset.h"
#include "client/servers/server_answer.h"
#include "core/spec/where_columns.h"
#include "core/status/check.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

// The load that the server reports. nullopt if it reports no load, or one that makes no sense.
std::optional<ServerLoad> LoadOf(const v1::ResolveFeedResponse& answer) {
  if (!answer.has_load() || !(answer.load().busy() >= 0)) return std::nullopt;  // NaN, too.
  return ServerLoad{.busy = std::min(answer.load().busy(), 1.0),
                    .free_places = std::max(answer.load().free_places(), 0)};
}

}  // namespace

FeedServers::FeedServers(const v1::FeedSpec& spec, const FeedClientOptions& options,
                         std::shared_ptr<const ChannelSecurity> security, uint64_t client,
                         FeedLog& log, FeedClientStats& stats)
    : spec_(spec),
      options_(options),
      security_(std::move(security)),
      trace_(TraceHeadersOf(options.traceparent)),
      client_(client),
      log_(log),
      stats_(stats) {}

std::vector<ScheduleEvent> FeedServers::SetAddresses(const std::vector<std::string>& addresses,
                                                     bool running) {
  const std::set<std::string> wanted(addresses.begin(), addresses.end());
  std::set<std::string> known;
  std::vector<int> left;
  for (const auto& [number, server] : servers_) {
    if (server.left) continue;
    known.insert(server.address);
    if (wanted.count(server.address) == 0) left.push_back(number);
  }
  std::vector<ServerJoined> joined;
  for (const std::string& address : addresses) {
    if (!known.insert(address).second) continue;
    const int number = next_server_++;
    servers_[number].address = address;
    if (running) log_.ServerJoined(address);
    joined.push_back({.server = number, .rank = RankOf(address, client_)});
  }
  std::stable_sort(joined.begin(), joined.end(),
                   [](const ServerJoined& a, const ServerJoined& b) { return a.rank < b.rank; });
  std::vector<ScheduleEvent> events(joined.begin(), joined.end());
  for (const int number : left) {
    servers_.at(number).left = true;
    log_.ServerLeft(AddressOf(number));
    events.push_back(ServerLeft{.server = number});
  }
  return events;
}

std::unique_ptr<ServerLink> FeedServers::Release(int server) {
  KnownServer& released = servers_.at(server);
  released.identity.reset();
  return std::move(released.link);
}

std::unique_ptr<ServerLink> FeedServers::Forget(int server) {
  std::unique_ptr<ServerLink> link = Release(server);
  servers_.erase(server);
  return link;
}

ResolveCall* FeedServers::Ask(int server, std::function<void(absl::Status)> ended) {
  KnownServer& asked = servers_.at(server);
  if (asked.link == nullptr) {
    asked.link = std::make_unique<ServerLink>(asked.address, security_, receive_watch_,
                                              options_.share_memory, trace_);
  }
  asked.question.call =
      std::make_unique<ResolveCall>(*asked.link, spec_, /*compact=*/options_.finish != "server",
                                    options_.connect_timeout, std::move(ended));
  return asked.question.call.get();
}

void FeedServers::QuestionEnded(int server, absl::Status status) {
  servers_.at(server).question.ended = std::move(status);
}

std::vector<int> FeedServers::Answering() const {
  std::vector<int> numbers;
  for (const auto& [number, server] : servers_) {
    if (server.question.ended.has_value()) numbers.push_back(number);
  }
  return numbers;
}

std::vector<ResolveCall*> FeedServers::CancelQuestions() {
  std::vector<ResolveCall*> calls;
  for (auto& [number, server] : servers_) {
    KnownServer::Question& question = server.question;
    if (question.call == nullptr || question.ended.has_value()) continue;
    if (!std::exchange(question.cancelled, true)) calls.push_back(question.call.get());
  }
  return calls;
}

FeedServers::Judged FeedServers::Judge(int number, bool wanted) {
  KnownServer& server = servers_.at(number);
  KnownServer::Question question = std::exchange(server.question, {});
  absl::Status status = *question.ended;
  Failure failure =
      FailureOf(status.code(), question.call->pushback(), /*running=*/answer_.has_value());
  if (question.call->answer_damaged()) {
    ++stats_.damaged_answers;
    failure = {.kind = FailureKind::kDamaged};
  } else if (status.ok()) {
    status = CheckAnswer(question.call->response());
    failure = {.kind = FailureKind::kFinal};
  } else if (absl::IsAborted(status)) {
    ++stats_.damaged_requests;
  }
  if (status.ok()) {
    server.identity = question.call->response().identity();
    if (!std::exchange(server.told, "").empty()) log_.AnswersAgain(AddressOf(number));
    return {.event = Answered{.server = number, .load = LoadOf(question.call->response())},
            .call = std::move(question.call)};
  }
  if (wanted) {
    ++stats_.streams_lost;
    server.Failed(status);
    // The log does not repeat the errors that the trainer gets, which are errors before the first
    // answer and final errors. It does not repeat its last message about this server either.
    if (answer_.has_value() && failure.kind != FailureKind::kFinal &&
        status.message() != server.told) {
      server.told = std::string(status.message());
      log_.NoAnswer(AddressOf(number), status);
    }
  }
  return {.event = AskFailed{.server = number, .failure = failure},
          .cause = server.Named(status),
          .call = std::move(question.call)};
}

absl::Status FeedServers::CheckAnswer(const v1::ResolveFeedResponse& answer) {
  SYSTOLE_RETURN_IF_ERROR(CheckFeedAnswer(answer, spec_));
  if (answer_.has_value())
    return CheckSameFeed(answer, *answer_, spec_, options_.allow_mixed_content);
  answer_ = answer;
  log_.SetFeed(answer.identity().spec_fingerprint());
  return absl::OkStatus();
}

void FeedServers::StreamLost(int number, int64_t step, const LaneEnding& ending) {
  ++stats_.streams_lost;
  KnownServer& server = servers_.at(number);
  server.Failed(ending.status);
  if (ending.failure.kind == FailureKind::kFinal) return;  // The trainer gets this error.
  server.told = std::string(ending.status.message());
  if (ending.failure.kind == FailureKind::kLeaving) {
    log_.ServerDrains(AddressOf(number), step);
  } else {
    log_.StreamLost(AddressOf(number), step, ending.status);
  }
}

const v1::FeedIdentity& FeedServers::IdentityOf(int server) const {
  const std::optional<v1::FeedIdentity>& identity = servers_.at(server).identity;
  SYSTOLE_CHECK(identity.has_value());
  return *identity;
}

std::string FeedServers::AddressOf(int server) const {
  const auto found = servers_.find(server);
  return found == servers_.end() ? "(no longer in the list)" : found->second.address;
}

absl::Status FeedServers::Unreachable(absl::string_view what) const {
  const bool looks_up = !answer_.has_value() && !WhereColumns(spec_).empty();
  return systole::Unreachable(
      absl::StrCat(what, looks_up ? " (a server may need longer to look up the records that "
                                    "meet `where`: raise connect_timeout, and try again)"
                                  : ""),
      servers_, security_->tls());
}

bool FeedServers::idle() const {
  return std::all_of(servers_.begin(), servers_.end(),
                     [](const auto& entry) { return entry.second.question.call == nullptr; });
}

}  // namespace systole
