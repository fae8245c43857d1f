// A running Systole server: the gRPC services, their listening socket, and the admin port.
//
// Thread-compatible.
#ifndef SYSTOLE_SERVER_SERVER_H_
#define SYSTOLE_SERVER_SERVER_H_

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "core/concurrency/worker_pool.h"
#include "core/descriptor/owned_fd.h"
#include "core/metrics/metric_family.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "server/access/permissions.h"
#include "server/admin/admin_port.h"
#include "server/introspection/health_service.h"
#include "server/introspection/reflection_service.h"
#include "server/listener/listener.h"
#include "server/metrics/call_metrics.h"
#include "server/open_files.h"
#include "server/rpc/catalogue.h"
#include "server/rpc/feed_service.h"
#include "server/socket_lock.h"
#include "server/statusz/server_view.h"
#include "server/traces/slow_steps.h"
#include "systole/v1/config.pb.h"

namespace systole {

class Server final : private AdminPort::Source {
 public:
  // Opens the admin port of `config`; null if `config` has none. The port answers at once, so that
  // probes get answers while the datasets are still being opened. Errors of CompleteConfig() and
  // AdminPort::Open().
  static absl::StatusOr<std::unique_ptr<AdminPort>> OpenAdmin(const v1::ServerConfig& config,
                                                              std::shared_ptr<AccessControl> access,
                                                              EventLog* events);

  // Starts a server. It serves already when Start() returns.
  //   catalogue  the datasets.
  //   config     the address, TLS, and the limits on connections. A field that is left out has its
  //              flag's default.
  //   service    threads, memory, timeouts of reads and streams, caches, access, and the log.
  //   admin      shows the server from now on. Null: no admin port shows the server.
  //   passed     a Unix socket that listens at the address already (TakePassedSocket()). The server
  //              takes no lock for this socket, and does not remove its file at the end. Without a
  //              descriptor: the server makes its own socket.
  // Errors:
  //   InvalidArgument  the address is not valid, or it is beyond loopback and there is neither TLS
  //                    nor `insecure`; a field is out of its bounds.
  //   Unavailable      the address is taken or not this machine's.
  // Also the errors of SocketLock::Take() for a Unix socket, and of TlsFiles::Open() with TLS.
  static absl::StatusOr<std::unique_ptr<Server>> Start(Catalogue catalogue,
                                                       const v1::ServerConfig& config,
                                                       const FeedServiceOptions& service = {},
                                                       std::unique_ptr<AdminPort> admin = nullptr,
                                                       OwnedFd passed = OwnedFd());
  // Ends every call at once, unless Drain() has been called.
  ~Server() override;
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // The port that the server listens on; 0 for a Unix socket.
  int port() const { return port_; }
  // The address for clients on this machine.
  const std::string& address() const { return address_; }

  // OK if clients on this machine can get batches through shared memory. Otherwise says why not.
  const absl::Status& sharing() const { return sharing_; }

  // OK if this process may open as many files as it may come to need (server/open_files.h).
  const absl::Status& open_files() const { return open_files_; }

  // The catalogue in force.
  std::shared_ptr<const Catalogue> catalogue() const { return service_->catalogue(); }
  // See FeedService::Change(). Afterwards open_files() is for the new catalogue. Call Change() from
  // the thread that calls Tick().
  void Change(absl::Span<const std::string> removed, const Catalogue& added);

  // Shows the config `in_force` on the admin port, if there is one.
  void ShowConfig(const v1::ServerConfig& in_force);

  // Ends the work for all streams. False if a thread still works after `patience`, most likely
  // because its read hangs. The destructor would wait for that thread. So a program that must end
  // calls _Exit() instead.
  bool StopWork(absl::Duration patience) { return service_->StopWork(patience); }

  // Bytes of records that were read ahead, or are kept.
  int64_t read_ahead_bytes() const { return service_->read_ahead_bytes(); }

  // Does the regular work of the listener and the services. Call it about once a second, from one
  // thread.
  void Tick() {
    listener_->EndQuiet();
    service_->Tick();
    reflection_->Tick();
    health_->Tick();
    if (admin_ != nullptr) admin_->Tick();
  }

  // From now on the health service answers NOT_SERVING, streams end with a notice at their next
  // step, and new streams are refused. Returns true when all calls are over. If some calls are not
  // over after `timeout`, because a client has stopped reading, Drain() hangs up on all clients and
  // returns false. Call it once.
  bool Drain(absl::Duration timeout);

  // The admin port; null if there is none.
  const AdminPort* admin() const { return admin_.get(); }

  // Connections: how many are open, and how many were turned away.
  ListenerCounters connections() const { return listener_->counters(); }

 private:
  using Acceptor = grpc::experimental::ExternalConnectionAcceptor;

  Server(std::unique_ptr<FeedService> service, std::optional<SocketLock> socket_lock,
         std::string listen, absl::Status sharing, const OpenFilesNeed& need);
  Acceptor& AcceptorFor(std::optional<uid_t> user) const;

  std::string name() const override;
  bool draining() const override { return service_->draining(); }
  std::vector<MetricFamily> Metrics() const override;
  SlowStepLists SlowSteps(const Permissions& permissions) const override {
    return service_->ReadSlowSteps(permissions);
  }
  StreamSnapshots Streams(const Permissions& permissions) const override {
    return service_->ReadStreams(permissions);
  }
  std::shared_ptr<const PictureSheet> Pictures() const override {
    return service_->pictures().Look();
  }

  // Declared first, so that it is destroyed last, after the listener and the slots have removed
  // their socket files.
  const std::optional<SocketLock> socket_lock_;
  const std::unique_ptr<FeedService> service_;
  std::shared_ptr<CallMetrics> calls_;
  std::unique_ptr<ReflectionService> reflection_;
  std::unique_ptr<HealthService> health_;
  const absl::Status sharing_;
  OpenFilesNeed need_;
  absl::Status open_files_;
  std::string address_;
  int port_ = 0;
  std::vector<std::shared_ptr<grpc::ServerCredentials>> credentials_;  // Must outlive `server_`.
  std::unique_ptr<grpc::Server> server_;
  // Acceptors hand connections to gRPC. Each user with an identity has an acceptor of its own.
  // `acceptor_` is for all other connections.
  std::map<uid_t, std::unique_ptr<Acceptor>> acceptors_by_user_;
  std::unique_ptr<Acceptor> acceptor_;
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<WorkerPool> shutdown_thread_;  // For Drain(). The thread uses the fields above.
  std::unique_ptr<AdminPort> admin_;             // Last: its thread uses the fields above.
};

}  // namespace systole

#endif  // SYSTOLE_SERVER_SERVER_H_
