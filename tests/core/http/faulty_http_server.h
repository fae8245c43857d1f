// A StubHttpServer that answers as usual, or in another way for as long as a test says so.
#ifndef SYSTOLE_TESTS_CORE_HTTP_FAULTY_HTTP_SERVER_H_
#define SYSTOLE_TESTS_CORE_HTTP_FAULTY_HTTP_SERVER_H_

#include <functional>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "core/concurrency/mutex.h"
#include "tests/core/http/stub_http_server.h"

namespace systole {

// Thread-safe.
class FaultyHttpServer {
 public:
  // Nullopt: the request is answered as usual.
  using Fault = std::function<std::optional<StubAnswer>(const StubRequest&)>;

  // `usual` may use members that its owner declares before this object. For the other parameters
  // see StubHttpServer.
  explicit FaultyHttpServer(StubHttpServer::Handler usual,
                            const StubCertificate* certificate = nullptr)
      : usual_(std::move(usual)),
        server_([this](const StubRequest& request) { return Serve(request); }, certificate) {}

  // Sets the fault for requests from now on. Null: there is no fault any more.
  void SetFault(Fault fault) ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    fault_ = std::move(fault);
  }

  StubHttpServer& server() { return server_; }
  const StubHttpServer& server() const { return server_; }

 private:
  StubAnswer Serve(const StubRequest& request) ABSL_LOCKS_EXCLUDED(mu_) {
    Fault fault;
    {
      MutexLock lock(mu_);
      fault = fault_;
    }
    std::optional<StubAnswer> answer;
    if (fault != nullptr) answer = fault(request);
    return answer.has_value() ? *std::move(answer) : usual_(request);
  }

  const StubHttpServer::Handler usual_;
  Mutex mu_;
  Fault fault_ ABSL_GUARDED_BY(mu_);
  StubHttpServer server_;  // Last, because its threads use the members above.
};

}  // namespace systole

#endif  // SYSTOLE_TESTS_CORE_HTTP_FAULTY_HTTP_SERVER_H_
