#include "server/admin/http_server.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <list>
#include <optional>

#include "absl/strings/str_cat.h"
#include "boost/asio/io_context.hpp"
#include "boost/asio/ip/tcp.hpp"
#include "boost/asio/socket_base.hpp"
#include "boost/asio/ssl/context.hpp"
#include "boost/asio/ssl/stream.hpp"
#include "boost/asio/steady_timer.hpp"
#include "boost/asio/write.hpp"
#include "boost/beast/core/error.hpp"
#include "boost/beast/core/tcp_stream.hpp"
#include "core/concurrency/worker_pool.h"
#include "core/status/check.h"
#include "core/status/status_macros.h"
#include "server/listener/tls_context.h"

namespace systole {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
using boost::system::error_code;
using tcp = asio::ip::tcp;

// After accept() has failed, most likely for lack of descriptors, the server tries again after this
// time.
constexpr std::chrono::milliseconds kAcceptAgain(100);

// How long a peer has to answer the end of TLS.
constexpr std::chrono::seconds kFarewell(1);

// How many bytes of a stream of events the kernel keeps. By default it would keep megabytes, and
// the server would need an hour to notice a peer that does not read.
constexpr int kEventBufferBytes = 64 << 10;

std::string PeerOf(const tcp::socket& socket) {
  error_code error;
  const tcp::endpoint peer = socket.remote_endpoint(error);
  if (error) return "";
  const std::string address = peer.address().to_string(error);
  return peer.address().is_v6() ? absl::StrCat("ipv6:%5B", address, "%5D:", peer.port())
                                : absl::StrCat("ipv4:", address, ":", peer.port());
}

}  // namespace

// Only the server's one thread uses the members, except for the counters.
class HttpServer::Connections {
 public:
  Connections(HttpServerOptions options, Handler handler)
      : options_(std::move(options)), handler_(std::move(handler)) {}
  ~Connections() {
    io_.stop();
    thread_.reset();  // Waits for the thread.
  }

  absl::Status Listen(ListeningSockets sockets) {
    SYSTOLE_RETURN_IF_ERROR(TakeTlsFiles());
    for (const OwnedFd& fd : sockets.fds) {
      sockaddr_storage address = {};
      socklen_t length = sizeof(address);
      ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &length);
      error_code error;
      Door& door = doors_.emplace_back(io_);
      // The acceptor gets a copy of the descriptor, and closes this copy later.
      door.acceptor.assign(address.ss_family == AF_INET6 ? tcp::v6() : tcp::v4(),
                           ::fcntl(fd.get(), F_DUPFD_CLOEXEC, 0), error);
      if (error) return absl::InternalError(absl::StrCat("asio: ", error.message()));
      Accept(door);
    }
    thread_ = std::make_unique<WorkerPool>(1);
    thread_->Submit([this] { io_.run(); });
    return absl::OkStatus();
  }

  HttpCounters counters() const {
    return {.open = open_,
            .event_streams = event_streams_,
            .accepted = accepted_,
            .refused = refused_,
            .displaced = displaced_,
            .late = late_,
            .bad = bad_};
  }

 private:
  class Connection;
  using OpenConnections = std::list<Connection*>;

  // A socket that listens.
  struct Door {
    explicit Door(asio::io_context& io) : acceptor(io), again(io) {}
    tcp::acceptor acceptor;
    asio::steady_timer again;
  };

  absl::Status TakeTlsFiles();
  void Accept(Door& door);
  void Admit(tcp::socket socket);

  HttpServerOptions options_;
  const Handler handler_;
  std::atomic<int64_t> open_ = 0;
  std::atomic<int64_t> event_streams_ = 0;
  std::atomic<int64_t> accepted_ = 0;
  std::atomic<int64_t> refused_ = 0;
  std::atomic<int64_t> displaced_ = 0;
  std::atomic<int64_t> late_ = 0;
  std::atomic<int64_t> bad_ = 0;
  OpenConnections connections_;  // Oldest first.
  std::optional<asio::ssl::context> tls_;
  // The operations of `io_` own the connections, which use the members above. So `io_` must be
  // destroyed before these members.
  asio::io_context io_{1};
  std::list<Door> doors_;
  std::unique_ptr<WorkerPool> thread_;
};

// Lives as long as one of its operations is under way.
class HttpServer::Connections::Connection
    : public std::enable_shared_from_this<HttpServer::Connections::Connection> {
 public:
  Connection(Connections& all, tcp::socket socket, asio::ssl::context* tls)
      : all_(all),
        peer_(PeerOf(socket)),
        since_(all.options_.clock()),
        tcp_(std::move(socket)),
        place_(all.connections_.insert(all.connections_.end(), this)),
        reader_(all.options_.only_loopback_names),
        until_event_(all.io_) {
    if (tls != nullptr) tls_.emplace(tcp_, *tls);
    ++all_.open_;
  }
  ~Connection() { FreePlace(); }

  absl::Duration age() const { return all_.options_.clock() - since_; }
  bool streams_events() const { return next_event_ != nullptr; }

  void Begin() {
    tcp_.expires_after(absl::ToChronoNanoseconds(all_.options_.request_time));
    if (!tls_.has_value()) return Read();
    tls_->async_handshake(asio::ssl::stream_base::server,
                          [self = shared_from_this()](const error_code& error) {
                            if (error) return self->Lost(error);
                            self->Read();
                          });
  }

  // Ends the connection at once.
  void Close() {
    FreePlace();
    until_event_.cancel();
    tcp_.close();
  }

 private:
  template <typename Action>
  void WithStream(Action action) {
    if (tls_.has_value()) {
      action(*tls_);
    } else {
      action(tcp_);
    }
  }

  void FreePlace() {
    if (!place_.has_value()) return;
    all_.connections_.erase(*place_);
    place_.reset();
    --all_.open_;
    if (streams_events()) --all_.event_streams_;
  }

  void Read() {
    WithStream([this](auto& stream) {
      stream.async_read_some(asio::buffer(buffer_),
                             [self = shared_from_this()](const error_code& error, size_t bytes) {
                               if (error) return self->Lost(error);
                               if (!self->reader_.Take({self->buffer_.data(), bytes}))
                                 return self->Read();
                               self->Answer();
                             });
    });
  }

  void Answer() {
    if (reader_.refusal().has_value()) {
      ++all_.bad_;
      return Write(*reader_.refusal());
    }
    PageRequest request = reader_.request();
    request.peer = peer_;
    request.may_have_events = all_.event_streams_ < all_.options_.max_event_streams;
    if (tls_.has_value()) request.certificate_names = CertificateNames(tls_->native_handle());
    PageAnswer answer = all_.handler_(request);
    if (answer.next_event == nullptr || reader_.is_head()) return Write(answer);
    SYSTOLE_CHECK(request.may_have_events);
    BeginEvents(std::move(answer));
  }

  void Write(const PageAnswer& answer) {
    answer_ = BytesOf(answer, reader_.is_head());
    tcp_.expires_after(absl::ToChronoNanoseconds(all_.options_.answer_time));
    WithStream([this](auto& stream) {
      asio::async_write(stream, asio::buffer(answer_),
                        [self = shared_from_this()](const error_code& error, size_t) {
                          if (error) return self->Lost(error);
                          self->End();
                        });
    });
  }

  void BeginEvents(PageAnswer answer) {
    std::string begin = BytesOf(answer, /*is_head=*/false);
    next_event_ = std::move(answer.next_event);
    ++all_.event_streams_;
    error_code ignored;
    tcp_.socket().set_option(asio::socket_base::send_buffer_size(kEventBufferBytes), ignored);
    // This read ends only when the peer goes or sends more than its request. In both cases the
    // connection is closed.
    tcp_.expires_never();
    WithStream([this](auto& stream) {
      stream.async_read_some(
          asio::buffer(buffer_),
          [self = shared_from_this()](const error_code&, size_t) { self->Close(); });
    });
    WriteEvent(std::move(begin));
  }

  // Only one event is made and kept at a time. The next event is made after the last byte of this
  // event was written.
  void WriteEvent(std::string bytes) {
    answer_ = std::move(bytes);
    // Sets the limit of the write only: the read that is under way keeps its own limit.
    tcp_.expires_after(absl::ToChronoNanoseconds(all_.options_.answer_time));
    WithStream([this](auto& stream) {
      asio::async_write(stream, asio::buffer(answer_),
                        [self = shared_from_this()](const error_code& error, size_t) {
                          if (error) {
                            self->Lost(error);
                            return self->Close();
                          }
                          self->AwaitEvent();
                        });
    });
  }

  void AwaitEvent() {
    if (!place_.has_value()) return;  // The connection was closed meanwhile.
    until_event_.expires_after(absl::ToChronoNanoseconds(all_.options_.event_interval));
    until_event_.async_wait([self = shared_from_this()](const error_code& cancelled) {
      if (cancelled || !self->place_.has_value()) return;
      std::optional<std::string> event = self->next_event_();
      if (!event.has_value()) return self->Close();
      self->WriteEvent(*std::move(event));
    });
  }

  // Called after the answer was sent. Tells the peer that nothing follows.
  void End() {
    error_code ignored;
    if (!tls_.has_value()) {
      tcp_.socket().shutdown(tcp::socket::shutdown_send, ignored);
      return;  // The destructor closes the connection.
    }
    tcp_.expires_after(kFarewell);
    tls_->async_shutdown([self = shared_from_this()](const error_code&) {});
  }

  void Lost(const error_code& error) {
    if (error == beast::error::timeout) {
      ++all_.late_;
    } else if (error.category() == asio::error::get_ssl_category()) {
      ++all_.bad_;
    }
  }

  Connections& all_;
  const std::string peer_;
  const absl::Duration since_;
  beast::tcp_stream tcp_;
  std::optional<asio::ssl::stream<beast::tcp_stream&>> tls_;
  std::optional<OpenConnections::iterator> place_;  // Nullopt: the connection has been closed.
  HttpRequestReader reader_;
  std::array<char, 4096> buffer_;
  std::string answer_;
  // Makes the next event; null: the answer is no stream of events.
  std::function<std::optional<std::string>()> next_event_;
  asio::steady_timer until_event_;
};

absl::Status HttpServer::Connections::TakeTlsFiles() {
  if (options_.tls == nullptr) return absl::OkStatus();
  const std::optional<TlsMaterial> material = options_.tls->TakeChange();
  if (!material.has_value()) return absl::OkStatus();
  SYSTOLE_ASSIGN_OR_RETURN(TlsContext context, MakeTlsContext(*material));
  tls_.emplace(context.release());
  return absl::OkStatus();
}

void HttpServer::Connections::Accept(Door& door) {
  door.acceptor.async_accept([this, &door](const error_code& error, tcp::socket socket) {
    if (!error) {
      Admit(std::move(socket));
      return Accept(door);
    }
    door.again.expires_after(kAcceptAgain);
    door.again.async_wait([this, &door](const error_code& stopped) {
      if (!stopped) Accept(door);
    });
  });
}

void HttpServer::Connections::Admit(tcp::socket socket) {
  if (open_ >= options_.max_connections) {
    const auto oldest =
        std::find_if(connections_.begin(), connections_.end(),
                     [](const Connection* connection) { return !connection->streams_events(); });
    if (oldest == connections_.end() || (*oldest)->age() < options_.patience) {
      ++refused_;
      return;  // Closes the socket.
    }
    ++displaced_;
    (*oldest)->Close();
  }
  ++accepted_;
  ::fcntl(socket.native_handle(), F_SETFD, FD_CLOEXEC);
  // If the TLS files have changed, but cannot be used, the previous files stay in use.
  TakeTlsFiles().IgnoreError();
  std::make_shared<Connection>(*this, std::move(socket), tls_.has_value() ? &*tls_ : nullptr)
      ->Begin();
}

HttpServer::HttpServer(std::unique_ptr<Connections> connections)
    : connections_(std::move(connections)) {}

HttpServer::~HttpServer() = default;

HttpCounters HttpServer::counters() const { return connections_->counters(); }

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(ListeningSockets sockets,
                                                              HttpServerOptions options,
                                                              Handler handler) {
  auto connections = std::make_unique<Connections>(std::move(options), std::move(handler));
  SYSTOLE_RETURN_IF_ERROR(connections->Listen(std::move(sockets)));
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(connections)));
}

}  // namespace systole
