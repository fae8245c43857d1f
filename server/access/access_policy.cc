#include "server/access/access_policy.h"

#include <pwd.h>

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/status/status_macros.h"
#include "core/text/did_you_mean.h"
#include "core/text/foreign_text.h"

namespace systole {
namespace {

// In a list of datasets' names, this entry stands for all datasets.
constexpr absl::string_view kAll = "*";

absl::Status BadField(absl::string_view field, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(field, ": ", what));
}

// Adds `entries` to `names`. For the entry kAll, sets `all` instead.
absl::Status AddNames(const google::protobuf::RepeatedPtrField<std::string>& entries,
                      const std::string& field, const std::set<std::string>& datasets, bool& all,
                      std::set<std::string, std::less<>>& names) {
  for (const std::string& entry : entries) {
    if (entry == kAll) {
      all = true;
    } else if (datasets.contains(entry)) {
      names.insert(entry);
    } else {
      const std::vector<std::string> known(datasets.begin(), datasets.end());
      return BadField(field, absl::StrCat("no dataset '", ForeignName(entry),
                                          "' is served; want one of the config's, or \"*\" for all",
                                          DidYouMean(entry, known)));
    }
  }
  return absl::OkStatus();
}

// Maps `credential` to `identity` in the map `to`. The config writes the credential as `name`.
template <typename Map, typename Credential>
absl::Status AddCredential(const std::string& name, const std::string& field,
                           const std::string& identity, const Credential& credential, Map& to) {
  if (name.empty()) return BadField(field, "is empty");
  const auto [known, added] = to.emplace(credential, identity);
  if (added) return absl::OkStatus();
  return BadField(field, absl::StrCat("'", ForeignName(name), "' already belongs to identity '",
                                      known->second, "'; remove one"));
}

// A user's number. `name` is the name of a user of this machine, or the number as text.
absl::StatusOr<uid_t> UserNamed(const std::string& name, const std::string& field) {
  uid_t number = 0;
  if (absl::SimpleAtoi(name, &number)) return number;
  passwd entry = {};
  passwd* found = nullptr;
  std::vector<char> texts(16384);  // Enough for one user's entry (getpwnam_r(3)).
  ::getpwnam_r(name.c_str(), &entry, texts.data(), texts.size(), &found);
  if (found != nullptr) return found->pw_uid;
  return BadField(field, absl::StrCat("this machine has no user '", ForeignName(name),
                                      "'; want a name of /etc/passwd or a number"));
}

}  // namespace

absl::StatusOr<AccessPolicy::Permissions> AccessPolicy::PermissionsOf(
    const v1::PermissionsConfig& config, const std::string& field,
    const std::set<std::string>& datasets) {
  Permissions permissions = {
      .status = config.status(), .reflection = config.reflection(), .health = config.health()};
  SYSTOLE_RETURN_IF_ERROR(AddNames(config.read(), absl::StrCat(field, ".read"), datasets,
                                   permissions.read_all, permissions.read));
  SYSTOLE_RETURN_IF_ERROR(AddNames(config.list(), absl::StrCat(field, ".list"), datasets,
                                   permissions.list_all, permissions.list));
  return permissions;
}

absl::StatusOr<AccessPolicy> AccessPolicy::Create(const v1::AccessConfig& config,
                                                  const std::set<std::string>& datasets,
                                                  TokenTable tokens) {
  if (config.identities().empty() && !config.has_anonymous()) {
    return BadField("access", "no identity has a permission. Add `identities`, or remove `access`");
  }
  AccessPolicy policy;
  policy.tokens_ = std::move(tokens);
  SYSTOLE_ASSIGN_OR_RETURN(policy.permissions_[""],
                           PermissionsOf(config.anonymous(), "access.anonymous", datasets));
  for (int i = 0; i < config.identities_size(); ++i) {
    const v1::IdentityConfig& identity = config.identities(i);
    const std::string field = absl::StrCat("access.identities[", i, "]");
    if (!IsTokenName(identity.name())) {
      return BadField(absl::StrCat(field, ".name"),
                      absl::StrCat("'", ForeignName(identity.name()),
                                   "': want 1 to 128 letters, digits, '_', '-' or '.'"));
    }
    if (policy.permissions_.contains(identity.name())) {
      return BadField(absl::StrCat(field, ".name"),
                      absl::StrCat("'", identity.name(), "' appears twice; rename one"));
    }
    if (identity.token_names().empty() && identity.certificate_names().empty() &&
        identity.unix_users().empty()) {
      return BadField(
          field,
          absl::StrCat("'", identity.name(),
                       "' has no credential; add token_names, certificate_names or unix_users"));
    }
    if (!identity.token_names().empty() && config.token_file().empty()) {
      return BadField(absl::StrCat(field, ".token_names"),
                      "access.token_file is missing; name a file made by `systole token`");
    }
    if (!identity.has_may()) {
      return BadField(absl::StrCat(field, ".may"),
                      "is missing; say what the identity may do, such as may { read: \"*\" }");
    }
    SYSTOLE_ASSIGN_OR_RETURN(policy.permissions_[identity.name()],
                             PermissionsOf(identity.may(), absl::StrCat(field, ".may"), datasets));
    for (const std::string& name : identity.token_names()) {
      SYSTOLE_RETURN_IF_ERROR(AddCredential(name, absl::StrCat(field, ".token_names"),
                                            identity.name(), name, policy.by_token_name_));
    }
    for (const std::string& name : identity.certificate_names()) {
      SYSTOLE_RETURN_IF_ERROR(AddCredential(name, absl::StrCat(field, ".certificate_names"),
                                            identity.name(), name, policy.by_certificate_name_));
    }
    for (const std::string& name : identity.unix_users()) {
      const std::string list = absl::StrCat(field, ".unix_users");
      SYSTOLE_ASSIGN_OR_RETURN(const uid_t user, UserNamed(name, list));
      SYSTOLE_RETURN_IF_ERROR(
          AddCredential(name, list, identity.name(), user, policy.by_unix_user_));
    }
  }
  if (!config.token_file().empty() && policy.by_token_name_.empty()) {
    return BadField("access.token_file",
                    "no identity has token_names; add some, or remove token_file");
  }
  return policy;
}

absl::StatusOr<Caller> AccessPolicy::Identify(const Credentials& credentials,
                                              absl::Time now) const {
  if (credentials.token.has_value()) {
    const TokenEntry* entry = tokens_.Find(*credentials.token, now);
    const auto found = entry == nullptr ? by_token_name_.end() : by_token_name_.find(entry->name);
    if (found == by_token_name_.end()) {
      return absl::UnauthenticatedError(
          "this server does not know the token, or it has expired; ask the server's operator for "
          "another");
    }
    return Caller{.identity = found->second};
  }
  for (const std::string& name : credentials.certificate_names) {
    const auto found = by_certificate_name_.find(name);
    if (found != by_certificate_name_.end()) return Caller{.identity = found->second};
  }
  if (credentials.unix_user.has_value()) {
    const auto found = by_unix_user_.find(*credentials.unix_user);
    if (found != by_unix_user_.end()) return Caller{.identity = found->second};
  }
  return Caller();
}

std::set<uid_t> AccessPolicy::unix_users() const {
  std::set<uid_t> users;
  for (const auto& [user, identity] : by_unix_user_) users.insert(user);
  return users;
}

const AccessPolicy::Permissions& AccessPolicy::Of(const Caller& caller) const {
  return permissions_.find(caller.identity)->second;
}

bool AccessPolicy::MayRead(const Caller& caller, absl::string_view dataset) const {
  const Permissions& may = Of(caller);
  return may.read_all || may.read.contains(dataset);
}

bool AccessPolicy::MayList(const Caller& caller, absl::string_view dataset) const {
  const Permissions& may = Of(caller);
  return may.list_all || may.list.contains(dataset) || MayRead(caller, dataset);
}

bool AccessPolicy::MaySeeStatus(const Caller& caller) const { return Of(caller).status; }

bool AccessPolicy::MayReflect(const Caller& caller) const { return Of(caller).reflection; }

bool AccessPolicy::MaySeeHealth(const Caller& caller) const { return Of(caller).health; }

bool AccessPolicy::MayListAny(const Caller& caller) const {
  const Permissions& may = Of(caller);
  return may.list_all || !may.list.empty() || MayReadAny(caller);
}

bool AccessPolicy::MayReadAny(const Caller& caller) const {
  const Permissions& may = Of(caller);
  return may.read_all || !may.read.empty();
}

absl::Status CredentialWanted() {
  return absl::UnauthenticatedError(
      "this server needs a credential: a token (--token-file; on the wire the metadata "
      "`authorization: Bearer TOKEN`), or a certificate whose name it knows (--tls-certificate)");
}

}  // namespace systole
