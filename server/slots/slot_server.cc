#include "server/slots/slot_server.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "core/status/status_macros.h"
#include "proto/slots/slot_messages.h"

namespace systole {

int MaxSlotsFor(uint64_t open_files) {
  return static_cast<int>(std::min<uint64_t>(kMaxSlots, open_files / 4));
}

absl::StatusOr<std::unique_ptr<SlotServer>> SlotServer::Listen(const std::string& path,
                                                               const SlotServerOptions& options) {
  SYSTOLE_ASSIGN_OR_RETURN(std::unique_ptr<DescriptorPoller> poller, DescriptorPoller::Create());
  SYSTOLE_ASSIGN_OR_RETURN(SlotListener listener, SlotListener::Listen(path));
  auto server = absl::WrapUnique(new SlotServer(std::move(listener), std::move(poller), options));
  // The poller accepts connections even if no request for a stream comes. Otherwise they would fill
  // the socket's queue and keep other clients out. A connection stays in the queue only if no
  // descriptor is left for it. Only a new connection then makes the poller call the handler again.
  SYSTOLE_RETURN_IF_ERROR(server->poller_->Add(
      server->listener_.fd(),
      [&server = *server] {
        server.LetIn();
        return true;
      },
      CallWhen::kMoreComes));
  return server;
}

SlotServer::SlotServer(SlotListener listener, std::unique_ptr<DescriptorPoller> poller,
                       const SlotServerOptions& options)
    : options_(options),
      account_(std::make_shared<SlotAccount>()),
      listener_(std::move(listener)),
      poller_(std::move(poller)) {
  account_->max_lent_bytes = options.max_lent_bytes;
  account_->clock = options.clock;
}

SlotServer::~SlotServer() = default;

StreamSlots SlotServer::Claim(absl::string_view session) {
  MutexLock lock(mu_);
  const bool all_let_in = LetInLocked();
  for (auto guest = guests_.begin(); guest != guests_.end(); ++guest) {
    if (guest->session != session) continue;
    SlotSocket socket = std::move(guest->socket);
    guests_.erase(guest);
    if (account_->sessions >= options_.max_sessions) return {.not_shared = v1::NO_SESSION_LEFT};
    auto claimed = std::make_shared<SlotSession>(std::move(socket), account_);
    // The poller's thread notices that the client has gone even while a stream holds the session.
    if (!poller_->Add(claimed->fd(), [claimed] { return claimed->TakeMessage(); }).ok()) {
      return {.not_shared = v1::NO_SESSION_LEFT};
    }
    claimed_.remove_if([](const std::weak_ptr<SlotSession>& each) { return each.expired(); });
    claimed_.push_back(claimed);
    return {.session = std::move(claimed)};
  }
  return {.not_shared = all_let_in ? v1::SESSION_UNKNOWN : v1::NO_DESCRIPTOR_LEFT};
}

void SlotServer::LetIn() {
  MutexLock lock(mu_);
  LetInLocked();
}

void SlotServer::HangUpOnStalled(absl::Duration timeout) {
  std::vector<std::shared_ptr<SlotSession>> sessions;  // Hung up on when mu_ is free.
  {
    MutexLock lock(mu_);
    for (const std::weak_ptr<SlotSession>& each : claimed_) {
      if (std::shared_ptr<SlotSession> session = each.lock()) {
        sessions.push_back(std::move(session));
      }
    }
  }
  for (const std::shared_ptr<SlotSession>& session : sessions) session->HangUpIfStalled(timeout);
}

bool SlotServer::LetInLocked() {
  bool all_let_in = true;
  // Accepts at most kMaxGuests connections, so that a flood of connections cannot keep this caller
  // busy for good. An error means that no descriptor is left. The other clients then stay in the
  // socket's queue, and their streams carry bytes instead of slots.
  for (size_t i = 0; i < kMaxGuests; ++i) {
    absl::StatusOr<std::optional<SlotSocket>> accepted = listener_.Accept();
    all_let_in = accepted.ok();
    if (!accepted.ok() || !accepted->has_value()) break;
    guests_.push_back({.socket = **std::move(accepted)});
    if (guests_.size() > kMaxGuests) guests_.pop_front();
  }
  for (auto guest = guests_.begin(); guest != guests_.end();) {
    guest = Hear(*guest) ? std::next(guest) : guests_.erase(guest);
  }
  return all_let_in;
}

bool SlotServer::Hear(Guest& guest) {
  const absl::StatusOr<std::optional<SlotSocket::Packet>> packet = guest.socket.Receive();
  if (!packet.ok()) return false;
  if (!packet->has_value()) return true;
  // A guest sends one message, without a descriptor. Further messages return slots, and a guest
  // holds none.
  if (guest.session.has_value() || (*packet)->passed.ok()) return false;
  absl::StatusOr<std::string> session = ParseSlotHello((*packet)->message);
  if (!session.ok()) return false;
  guest.session = *std::move(session);
  return true;
}

}  // namespace systole
