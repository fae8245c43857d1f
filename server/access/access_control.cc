#include "server/access/access_control.h"

#include <utility>

#include "absl/memory/memory.h"
#include "core/status/status_macros.h"

namespace systole {

absl::StatusOr<std::shared_ptr<AccessControl>> AccessControl::Create(const v1::AccessConfig& config,
                                                                     std::set<std::string> datasets,
                                                                     WallClock clock,
                                                                     MonotonicClock monotonic) {
  // Checks the configuration before the file is read, so that errors of the configuration are
  // reported first.
  SYSTOLE_ASSIGN_OR_RETURN(AccessPolicy without_tokens,
                           AccessPolicy::Create(config, datasets, TokenTable()));
  const std::shared_ptr<AccessControl> control = absl::WrapUnique(
      new AccessControl(config, std::move(datasets), std::move(clock), std::move(monotonic)));
  {
    MutexLock lock(control->mu_);
    control->policy_ = std::make_shared<const AccessPolicy>(std::move(without_tokens));
  }
  SYSTOLE_RETURN_IF_ERROR(control->Reload());
  return control;
}

std::shared_ptr<const AccessPolicy> AccessControl::policy() const {
  MutexLock lock(mu_);
  return policy_;
}

absl::Status AccessControl::Configure(const v1::AccessConfig& config,
                                      std::set<std::string> datasets) {
  SYSTOLE_ASSIGN_OR_RETURN(const std::shared_ptr<AccessControl> changed,
                           Create(config, std::move(datasets), clock_, monotonic_));
  config_ = changed->config_;
  datasets_ = changed->datasets_;
  looked_at_ = changed->looked_at_;
  has_tokens_ = changed->has_tokens_;
  empty_since_ = changed->empty_since_;
  MutexLock lock(mu_);
  policy_ = changed->policy();
  return absl::OkStatus();
}

absl::Status AccessControl::Reload() {
  if (config_.token_file().empty()) return absl::OkStatus();
  // Notes the file's identity before it reads the file. So if the file changes in between, the next
  // call reads the file again.
  const TokenFileIdentity now = IdentityOfTokenFile(config_.token_file());
  if (looked_at_ == now && !empty_since_.has_value()) return absl::OkStatus();
  looked_at_ = now;
  const std::optional<absl::Duration> empty_since = std::exchange(empty_since_, std::nullopt);
  SYSTOLE_ASSIGN_OR_RETURN(TokenTable tokens, ReadTokenFile(config_.token_file()));
  if (tokens.entries().empty() && has_tokens_) {
    const absl::Duration since = empty_since.value_or(monotonic_());
    if (monotonic_() - since < kEmptyFileCountsAfter) {
      empty_since_ = since;
      return absl::OkStatus();
    }
  }
  has_tokens_ = !tokens.entries().empty();
  SYSTOLE_ASSIGN_OR_RETURN(AccessPolicy policy,
                           AccessPolicy::Create(config_, datasets_, std::move(tokens)));
  MutexLock lock(mu_);
  policy_ = std::make_shared<const AccessPolicy>(std::move(policy));
  return absl::OkStatus();
}

}  // namespace systole
