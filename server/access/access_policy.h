// Who may do what: a server's `access` block (systole/v1/config.proto) and the tokens that are
// valid now. Uses neither gRPC nor a clock.
//
// Thread-compatible; immutable once made.
#ifndef SYSTOLE_SERVER_ACCESS_ACCESS_POLICY_H_
#define SYSTOLE_SERVER_ACCESS_ACCESS_POLICY_H_

#include <sys/types.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/access_token/token_table.h"
#include "systole/v1/config.pb.h"

namespace systole {

// The credentials of a call, without the text of its token.
struct Credentials {
  // The hash of the token, if the call has one.
  std::optional<TokenHash> token;
  // The DNS and URI names of the client's certificate. Empty if the client has not proved that it
  // has the certificate's key.
  std::vector<std::string> certificate_names;
  // The user at the other end of a Unix socket, if this user is one of unix_users().
  std::optional<uid_t> unix_user;
};

struct Caller {
  std::string identity;  // Empty: anonymous.

  bool anonymous() const { return identity.empty(); }
};

class AccessPolicy {
 public:
  // Checks `config`. `datasets`: the names of all configured datasets.
  //   InvalidArgument  `config` has an error. The message names the field, its value and what is
  //                    allowed.
  static absl::StatusOr<AccessPolicy> Create(const v1::AccessConfig& config,
                                             const std::set<std::string>& datasets,
                                             TokenTable tokens);

  // Finds the identity of a call's caller. Only the first of these that applies decides:
  //   - the token, if the call has one;
  //   - the first of the certificate's names that belongs to an identity;
  //   - the user of the Unix socket, if it belongs to an identity.
  // If none applies, the caller is anonymous.
  //   Unauthenticated  the call has a token that is unknown or has expired.
  absl::StatusOr<Caller> Identify(const Credentials& credentials, absl::Time now) const;

  bool MayRead(const Caller& caller, absl::string_view dataset) const;
  // Whether the caller may read at least one dataset.
  bool MayReadAny(const Caller& caller) const;
  // A caller that may read a dataset may list it, too.
  bool MayList(const Caller& caller, absl::string_view dataset) const;
  bool MaySeeStatus(const Caller& caller) const;
  bool MayReflect(const Caller& caller) const;
  bool MaySeeHealth(const Caller& caller) const;
  // Whether the caller may list at least one dataset.
  bool MayListAny(const Caller& caller) const;

  // All users that the config lists under `unix_users`.
  std::set<uid_t> unix_users() const;

 private:
  struct Permissions {
    bool read_all = false;
    bool list_all = false;
    bool status = false;
    bool reflection = false;
    bool health = false;
    std::set<std::string, std::less<>> read;
    std::set<std::string, std::less<>> list;
  };

  static absl::StatusOr<Permissions> PermissionsOf(const v1::PermissionsConfig& config,
                                                   const std::string& field,
                                                   const std::set<std::string>& datasets);
  const Permissions& Of(const Caller& caller) const;

  TokenTable tokens_;
  // By the identity's name; the empty name is for anonymous callers.
  std::map<std::string, Permissions, std::less<>> permissions_;
  // The next three maps have the identity of each token's name, certificate's name and user.
  std::map<std::string, std::string, std::less<>> by_token_name_;
  std::map<std::string, std::string, std::less<>> by_certificate_name_;
  std::map<uid_t, std::string> by_unix_user_;
};

// The error for a caller that needs a credential and has none.
absl::Status CredentialWanted();

}  // namespace systole

#endif  // SYSTOLE_SERVER_ACCESS_ACCESS_POLICY_H_
