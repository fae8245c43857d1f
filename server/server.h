// A running Systole server: the service behind a listening socket.
//
// Thread-compatible.
#ifndef SYSTOLE_SERVER_SERVER_H_
#define SYSTOLE_SERVER_SERVER_H_

#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/concurrency/worker_pool.h"
#include "grpcpp/server.h"
#include "server/catalogue.h"
#include "server/feed_service.h"
#include "server/socket_lock.h"

namespace systole {

struct ServerOptions {
  // "HOST:PORT" (port 0 = any) or "unix:PATH".
  std::string listen = "127.0.0.1:8470";
  // Allow an address that other machines can reach, though nothing is encrypted or authenticated.
  bool insecure = false;
  // On a Unix socket: share memory with clients of the same user, beside that socket
  // (server/README).
  bool share_memory = true;
  FeedServiceOptions service;
};

class Server {
 public:
  // Serves from the moment it returns.
  //   InvalidArgument  no valid address, or one that is not loopback without `insecure`.
  //   Unavailable      the address is taken or not this machine's.
  // and, for a Unix socket, the errors of SocketLock::Take().
  static absl::StatusOr<std::unique_ptr<Server>> Start(Catalogue catalogue,
                                                       const ServerOptions& options);
  // Ends every call at once, unless Drain() has been called.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // The port listened on; 0 for a Unix socket.
  int port() const { return port_; }
  // What a client on this machine would dial.
  const std::string& address() const { return address_; }

  // OK if clients on this machine get batches through shared memory; otherwise why not.
  const absl::Status& sharing() const { return sharing_; }

  // OK if this process may open as many files as it may come to need (server/open_files.h).
  const absl::Status& open_files() const { return open_files_; }

  // Health says NOT_SERVING, streams end with a notice at their next step, new ones are refused.
  // Returns true when all calls are over, or false after `timeout`. After a false some client has
  // stopped reading. The destructor then waits until the kernel gives that client up, so a program
  // that wants to end calls _Exit. Call it once.
  bool Drain(absl::Duration timeout);

 private:
  Server(std::unique_ptr<FeedService> service, std::optional<SocketLock> socket_lock,
         std::string listen, absl::Status sharing, absl::Status open_files);

  // First, so destroyed last: gRPC and the slots remove their socket files when they are destroyed.
  const std::optional<SocketLock> socket_lock_;
  const std::unique_ptr<FeedService> service_;
  const absl::Status sharing_;
  const absl::Status open_files_;
  std::string address_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<WorkerPool> shutdown_thread_;  // For Drain(). Last: it uses what is above.
};

}  // namespace systole

#endif  // SYSTOLE_SERVER_SERVER_H_
