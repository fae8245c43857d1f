#include "client/servers/server_link.h"

#include <chrono>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "client/servers/server_answer.h"
#include "client/servers/socket_observer.h"
#include "core/status/status_macros.h"
#include "core/text/web_address.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/support/channel_arguments.h"
#include "proto/framing/chunk.h"
#include "proto/framing/status_bridge.h"
#include "proto/slots/slot_socket.h"

namespace systole {
namespace {

constexpr absl::string_view kUnixPrefix = "unix:";
constexpr absl::string_view kXdsPrefix = "xds:///";
constexpr char kResolveMethod[] = "/systole.v1.Systole/ResolveFeed";

std::string LimitOf(absl::string_view method, int answer_bytes) {
  return absl::StrCat(R"({"name":[{"service":"systole.v1.Systole","method":")", method,
                      R"("}],"maxResponseMessageBytes":)", answer_bytes, "}");
}

// Limits the size of the answers of two methods. For all other calls the channel's limit holds.
std::string ServiceConfig() {
  return absl::StrCat(R"({"methodConfig":[)", LimitOf("ResolveFeed", kMaxFeedAnswerBytes), ",",
                      LimitOf("ReportTrainer", kMaxReportAnswerBytes), "]}");
}

grpc::ChannelArguments ChannelArgs(const std::string& server_name,
                                   const std::shared_ptr<ReceiveMeter>& meter) {
  grpc::ChannelArguments args;
  // receive_meter.h bounds how much a server can make us buffer, but not the inflated size of a
  // compressed message. So no message is inflated: a call with a compressed message is refused.
  ObserveSockets(args, [meter](int fd) { meter->AddSocket(fd); });
  args.SetInt(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  args.SetInt(GRPC_COMPRESSION_CHANNEL_ENABLED_ALGORITHMS_BITSET, 1 << GRPC_COMPRESS_NONE);
  if (!server_name.empty()) args.SetSslTargetNameOverride(server_name);
  args.SetMaxReceiveMessageSize(kMaxChunkMessageBytes);
  args.SetServiceConfigJSON(ServiceConfig());
  // The receiver announces how large frames may be. The default, 16 KiB, costs a third of the rate.
  args.SetInt(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, 4 << 20);
  // Without this, all channels to one address would share a socket, and fail together.
  args.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  // Pings find a host that has vanished. While data flow, pings are rare enough for every server.
  // Our server also allows them while no data flow.
  args.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 60'000);
  args.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 20'000);
  args.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // The schedule decides when to try again (client/schedule), so gRPC's own pauses are short. In a
  // pause (by default 1 s to 2 min) gRPC fails calls without trying to reach the server.
  // MIN_RECONNECT_BACKOFF is, in spite of its name, the time limit of one connection attempt.
  args.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
  args.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 5'000);
  args.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1'000);
  // gRPC never repeats a stream that has begun, and this client repeats all other calls by itself.
  args.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  // $http_proxy is for the web; a feed does not go through it.
  args.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  return args;
}

// The address for gRPC. Without "dns:///", gRPC would take the "host" of "host:1" for a scheme.
std::string Target(const std::string& address) {
  return absl::StartsWith(address, kUnixPrefix) || absl::StartsWith(address, kXdsPrefix)
             ? address
             : absl::StrCat("dns:///", address);
}

absl::StatusOr<std::unique_ptr<SlotReader>> ConnectSlots(absl::string_view address) {
  SYSTOLE_ASSIGN_OR_RETURN(const std::string path, SlotSocketPath(address));
  return SlotReader::Connect(path);
}

}  // namespace

absl::Status CheckServerAddress(absl::string_view address) {
  if (absl::StartsWith(address, kUnixPrefix)) {
    if (address.size() > kUnixPrefix.size()) return absl::OkStatus();
  } else if (absl::StartsWith(address, kXdsPrefix)) {
    if (address.size() > kXdsPrefix.size()) return absl::OkStatus();
  } else {
    const size_t colon = address.rfind(':');
    int port = 0;
    if (colon != absl::string_view::npos && colon > 0 &&
        address.find_first_of("/, \t\n") == absl::string_view::npos &&
        absl::SimpleAtoi(address.substr(colon + 1), &port) && port > 0 && port < 65536) {
      return absl::OkStatus();
    }
  }
  // A person may have given the address of shards, which may hold secrets, instead of a server's.
  const std::string shown = MayHoldSecrets(address) ? ShownAddress(address) : std::string(address);
  return absl::InvalidArgumentError(absl::StrCat("server address '", shown,
                                                 "': want HOST:PORT or unix:PATH, such as "
                                                 "127.0.0.1:8470"));
}

std::optional<absl::Duration> PushbackOf(const grpc::ClientContext& context) {
  const auto& trailing = context.GetServerTrailingMetadata();
  const auto found = trailing.find("grpc-retry-pushback-ms");
  int32_t milliseconds = 0;
  if (found == trailing.end() ||
      !absl::SimpleAtoi(absl::string_view(found->second.data(), found->second.size()),
                        &milliseconds) ||
      milliseconds < 0) {  // Below 0 means: do not try again. Treated as no pushback.
    return std::nullopt;
  }
  return absl::Milliseconds(milliseconds);
}

ServerLink::ServerLink(std::string address, std::shared_ptr<const ChannelSecurity> security,
                       ReceiveWatch& watch, bool share_memory, TraceHeaders trace)
    : address_(std::move(address)),
      security_(std::move(security)),
      meter_(std::make_shared<ReceiveMeter>()),
      trace_(std::move(trace)),
      share_memory_(share_memory),
      not_shared_(
          share_memory ? "" : "shared memory is switched off at this client (--no-shared-memory)") {
  watch.Add(meter_);
}

std::shared_ptr<grpc::Channel> ServerLink::channel() {
  std::shared_ptr<grpc::ChannelCredentials> credentials = security_->ChannelCredentials();
  // Destroyed after the lock is released, because its destructor waits for callbacks.
  std::shared_ptr<grpc::Channel> last;
  MutexLock lock(mu_);
  if (credentials != credentials_) {
    credentials_ = std::move(credentials);
    last = std::exchange(channel_,
                         grpc::CreateCustomChannel(Target(address_), credentials_,
                                                   ChannelArgs(security_->server_name(), meter_)));
  }
  return channel_;
}

std::unique_ptr<SlotReader> ServerLink::OpenSlots() {
  MutexLock lock(mu_);
  if (!share_memory_) return nullptr;
  absl::StatusOr<std::unique_ptr<SlotReader>> slots = ConnectSlots(address_);
  not_shared_ = std::string(slots.status().message());
  return slots.ok() ? *std::move(slots) : nullptr;
}

void ServerLink::StopSharing(absl::string_view why) {
  MutexLock lock(mu_);
  share_memory_ = false;
  not_shared_ = std::string(why);
}

std::string ServerLink::not_shared() const {
  MutexLock lock(mu_);
  return not_shared_;
}

bool ServerLink::is_same_host() const { return absl::StartsWith(address_, kUnixPrefix); }

ResolveCall::ResolveCall(ServerLink& link, const v1::FeedSpec& spec, bool compact,
                         absl::Duration timeout, std::function<void(absl::Status)> done)
    : link_(link), done_(std::move(done)) {
  v1::ResolveFeedRequest request;
  *request.mutable_spec() = spec;
  request.set_compact(compact);
  request_ = EncodeGuarded(request);
  context_.AddMetadata(kMessageChecksumKey, request_.checksum);
  context_.set_deadline(std::chrono::system_clock::now() + absl::ToChronoMicroseconds(timeout));
}

void ResolveCall::Start() {
  link_.AddToken(context_);
  link_.AddTrace(context_);
  metered_.emplace(link_.meter(), kMaxFeedAnswerBytes);
  grpc::GenericStub stub(link_.channel());
  stub.UnaryCall(&context_, kResolveMethod, grpc::StubOptions(), &request_.bytes, &response_bytes_,
                 [this](grpc::Status status) { done_(TakeAnswer(status)); });
}

absl::Status ResolveCall::TakeAnswer(const grpc::Status& status) {
  SYSTOLE_RETURN_IF_ERROR(metered_->End(FromGrpcStatus(status)));
  const absl::Status read =
      DecodeGuarded(response_bytes_, context_.GetServerInitialMetadata(), response_);
  if (read.ok()) return read;
  answer_damaged_ = absl::IsDataLoss(read);
  return absl::Status(answer_damaged_ ? absl::StatusCode::kDataLoss : absl::StatusCode::kInternal,
                      absl::StrCat("the answer to ResolveFeed cannot be read: ", read.message()));
}

}  // namespace systole
