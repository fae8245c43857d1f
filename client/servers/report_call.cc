#include "client/servers/report_call.h"

#include <chrono>
#include <utility>

#include "client/servers/server_answer.h"
#include "proto/framing/status_bridge.h"

namespace systole {
namespace {

// How long a call may take: less than the time between two reports.
constexpr std::chrono::seconds kPatience(5);

}  // namespace

ReportCall::ReportCall(v1::TrainerReport report, std::function<void(absl::Status)> done)
    : done_(std::move(done)) {
  *request_.mutable_trainer() = std::move(report);
}

void ReportCall::Start(ServerLink& link) {
  context_.set_deadline(std::chrono::system_clock::now() + kPatience);
  link.AddToken(context_);
  metered_.emplace(link.meter(), kMaxReportAnswerBytes);
  stub_ = v1::Systole::NewStub(link.channel());
  stub_->async()->ReportTrainer(&context_, &request_, &response_, [this](grpc::Status status) {
    done_(metered_->End(FromGrpcStatus(status)));
  });
}

}  // namespace systole
