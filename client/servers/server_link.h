// A connection to one server, shared with nothing else, and the call that asks the server what a
// spec yields.
//
// ServerLink is thread-safe. It must be destroyed on one of our own threads, never in a gRPC
// callback, because destroying the last reference to a channel waits for the threads that run
// callbacks.
#ifndef SYSTOLE_CLIENT_SERVERS_SERVER_LINK_H_
#define SYSTOLE_CLIENT_SERVERS_SERVER_LINK_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client/servers/receive_meter.h"
#include "client/servers/server_security.h"
#include "client/servers/slot_reader.h"
#include "client/servers/trace_headers.h"
#include "core/concurrency/mutex.h"
#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/support/byte_buffer.h"
#include "proto/framing/guarded_message.h"
#include "systole/v1/service.pb.h"

namespace systole {

// InvalidArgument unless `address` is "HOST:PORT", "unix:PATH" or "xds:///NAME".
absl::Status CheckServerAddress(absl::string_view address);

// The pause that the server wants before the next call, from the trailing metadata
// "grpc-retry-pushback-ms" of a call that has ended. Nullopt if the server gave no pause.
std::optional<absl::Duration> PushbackOf(const grpc::ClientContext& context);

class ServerLink {
 public:
  // Connects when first used. `watch` bounds what the server may send (receive_meter.h).
  // `share_memory`: read slices from the server's memory if possible. `trace` is for AddTrace().
  // REQUIRES: CheckServerAddress(address) is OK.
  ServerLink(std::string address, std::shared_ptr<const ChannelSecurity> security,
             ReceiveWatch& watch, bool share_memory = false, TraceHeaders trace = {});

  const std::string& address() const { return address_; }
  // Whether the address shows that the server is reached without a network.
  bool is_same_host() const;
  // The channel for a call that begins now. Reads the TLS files. If these have changed, the channel
  // is new, and running calls keep the old channel. Must not be called in a gRPC callback.
  std::shared_ptr<grpc::Channel> channel() ABSL_LOCKS_EXCLUDED(mu_);
  // The meter for the calls on this link's channels. Each call is a MeteredCall.
  const std::shared_ptr<ReceiveMeter>& meter() const { return meter_; }
  bool tls() const { return security_->tls(); }
  // Adds the access token to a call that has not begun. May read a file.
  void AddToken(grpc::ClientContext& context) const { security_->AddToken(address_, context); }

  // Adds the trace to a call that has not begun.
  void AddTrace(grpc::ClientContext& context) const { trace_.AddTo(context); }

  // A connection for the shared memory of one stream. Null if the stream has to come as bytes,
  // because the server is not on this machine, belongs to another user, or does not share its
  // memory, or because this client must not use shared memory (StopSharing(), or `share_memory`).
  std::unique_ptr<SlotReader> OpenSlots() ABSL_LOCKS_EXCLUDED(mu_);
  // From now on every stream comes as bytes. `why` is the reason.
  void StopSharing(absl::string_view why) ABSL_LOCKS_EXCLUDED(mu_);
  // Why the last OpenSlots() returned null; empty if it returned a connection.
  std::string not_shared() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  const std::string address_;
  const std::shared_ptr<const ChannelSecurity> security_;
  const std::shared_ptr<ReceiveMeter> meter_;
  const TraceHeaders trace_;
  mutable Mutex mu_;
  std::shared_ptr<grpc::ChannelCredentials> credentials_ ABSL_GUARDED_BY(mu_);
  std::shared_ptr<grpc::Channel> channel_ ABSL_GUARDED_BY(mu_);  // Made with credentials_.
  bool share_memory_ ABSL_GUARDED_BY(mu_);
  std::string not_shared_ ABSL_GUARDED_BY(mu_);
};

// One ResolveFeed call to one server. Thread-compatible; Cancel() may run while the call runs.
class ResolveCall {
 public:
  // `compact`: whether the client finishes tensors. `done` gets the answer's status on one of
  // gRPC's threads, once, after Start(). After `done` has begun, the ResolveCall may be destroyed,
  // but not by `done` itself.
  ResolveCall(ServerLink& link, const v1::FeedSpec& spec, bool compact, absl::Duration timeout,
              std::function<void(absl::Status)> done);

  void Start();
  // Makes `done` run soon, with Cancelled.
  void Cancel() { context_.TryCancel(); }
  // REQUIRES: `done` was called with OK.
  const v1::ResolveFeedResponse& response() const { return response_; }
  // Whether `done` got an error because the answer was damaged on the way.
  bool answer_damaged() const { return answer_damaged_; }
  // REQUIRES: `done` was called.
  std::optional<absl::Duration> pushback() const { return PushbackOf(context_); }

 private:
  absl::Status TakeAnswer(const grpc::Status& status);

  ServerLink& link_;
  const std::function<void(absl::Status)> done_;
  grpc::ClientContext context_;
  std::optional<MeteredCall> metered_;  // Set while the call runs.
  GuardedMessage request_;
  grpc::ByteBuffer response_bytes_;
  v1::ResolveFeedResponse response_;
  bool answer_damaged_ = false;
};

}  // namespace systole

#endif  // SYSTOLE_CLIENT_SERVERS_SERVER_LINK_H_
