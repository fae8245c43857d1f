#include "server/door/open_calls.h"

#include <utility>

#include "grpcpp/server_context.h"

namespace systole {
namespace {

// Lives as long as its call.
class CountedCall final : public grpc::experimental::Interceptor {
 public:
  explicit CountedCall(std::shared_ptr<OpenCalls::Connection> connection)
      : connection_(std::move(connection)) {
    connection_->Begin();
  }
  ~CountedCall() override { connection_->End(); }

  void Intercept(grpc::experimental::InterceptorBatchMethods* methods) override {
    using grpc::experimental::InterceptionHookPoints;
    // Headers, message and status may come together.
    if (!judged_ && methods->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_STATUS)) {
      judged_ = true;
      if (methods->GetSendStatus().error_code() != grpc::StatusCode::UNAUTHENTICATED) {
        connection_->Serve();
      }
    } else if (!judged_ && methods->QueryInterceptionHookPoint(
                               InterceptionHookPoints::PRE_SEND_INITIAL_METADATA)) {
      judged_ = true;
      connection_->Serve();
    }
    methods->Proceed();
  }

 private:
  const std::shared_ptr<OpenCalls::Connection> connection_;
  bool judged_ = false;  // Its answer has begun.
};

class Counter final : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  explicit Counter(std::shared_ptr<OpenCalls> calls) : calls_(std::move(calls)) {}

  grpc::experimental::Interceptor* CreateServerInterceptor(
      grpc::experimental::ServerRpcInfo* info) override {
    std::shared_ptr<OpenCalls::Connection> connection =
        calls_->Find(info->server_context()->peer());
    return connection == nullptr ? nullptr : new CountedCall(std::move(connection));
  }

 private:
  const std::shared_ptr<OpenCalls> calls_;
};

}  // namespace

void OpenCalls::Connection::Begin() {
  MutexLock lock(mu_);
  ++counts_.open;
}

void OpenCalls::Connection::End() {
  MutexLock lock(mu_);
  ++counts_.ended;
  if (--counts_.open == 0) since_ = clock_();
}

void OpenCalls::Connection::Serve() {
  MutexLock lock(mu_);
  ++counts_.served;
}

OpenCalls::Connection::Counts OpenCalls::Connection::counts() const {
  MutexLock lock(mu_);
  return counts_;
}

absl::Duration OpenCalls::Connection::Quiet() const {
  MutexLock lock(mu_);
  return counts_.open > 0 ? absl::ZeroDuration() : clock_() - since_;
}

std::shared_ptr<OpenCalls::Connection> OpenCalls::Add(const std::string& peer) {
  auto connection = std::make_shared<Connection>(clock_);
  MutexLock lock(mu_);
  connections_.insert_or_assign(peer, connection);
  return connection;
}

void OpenCalls::Remove(const std::string& peer, const std::shared_ptr<Connection>& connection) {
  MutexLock lock(mu_);
  const auto known = connections_.find(peer);
  if (known != connections_.end() && known->second == connection) connections_.erase(known);
}

std::shared_ptr<OpenCalls::Connection> OpenCalls::Find(absl::string_view peer) const {
  MutexLock lock(mu_);
  const auto known = connections_.find(peer);
  return known == connections_.end() ? nullptr : known->second;
}

std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> CallCounter(
    std::shared_ptr<OpenCalls> calls) {
  return std::make_unique<Counter>(std::move(calls));
}

}  // namespace systole
