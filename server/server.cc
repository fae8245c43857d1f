#include "server/server.h"

#include <grpc/grpc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/concurrency/mutex.h"
#include "core/concurrency/worker_pool.h"
#include "core/memory/sealed_memory.h"
#include "core/status/status_macros.h"
#include "core/storage/byte_source.h"
#include "core/text/foreign_text.h"
#include "core/text/loopback_host.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server_builder.h"
#include "proto/framing/guarded_message.h"
#include "proto/slots/slot_socket.h"
#include "server/config/config_flags.h"
#include "server/config/shown_config.h"
#include "server/listener/listen_address.h"
#include "server/listener/listening_sockets.h"
#include "server/listener/open_calls.h"
#include "server/listener/tls_credentials.h"
#include "server/listener/tls_files.h"
#include "server/listener/user_credentials.h"
#include "server/open_files.h"

namespace systole {
namespace {

// How many calls a connection may have open, and how many bytes of metadata each call may have.
// Together these two numbers limit the memory that a peer can make this server hold.
constexpr int kMaxStreamsPerConnection = 64;
constexpr int kMaxMetadataBytes = 16 << 10;

// gRPC pings a silent client after kKeepaliveMs, and drops the client if no answer comes within
// kKeepaliveTimeoutMs. This timeout is also ListenerOptions::silence_timeout: the kernel drops a
// client whose window stays closed for so long. The timeout is long, because the window of a
// trainer also stays closed during a long evaluation, or while the trainer is in a debugger.
constexpr int kKeepaliveMs = 60'000;
constexpr int kKeepaliveTimeoutMs = 180'000;

// If every client reads, Shutdown() returns at most this long after its deadline.
constexpr absl::Duration kShutdownGrace = absl::Milliseconds(200);

// A duration as gRPC's arguments take it, in milliseconds: at least 1.
int Milliseconds(absl::Duration duration) {
  return static_cast<int>(
      std::clamp<int64_t>(absl::ToInt64Milliseconds(duration), 1, std::numeric_limits<int>::max()));
}

bool IsUnix(absl::string_view listen) { return absl::StartsWith(listen, "unix:"); }

// The slot server of `config`. If there is none, the error says why.
absl::StatusOr<std::unique_ptr<SlotServer>> ListenForSlots(const v1::ServerConfig& config,
                                                           const FeedServiceOptions& service) {
  if (!config.shared_memory()) {
    return absl::CancelledError("sharing is switched off (--no-shared-memory)");
  }
  SYSTOLE_ASSIGN_OR_RETURN(const std::string path, SlotSocketPath(config.listen()));
  // Checks once whether the system has sealed memory. Otherwise the engine would find out for each
  // slice anew, under its lock.
  SYSTOLE_RETURN_IF_ERROR(SealedMemory::Create(1).status());
  // Clients may give slices back slowly. So they may hold only half of the memory that the engine
  // has for slices.
  return SlotServer::Listen(path, {.max_sessions = service.max_streams,
                                   .max_lent_bytes = service.engine.memory_budget_bytes / 2,
                                   .clock = service.clock});
}

absl::StatusOr<TlsOptions> TlsOf(const v1::ServerConfig& config) {
  TlsOptions tls = {.certificate = config.tls().certificate(),
                    .key = config.tls().key(),
                    .client_ca = config.tls().client_ca()};
  if (tls.on() || !config.has_tls()) return tls;
  return absl::InvalidArgumentError(
      "`tls` in the config file is empty: give it certificate and key, or leave it out");
}

// How many files this process may open; 0 if the limit is not known.
uint64_t OpenFilesLimit() {
  rlimit open_files = {};
  return ::getrlimit(RLIMIT_NOFILE, &open_files) == 0 ? open_files.rlim_cur : 0;
}

// `options` with no more slots than this process's descriptors allow.
FeedServiceOptions BoundedSlots(FeedServiceOptions options) {
  options.engine.max_sealed_slices =
      std::min(options.engine.max_sealed_slices, MaxSlotsFor(OpenFilesLimit()));
  return options;
}

absl::StatusOr<ListeningSockets> Listen(const std::string& listen, const HostAndPort& where,
                                        OwnedFd passed) {
  if (passed.ok()) {
    ListeningSockets sockets;
    sockets.fds.push_back(std::move(passed));
    return sockets;
  }
  if (!IsUnix(listen)) return ListenAt("--listen", listen, where);
  SYSTOLE_ASSIGN_OR_RETURN(const std::string path, UnixSocketPath(listen));
  absl::StatusOr<ListeningSockets> sockets = ListenOnUnix(path);
  if (sockets.ok()) return sockets;
  return absl::UnavailableError(
      absl::StrCat("cannot listen on '", ForeignName(listen),
                   "': look at the folder's permissions and the length of the path (",
                   sockets.status().message(), ")"));
}

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> ListeningCredentials(const TlsOptions& tls,
                                                                              EventLog* events) {
  if (!tls.on()) return grpc::InsecureServerCredentials();
  SYSTOLE_ASSIGN_OR_RETURN(std::unique_ptr<TlsFiles> files,
                           TlsFiles::Open(tls, [events](absl::string_view text, bool good) {
                             if (events == nullptr) return;
                             events->Add(LogCause::kConnections,
                                         good ? LogLevel::kInfo : LogLevel::kError, text);
                           }));
  return TlsCredentialsOver(std::move(files));
}

// Why the admin port shows no pictures. Empty: the port shows a dataset's pictures to those who may
// read the dataset.
std::string NoPictures(const v1::ServerConfig& config, bool has_access) {
  if (!config.admin_pictures()) return "Pictures are switched off (--no-admin-pictures).";
  if (has_access) return "";
  constexpr char kWhere[] =
      "this page does not know who its viewer is. Add a block `access` to the config.";
  if (IsUnix(config.listen())) {
    return absl::StrCat(
        "There are no pictures: the mode of the Unix socket says who may read the datasets, and ",
        kWhere);
  }
  // If one of the addresses is not valid, the server ends when it opens the address.
  const auto host = [](const std::string& address) {
    return address.substr(0, address.rfind(':'));
  };
  const std::string listen = host(config.listen());
  const std::string admin = host(config.admin());
  if (IsLoopbackHost(admin) || admin == listen || listen == "0.0.0.0" || listen == "[::]")
    return "";
  return absl::StrCat(
      "There are no pictures: this port may be reachable from hosts that cannot reach the "
      "datasets, "
      "and ",
      kWhere);
}

// How many shards take a descriptor all the time: those that are files of this machine. A shard on
// another server takes a descriptor only while it is read.
int64_t CountOpenShards(const Catalogue& catalogue) {
  int64_t shards = 0;
  for (const auto& [name, dataset] : catalogue.datasets()) {
    shards += std::count_if(dataset->shards().begin(), dataset->shards().end(),
                            [](const auto& shard) { return !IsOnServer(shard->path()); });
  }
  return shards;
}

}  // namespace

Server::Server(std::unique_ptr<FeedService> service, std::optional<SocketLock> socket_lock,
               std::string listen, absl::Status sharing, const OpenFilesNeed& need)
    : socket_lock_(std::move(socket_lock)),
      service_(std::move(service)),
      sharing_(std::move(sharing)),
      need_(need),
      open_files_(CheckOpenFiles(need, OpenFilesLimit())),
      address_(std::move(listen)) {}

absl::StatusOr<std::unique_ptr<AdminPort>> Server::OpenAdmin(const v1::ServerConfig& given,
                                                             std::shared_ptr<AccessControl> access,
                                                             EventLog* events) {
  SYSTOLE_ASSIGN_OR_RETURN(const v1::ServerConfig config, CompleteConfig(given));
  if (config.admin().empty()) return nullptr;
  AdminOptions options;
  SYSTOLE_ASSIGN_OR_RETURN(options.tls, TlsOf(config));
  options.listen = config.admin();
  options.insecure = config.insecure();
  options.access = std::move(access);
  options.config_text = ShownConfig(config);
  options.events = events;
  options.no_pictures = NoPictures(config, options.access != nullptr);
  return AdminPort::Open(std::move(options));
}

absl::StatusOr<std::unique_ptr<Server>> Server::Start(Catalogue catalogue,
                                                      const v1::ServerConfig& given,
                                                      const FeedServiceOptions& service,
                                                      std::unique_ptr<AdminPort> admin,
                                                      OwnedFd passed) {
  SYSTOLE_ASSIGN_OR_RETURN(const v1::ServerConfig config, CompleteConfig(given));
  SYSTOLE_ASSIGN_OR_RETURN(const TlsOptions tls, TlsOf(config));
  // grpc_shutdown() is never called, because it may wait for 10 s (README.md).
  grpc_init();
  HostAndPort where;
  std::optional<SocketLock> socket_lock;
  if (passed.ok()) {
    // Needs no lock: the service manager keeps other servers off its socket.
  } else if (IsUnix(config.listen())) {
    SYSTOLE_ASSIGN_OR_RETURN(const std::string path, UnixSocketPath(config.listen()));
    SYSTOLE_ASSIGN_OR_RETURN(SocketLock taken, SocketLock::Take(path));
    socket_lock.emplace(std::move(taken));
  } else {
    SYSTOLE_ASSIGN_OR_RETURN(where,
                             HostAndPortOf("--listen", config.listen(),
                                           "HOST:PORT, such as 127.0.0.1:8470, or unix:PATH"));
    SYSTOLE_RETURN_IF_ERROR(CheckReach(config.listen(), where.host, tls.on(), config.insecure()));
  }
  EventLog* const events = service.events;
  SYSTOLE_ASSIGN_OR_RETURN(std::shared_ptr<grpc::ServerCredentials> credentials,
                           ListeningCredentials(tls, events));
  SYSTOLE_ASSIGN_OR_RETURN(ListeningSockets listeners,
                           Listen(config.listen(), where, std::move(passed)));
  const int port = listeners.port;

  absl::StatusOr<std::unique_ptr<SlotServer>> slots = ListenForSlots(config, service);
  const absl::Status sharing = slots.status();
  OpenFilesNeed need = {.shards = CountOpenShards(catalogue), .shares = sharing.ok()};
  const int64_t max_connections = config.max_connections() > 0
                                      ? config.max_connections()
                                      : MaxConnectionsFor(need, OpenFilesLimit());
  need.connections = std::max<int64_t>(max_connections, service.max_streams);
  auto server = absl::WrapUnique(
      new Server(std::make_unique<FeedService>(std::move(catalogue), BoundedSlots(service),
                                               sharing.ok() ? *std::move(slots) : nullptr),
                 std::move(socket_lock), config.listen(), sharing, need));
  grpc::ServerBuilder builder;
  const auto accept = [&](std::shared_ptr<grpc::ServerCredentials> with) {
    server->credentials_.push_back(with);
    return builder.experimental().AddExternalConnectionAcceptor(
        grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD, std::move(with));
  };
  server->acceptor_ = accept(std::move(credentials));
  if (IsUnix(config.listen()) && !tls.on() && service.access != nullptr) {
    for (const uid_t user : service.access->policy()->unix_users()) {
      server->acceptors_by_user_[user] = accept(CredentialsOfUser(user));
    }
  }
  builder.RegisterService(server->service_.get());
  server->reflection_ = std::make_unique<ReflectionService>(
      service.access, server->service_->refusals(), service.clock);
  builder.RegisterService(server->reflection_.get());
  server->health_ =
      std::make_unique<HealthService>(service.access, server->service_->refusals(), service.clock);
  builder.RegisterService(server->health_.get());
  builder.SetMaxReceiveMessageSize(kMaxRequestBytes);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxStreamsPerConnection);
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, kMaxMetadataBytes);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  // gRPC must not refuse pings: gRPC 1.51 takes 3 KiB of memory for each byte of a ping that it
  // refuses. The listener limits pings instead.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
  const absl::Duration handshake_timeout = TimeOf(config.handshake_timeout());
  const absl::Duration idle_timeout = TimeOf(config.idle_timeout());
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, Milliseconds(handshake_timeout));
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, Milliseconds(idle_timeout));
  const auto calls = std::make_shared<OpenCalls>(service.clock);
  std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>> interceptors;
  interceptors.push_back(CallCounter(calls));
  server->calls_ =
      std::make_shared<CallMetrics>(server->reflection_->schema().methods(), service.clock);
  interceptors.push_back(CallTimer(server->calls_));
  builder.experimental().SetInterceptorCreators(std::move(interceptors));
  server->server_ = builder.BuildAndStart();
  if (server->server_ == nullptr) return absl::InternalError("gRPC does not start its server");
  SYSTOLE_ASSIGN_OR_RETURN(
      server->listener_,
      Listener::Open(std::move(listeners),
                     {.max_connections = max_connections,
                      .max_connections_per_peer = config.max_connections_per_peer() > 0
                                                      ? config.max_connections_per_peer()
                                                      : std::max<int64_t>(1, max_connections / 2),
                      .silence_timeout = absl::Milliseconds(kKeepaliveTimeoutMs),
                      .calls = calls,
                      // Longer than gRPC's idle timeout. So gRPC is the first to end an idle
                      // connection, and it tells the client (GOAWAY).
                      .call_timeout = idle_timeout + handshake_timeout,
                      .tls = tls.on(),
                      .clock = service.clock,
                      .turned_away =
                          [events](absl::string_view peer, absl::string_view why) {
                            if (events == nullptr) return;
                            events->Add(LogCause::kConnections, LogLevel::kWarn, why,
                                        {.client = std::string(peer)});
                          }},
                     [server = server.get()](int connection, std::optional<uid_t> user) {
                       Acceptor::NewConnectionParameters parameters;
                       parameters.fd = connection;
                       server->AcceptorFor(user).HandleNewConnection(&parameters);
                     }));
  server->service_->TellOfConnections(*server->listener_);
  if (!IsUnix(config.listen())) {
    server->port_ = port;
    server->address_ = absl::StrCat(where.host, ":", port);
  }
  if (admin != nullptr) admin->Serve(*server);
  server->admin_ = std::move(admin);
  return server;
}

void Server::Change(absl::Span<const std::string> removed, const Catalogue& added) {
  service_->Change(removed, added);
  need_.shards = CountOpenShards(*catalogue());
  open_files_ = CheckOpenFiles(need_, OpenFilesLimit());
}

void Server::ShowConfig(const v1::ServerConfig& in_force) {
  if (admin_ != nullptr) admin_->ShowConfig(ShownConfig(in_force));
}

Server::Acceptor& Server::AcceptorFor(std::optional<uid_t> user) const {
  const auto known = user.has_value() ? acceptors_by_user_.find(*user) : acceptors_by_user_.end();
  return known == acceptors_by_user_.end() ? *acceptor_ : *known->second;
}

std::string Server::name() const {
  char host[256] = {};
  if (::gethostname(host, sizeof(host) - 1) != 0) return address_;
  return absl::StrCat(address_, " on ", host);
}

std::vector<MetricFamily> Server::Metrics() const {
  std::vector<MetricFamily> families = service_->ReadFamilies();
  for (MetricFamily& family : calls_->Read()) families.push_back(std::move(family));
  return families;
}

Server::~Server() {
  if (server_ == nullptr) return;
  if (shutdown_thread_ == nullptr) Drain(kShutdownGrace);
  // Drain() has called Shutdown() on shutdown_thread_, and ~WorkerPool() waits for this call.
}

bool Server::Drain(absl::Duration timeout) {
  struct Progress {
    Mutex mu;
    CondVar changed;
    bool done ABSL_GUARDED_BY(mu) = false;
  };
  // gRPC would neither serve nor close a connection that comes after Shutdown().
  if (listener_ != nullptr) listener_->StopListening();
  health_->StartDraining();
  service_->StartDraining();
  reflection_->StartDraining();
  // If a client does not read, Shutdown() does not return even after its deadline. So Shutdown()
  // runs on a thread of its own.
  const auto progress = std::make_shared<Progress>();
  shutdown_thread_ = std::make_unique<WorkerPool>(1);
  const absl::Time deadline = absl::Now() + timeout;
  shutdown_thread_->Submit([this, progress, deadline] {
    server_->Shutdown(absl::ToChronoTime(deadline - kShutdownGrace));
    server_->Wait();
    MutexLock lock(progress->mu);
    progress->done = true;
    progress->changed.Signal();
  });
  MutexLock lock(progress->mu);
  while (!progress->done && absl::Now() < deadline) {
    progress->changed.WaitFor(progress->mu, deadline - absl::Now());
  }
  if (!progress->done && listener_ != nullptr) listener_->HangUp();
  return progress->done;
}

}  // namespace systole
