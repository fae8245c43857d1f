#include "client/lanes/trainer_reports.h"

#include "core/status/check.h"

namespace systole {

v1::TrainerReport TrainerReports::MessageOf(const TrainerReport& report) const {
  v1::TrainerReport message;
  message.set_client(client_);
  SetReport(report, message);
  return message;
}

std::vector<int> TrainerReports::Due(const std::set<int>& streaming, absl::Duration now) {
  std::vector<int> servers;
  if (now < due_at_) return servers;
  due_at_ = now + every_;
  for (const int server : streaming) {
    if (!without_.contains(server) && !calls_.contains(server)) servers.push_back(server);
  }
  return servers;
}

ReportCall* TrainerReports::Tell(int server, const TrainerReport& report,
                                 std::function<void(absl::Status)> ended) {
  auto call = std::make_unique<ReportCall>(MessageOf(report), std::move(ended));
  const auto [added, is_new] = calls_.emplace(server, Call{.call = std::move(call)});
  SYSTOLE_CHECK(is_new);
  return added->second.call.get();
}

void TrainerReports::Ended(int server, const absl::Status& status) {
  Call& call = calls_.at(server);
  call.ended = true;
  if (absl::IsUnimplemented(status) && !call.forgotten) without_.insert(server);
}

void TrainerReports::Forget(int server) {
  without_.erase(server);
  if (const auto call = calls_.find(server); call != calls_.end()) call->second.forgotten = true;
}

std::vector<std::unique_ptr<ReportCall>> TrainerReports::TakeEnded() {
  std::vector<std::unique_ptr<ReportCall>> ended;
  for (auto call = calls_.begin(); call != calls_.end();) {
    if (!call->second.ended) {
      ++call;
      continue;
    }
    ended.push_back(std::move(call->second.call));
    call = calls_.erase(call);
  }
  return ended;
}

std::vector<ReportCall*> TrainerReports::CancelAll() {
  due_at_ = absl::InfiniteDuration();
  std::vector<ReportCall*> calls;
  for (auto& [server, call] : calls_) {
    if (!call.ended && !std::exchange(call.cancelled, true)) calls.push_back(call.call.get());
  }
  return calls;
}

}  // namespace systole
