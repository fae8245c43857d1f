#include "core/memory/scratch_budget.h"

#include <algorithm>

#include "core/status/check.h"

namespace systole {

bool ScratchBudget::Fits(const Account& account, int64_t bytes) const {
  const int64_t holds = account.held_ + bytes;
  // `ordinary_` does not include the bytes of an account that stepped down. All of them must fit.
  if (account.beyond_) return ordinary_ + holds <= capacity_;
  if (holds <= kOrdinaryBytes) return ordinary_ + bytes <= capacity_;
  const int64_t first_bytes =
      first_bytes_ + kOrdinaryBytes - std::min(account.held_, kOrdinaryBytes);
  const int64_t left_for_others = std::max<int64_t>(0, capacity_ / 4 - first_bytes);
  return used_bytes() + bytes + left_for_others <= capacity_;
}

void ScratchBudget::Add(Account& account, int64_t bytes) {
  first_bytes_ -= std::min(account.held_, kOrdinaryBytes);
  account.held_ += bytes;
  first_bytes_ += std::min(account.held_, kOrdinaryBytes);
  (account.beyond_ ? beyond_ : ordinary_) += bytes;
  SYSTOLE_CHECK(account.held_ >= 0);
}

void ScratchBudget::SetBeyond(Account& account, bool beyond) {
  if (account.beyond_ == beyond) return;
  account.beyond_ = beyond;
  ordinary_ += beyond ? -account.held_ : account.held_;
  beyond_ += beyond ? account.held_ : -account.held_;
}

void ScratchBudget::FindElder() {
  while (true) {
    if (elder_ != nullptr) {
      // An elder that is still in line is about to take bytes that do not fit.
      if (elder_->waits_ || ordinary_ + elder_->held_ > capacity_) return;
      SetBeyond(*elder_, false);
      elder_ = nullptr;
    }
    if (line_.empty()) return;
    elder_ = line_.front();
    SetBeyond(*elder_, true);
  }
}

bool ScratchBudget::Take(Account& account, int64_t bytes) {
  if (&account != elder_ && !Fits(account, bytes)) {
    if (!account.waits_) {
      account.waits_ = true;
      line_.push_back(&account);
    }
    FindElder();
    if (&account != elder_) return false;
  }
  Add(account, bytes);
  Leave(account);
  return true;
}

void ScratchBudget::Leave(Account& account) {
  if (account.waits_) line_.remove(&account);
  account.waits_ = false;
  if (account.beyond_ && &account != elder_ && ordinary_ + account.held_ <= capacity_) {
    SetBeyond(account, false);
  }
  FindElder();
}

void ScratchBudget::GiveBack(Account& account, int64_t bytes) {
  Add(account, -bytes);
  Leave(account);
}

bool ScratchBudget::EndTurn(Account& account, int64_t kept) {
  SYSTOLE_CHECK(kept >= 0 && kept <= account.held_);
  kept_ -= account.kept_;
  Add(account, kept - account.held_);
  const int64_t ordinary = ordinary_ + (account.beyond_ ? account.held_ : 0);
  const bool keeps = kept_ + kept <= most_kept() && ordinary <= capacity_;
  if (!keeps) Add(account, -account.held_);
  account.kept_ = account.held_;
  kept_ += account.kept_;
  Leave(account);
  return keeps;
}

void ScratchBudget::StepDown(Account& account) {
  if (elder_ != &account) return;
  elder_ = nullptr;
  FindElder();
}

}  // namespace systole
