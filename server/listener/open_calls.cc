#include "server/listener/open_calls.h"

#include <utility>

#include "grpcpp/server_context.h"

namespace systole {
namespace {

bool IsService(grpc::StatusCode code) {
  return code != grpc::StatusCode::UNAUTHENTICATED && code != grpc::StatusCode::UNIMPLEMENTED &&
         code != grpc::StatusCode::ABORTED && code != grpc::StatusCode::INTERNAL;
}

// Lives as long as its call.
class CountedCall final : public grpc::experimental::Interceptor {
 public:
  explicit CountedCall(std::shared_ptr<OpenCalls::Connection> connection)
      : connection_(std::move(connection)) {
    connection_->Begin();
  }
  ~CountedCall() override {
    if (will_be_served_) Serve();
    connection_->End(served_);
  }

  void Intercept(grpc::experimental::InterceptorBatchMethods* methods) override {
    using grpc::experimental::InterceptionHookPoints;
    // One batch may have headers, message and status. In this case the status decides.
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_STATUS)) {
      will_be_served_ = IsService(methods->GetSendStatus().error_code());
    } else if (methods->QueryInterceptionHookPoint(
                   InterceptionHookPoints::PRE_SEND_INITIAL_METADATA)) {
      Serve();
    }
    methods->Proceed();
  }

 private:
  void Serve() {
    if (!std::exchange(served_, true)) connection_->Serve();
  }

  const std::shared_ptr<OpenCalls::Connection> connection_;
  bool will_be_served_ = false;  // The call counts as served once its answer has gone.
  bool served_ = false;
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
  ++counts_.unserved;
}

void OpenCalls::Connection::Serve() {
  MutexLock lock(mu_);
  --counts_.unserved;
  ++counts_.served;
}

void OpenCalls::Connection::End(bool served) {
  MutexLock lock(mu_);
  if (!served) --counts_.unserved;
  if (--counts_.open == 0) since_ = clock_();
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
