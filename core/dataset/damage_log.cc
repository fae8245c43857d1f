#include "core/dataset/damage_log.h"

#include <numeric>

namespace systole {

void DamageLog::Add(Entry entry) {
  if (entry.cause.size() > kMaxCauseBytes) entry.cause.resize(kMaxCauseBytes);
  {
    MutexLock lock(mu_);
    ++masked_[static_cast<size_t>(entry.kind)];
    if (entries_.size() >= kMaxEntries || !records_.insert(entry.record).second) return;
    entries_.push_back(entry);
  }
  if (observer_ != nullptr) observer_(entry);
}

int64_t DamageLog::masked_examples() const {
  const MaskedByCause masked = masked_by_cause();
  return std::accumulate(masked.begin(), masked.end(), int64_t{0});
}

MaskedByCause DamageLog::masked_by_cause() const {
  MutexLock lock(mu_);
  return masked_;
}

std::vector<DamageLog::Entry> DamageLog::entries() const {
  MutexLock lock(mu_);
  return entries_;
}

}  // namespace systole
