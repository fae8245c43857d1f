#include "server/slots/slot_session.h"

#include <utility>

#include "core/status/check.h"
#include "proto/slots/slot_messages.h"

namespace systole {

SlotSession::SlotSession(SlotSocket socket, std::shared_ptr<SlotAccount> account)
    : socket_(std::move(socket)), account_(std::move(account)) {
  ++account_->sessions;
}

SlotSession::~SlotSession() {
  Close();
  --account_->sessions;
}

v1::NotShared SlotSession::Lend(const std::shared_ptr<const SealedMemory>& memory,
                                std::shared_ptr<const void> owner) {
  MutexLock lock(mu_);
  if (closed_) return v1::SESSION_OVER;
  const bool fits =
      account_->lent_bytes.fetch_add(memory->bytes()) + memory->bytes() <= account_->max_lent_bytes;
  const v1::NotShared not_shared = fits ? Offer(memory) : v1::NO_BUDGET_LEFT;
  if (not_shared != v1::NO_REASON) {
    account_->lent_bytes -= memory->bytes();
    return not_shared;
  }
  if (lent_.empty()) moved_at_ = account_->clock();
  const bool added =
      lent_.emplace(memory->id(), Lent{.owner = std::move(owner), .bytes = memory->bytes()}).second;
  SYSTOLE_CHECK(added);
  return v1::NO_REASON;
}

v1::NotShared SlotSession::Offer(const std::shared_ptr<const SealedMemory>& memory) {
  const bool is_new = offered_.count(memory->id()) == 0;
  SlotOffer offer;
  if (is_new) offer = {.slot = memory->id(), .bytes = memory->bytes()};
  for (const auto& [slot, offered] : offered_) {
    if (offered.expired() && offer.retired.size() < kMaxRetiredInOffer) {
      offer.retired.push_back(slot);
    }
  }
  if (!is_new && offer.retired.empty()) return v1::NO_REASON;
  const absl::Status sent = socket_.Send(EncodeSlotOffer(offer), is_new ? memory->fd() : -1);
  if (!sent.ok()) {
    if (!is_new) return v1::NO_REASON;  // A later offer will name the retired slots.
    return absl::IsUnavailable(sent) ? v1::SESSION_OVER : v1::CONNECTION_FULL;
  }
  for (const uint64_t slot : offer.retired) offered_.erase(slot);
  if (is_new) offered_.emplace(memory->id(), memory);
  return v1::NO_REASON;
}

bool SlotSession::TakeMessage() {
  const absl::StatusOr<std::optional<SlotSocket::Packet>> packet = socket_.Receive();
  if (packet.ok() && !packet->has_value()) return true;
  if (packet.ok() && !(*packet)->passed.ok()) {
    if (const auto slot = ParseSlotReturn((*packet)->message); slot.ok()) {
      std::shared_ptr<const void> owner;  // Freed after `mu_` is unlocked.
      MutexLock lock(mu_);
      if (const auto lent = lent_.find(*slot); lent != lent_.end()) {
        owner = std::move(lent->second.owner);
        account_->lent_bytes -= lent->second.bytes;
        lent_.erase(lent);
        moved_at_ = account_->clock();
        return true;
      }
    }
  }
  Close();
  return false;
}

absl::Duration SlotSession::stalled() const {
  MutexLock lock(mu_);
  return StalledLocked();
}

absl::Duration SlotSession::StalledLocked() const {
  if (hung_up_on_stall_) return absl::InfiniteDuration();
  return lent_.empty() ? absl::ZeroDuration() : account_->clock() - moved_at_;
}

void SlotSession::HangUpIfStalled(absl::Duration timeout) {
  {
    MutexLock lock(mu_);
    if (closed_ || StalledLocked() < timeout) return;
    hung_up_on_stall_ = true;
  }
  Close();
}

void SlotSession::Close() {
  std::map<uint64_t, Lent> lent;  // Freed after `mu_` is unlocked.
  {
    MutexLock lock(mu_);
    closed_ = true;
    // Shuts the socket down before the slots go back to the pool. So as long as a client can send a
    // SlotReturn, the pool has not used its slots again.
    socket_.Shutdown();
    lent.swap(lent_);
  }
  for (const auto& [slot, each] : lent) account_->lent_bytes -= each.bytes;
}

}  // namespace systole
