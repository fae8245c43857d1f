#include "core/storage/web/web_store.h"

#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/http/http_url.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

constexpr char kHowToName[] =
    "; HTTP has no lists: name each object, or read from a store that has lists, such as a folder "
    "that the objects were copied to";

// InvalidArgument unless `name` can be the address of an object. Folders are refused here, because
// a server may answer a request for a folder with a page for people.
absl::Status CheckName(const std::string& name) {
  SYSTOLE_ASSIGN_OR_RETURN(const HttpUrl url, ParseHttpUrl(name));
  // A '?' begins the query of an address, so it does not show that the name is a glob.
  const absl::string_view path = absl::string_view(url.target).substr(0, url.target.find('?'));
  if (path.find_first_of("*[]{}") != absl::string_view::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", ShownUrl(name), "\" is a pattern with wildcards", kHowToName));
  }
  if (absl::EndsWith(path, "/")) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", ShownUrl(name), "\" is a folder, want a file", kHowToName));
  }
  return absl::OkStatus();
}

}  // namespace

const WebStore& WebStore::OfProcess() {
  static const WebStore* const store = new WebStore();  // Not deleted: sources may outlive main().
  return *store;
}

absl::StatusOr<WebConnection*> WebStore::Connection() const {
  MutexLock lock(mu_);
  if (connection_ == nullptr) {
    WebStoreOptions options = options_.value_or(WebStoreOptions());
    if (!options_.has_value()) options.client = HttpOptionsOfEnvironment();
    SYSTOLE_ASSIGN_OR_RETURN(connection_, WebConnection::Create(options));
    if (!options_.has_value()) std::atexit([] { OfProcess().End(); });
  }
  return connection_.get();
}

void WebStore::End() const {
  MutexLock lock(mu_);
  if (connection_ != nullptr) connection_->End();
}

absl::StatusOr<SeenObject> WebStore::Look(const std::string& name) const {
  SYSTOLE_RETURN_IF_ERROR(CheckName(name));
  SYSTOLE_ASSIGN_OR_RETURN(WebConnection* const connection, Connection());
  // Only operators see the errors of this call, so the errors name the address.
  return connection->LookIfNotSeen(name, /*called=*/"");
}

absl::StatusOr<std::vector<std::string>> WebStore::List(const std::string& pattern,
                                                        NameFilter wanted) const {
  SYSTOLE_RETURN_IF_ERROR(CheckName(pattern));
  if (!wanted(pattern)) return std::vector<std::string>();
  return std::vector<std::string>{pattern};
}

absl::StatusOr<std::vector<std::string>> WebStore::ListFolder(const std::string& folder) const {
  return absl::PermissionDeniedError(
      absl::StrCat("\"", ShownUrl(folder), "\" cannot be listed", kHowToName));
}

absl::StatusOr<std::unique_ptr<ByteSource>> WebStore::Open(const std::string& name) const {
  SYSTOLE_ASSIGN_OR_RETURN(SeenObject seen, Look(name));
  SYSTOLE_ASSIGN_OR_RETURN(WebConnection* const connection, Connection());
  return std::make_unique<WebSource>(*connection, name, std::move(seen));
}

absl::StatusOr<StoredState> WebStore::Stat(const std::string& name) const {
  SYSTOLE_ASSIGN_OR_RETURN(const SeenObject seen, Look(name));
  return StoredState{.size_bytes = seen.object.size_bytes, .identity = seen.object.Identity()};
}

absl::StatusOr<std::unique_ptr<ByteSource>> WebStore::OpenInState(const std::string& name,
                                                                  const StoredState& state) const {
  SYSTOLE_RETURN_IF_ERROR(CheckName(name));
  std::optional<WebObject> object = ObjectOfIdentity(state.size_bytes, state.identity);
  if (!object.has_value()) return Store::OpenInState(name, state);
  SYSTOLE_ASSIGN_OR_RETURN(WebConnection* const connection, Connection());
  // `state` may be old, so the source does not count as just checked. CheckUnchanged() asks the
  // server unless a read or a check of this source has just shown that the object is unchanged.
  return std::make_unique<WebSource>(
      *connection, name,
      SeenObject{.object = *std::move(object), .asked = -absl::InfiniteDuration()});
}

absl::StatusOr<std::unique_ptr<ByteSink>> WebStore::Create(const std::string& name) const {
  return Store::Create(ShownUrl(name));
}

std::string WebStore::FullName(const std::string& name) const {
  const absl::StatusOr<HttpUrl> url = ParseHttpUrl(name);
  return url.ok() ? url->Text() : name;
}

}  // namespace systole
