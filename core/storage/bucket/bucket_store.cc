#include "core/storage/bucket/bucket_store.h"

#include <cstdlib>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/credentials/aws_credentials.h"
#include "core/credentials/credential_surroundings.h"
#include "core/credentials/google_credentials.h"
#include "core/http/http_client_options.h"
#include "core/status/status_macros.h"
#include "core/storage/bucket/gcs_dialect.h"
#include "core/storage/bucket/object_upload.h"
#include "core/storage/bucket/s3_dialect.h"
#include "core/storage/web/web_answer.h"
#include "core/text/foreign_text.h"

namespace systole {
namespace {

// The characters that have a special meaning for fnmatch().
constexpr char kWildcards[] = "*?[\\";

// The most names that named_literally_ keeps. No real set of shards has more names that look like
// globs.
constexpr size_t kMaxNamedLiterally = 4096;

bool IsGlob(absl::string_view key) {
  return key.find_first_of(kWildcards) != absl::string_view::npos;
}

// `name` as the name of a folder, with a '/' at the end of its key. An empty key stays empty: it
// means the bucket itself.
BucketName FolderOf(BucketName name) {
  if (!name.key.empty() && name.key.back() != '/') name.key += '/';
  return name;
}

// The files, each with its state if `contents` has one.
std::vector<ListedFile> WithStates(std::vector<std::string> files, const BucketContents& contents) {
  std::vector<ListedFile> listed;
  listed.reserve(files.size());
  for (std::string& name : files) {
    const auto state = contents.states.find(name);
    listed.push_back({.name = std::move(name)});
    if (state != contents.states.end()) listed.back().state = state->second;
  }
  return listed;
}

absl::StatusOr<BucketService> S3OfEnvironment() {
  SYSTOLE_ASSIGN_OR_RETURN(const S3Options options, S3OptionsOfEnvironment());
  BucketService service;
  SYSTOLE_ASSIGN_OR_RETURN(service.dialect,
                           S3Dialect::Create(options, AwsCredentialsOfEnvironment()));
  service.web.client = HttpOptionsOfEnvironment("AWS_CA_BUNDLE");
  return service;
}

absl::StatusOr<BucketService> GcsOfEnvironment() {
  SYSTOLE_ASSIGN_OR_RETURN(const GcsOptions options, GcsOptionsOfEnvironment());
  BucketService service;
  SYSTOLE_ASSIGN_OR_RETURN(service.dialect,
                           GcsDialect::Create(options, GoogleTokensOfEnvironment(),
                                              GoogleTokensOfEnvironment({}, GoogleAccess::kWrite)));
  service.web.client = HttpOptionsOfEnvironment();
  return service;
}

}  // namespace

const BucketStore& BucketStore::S3OfProcess() {
  static const BucketStore* const store = new BucketStore(&S3OfEnvironment);
  return *store;
}

const BucketStore& BucketStore::GcsOfProcess() {
  static const BucketStore* const store = new BucketStore(&GcsOfEnvironment);
  return *store;
}

absl::StatusOr<BucketStore::Parts*> BucketStore::Use() const {
  MutexLock lock(mu_);
  if (parts_ == nullptr) {
    auto parts = std::make_unique<Parts>();
    absl::StatusOr<BucketService> service = make_();
    if (!service.ok()) {
      return absl::Status(CodeBeforeRequest(service.status()), service.status().message());
    }
    parts->service = *std::move(service);
    SYSTOLE_ASSIGN_OR_RETURN(
        parts->connection, WebConnection::Create(parts->service.web, parts->service.dialect.get()));
    parts_ = std::move(parts);
    // Sources may outlive main(), so the stores of the process are not destroyed. End() ends their
    // threads.
    if (this == &S3OfProcess()) std::atexit([] { S3OfProcess().End(); });
    if (this == &GcsOfProcess()) std::atexit([] { GcsOfProcess().End(); });
  }
  return parts_.get();
}

void BucketStore::End() const {
  MutexLock lock(mu_);
  if (parts_ == nullptr) return;
  parts_->connection->End();
  parts_->service.dialect->End();
}

absl::StatusOr<SeenObject> BucketStore::Look(const std::string& name) const {
  SYSTOLE_ASSIGN_OR_RETURN(const BucketName parsed, ParseBucketName(name));
  SYSTOLE_RETURN_IF_ERROR(CheckObjectName(parsed));
  SYSTOLE_ASSIGN_OR_RETURN(Parts* const parts, Use());
  absl::StatusOr<SeenObject> seen = parts->connection->LookIfNotSeen(name, /*called=*/"");
  if (!seen.ok()) return WithName(seen.status(), name);
  return seen;
}

absl::StatusOr<std::unique_ptr<ByteSource>> BucketStore::Open(const std::string& name) const {
  SYSTOLE_ASSIGN_OR_RETURN(SeenObject seen, Look(name));
  SYSTOLE_ASSIGN_OR_RETURN(Parts* const parts, Use());
  return std::make_unique<WebSource>(*parts->connection, name, std::move(seen));
}

absl::StatusOr<StoredState> BucketStore::Stat(const std::string& name) const {
  SYSTOLE_ASSIGN_OR_RETURN(const SeenObject seen, Look(name));
  return StoredState{.size_bytes = seen.object.size_bytes, .identity = seen.object.Identity()};
}

absl::StatusOr<std::unique_ptr<ByteSink>> BucketStore::Create(const std::string& name) const {
  SYSTOLE_ASSIGN_OR_RETURN(const BucketName parsed, ParseBucketName(name));
  SYSTOLE_RETURN_IF_ERROR(CheckObjectName(parsed));
  SYSTOLE_ASSIGN_OR_RETURN(Parts* const parts, Use());
  return std::make_unique<BucketSink>(*parts->connection, *parts->service.dialect, parsed,
                                      parts->service.sink);
}

absl::Status BucketStore::Remove(const std::string& name) const {
  SYSTOLE_ASSIGN_OR_RETURN(const BucketName parsed, ParseBucketName(name));
  SYSTOLE_RETURN_IF_ERROR(CheckObjectName(parsed));
  SYSTOLE_ASSIGN_OR_RETURN(Parts* const parts, Use());
  // Look() comes first, because S3 answers OK to a removal even if there is no such object.
  const absl::StatusOr<SeenObject> there =
      parts->connection->Look(name, /*called=*/"", parts->service.web.open_timeout);
  if (!there.ok()) return WithName(there.status(), name);
  const absl::Status removed =
      ObjectUpload(*parts->connection, *parts->service.dialect, parsed).RemoveObject();
  parts->connection->NoteWrite(name);
  return removed;
}

absl::StatusOr<std::unique_ptr<ByteSource>> BucketStore::OpenInState(
    const std::string& name, const StoredState& state) const {
  SYSTOLE_ASSIGN_OR_RETURN(const BucketName parsed, ParseBucketName(name));
  SYSTOLE_RETURN_IF_ERROR(CheckObjectName(parsed));
  std::optional<WebObject> object = ObjectOfIdentity(state.size_bytes, state.identity);
  if (!object.has_value()) return Store::OpenInState(name, state);
  SYSTOLE_ASSIGN_OR_RETURN(Parts* const parts, Use());
  // `state` may be old, so it does not count as a check. With this `asked`, a time long ago,
  // CheckUnchanged() trusts only later reads and checks of this source.
  return std::make_unique<WebSource>(
      *parts->connection, name,
      SeenObject{.object = *std::move(object), .asked = -absl::InfiniteDuration()});
}

absl::StatusOr<BucketContents> BucketStore::Contents(const BucketListing& listing) const {
  SYSTOLE_ASSIGN_OR_RETURN(Parts* const parts, Use());
  SYSTOLE_ASSIGN_OR_RETURN(
      BucketContents contents,
      ListBucket(*parts->connection, *parts->service.dialect, listing, parts->service.list));
  for (const auto& [name, state] : contents.states) {
    parts->connection->ForgetOther(std::string(name), state.identity);
  }
  return contents;
}

absl::StatusOr<ObjectNames> BucketStore::Names(const BucketListing& listing) const {
  SYSTOLE_ASSIGN_OR_RETURN(BucketContents contents, Contents(listing));
  return std::move(contents.names);
}

absl::StatusOr<std::vector<std::string>> BucketStore::ListFolderOf(const BucketName& name,
                                                                   NameFilter wanted) const {
  const BucketName folder = FolderOf(name);
  SYSTOLE_ASSIGN_OR_RETURN(ObjectNames names, Names({.prefix = folder}));
  if (folder.key.empty()) names.insert(folder.Text());  // An empty bucket is a folder, too.
  return ListObjects(names, folder.Text(), wanted);
}

absl::StatusOr<std::vector<std::string>> BucketStore::ListName(const BucketName& name,
                                                               NameFilter wanted) const {
  // If the object is found, the connection remembers the answer, and an Open() right after this
  // call sends no request.
  const absl::StatusOr<SeenObject> object = Look(name.Text());
  if (absl::IsNotFound(object.status())) return ListFolderOf(name, wanted);
  if (!object.ok() && !absl::IsPermissionDenied(object.status())) return object.status();
  if (!wanted(name.Text())) return std::vector<std::string>();
  return std::vector<std::string>{name.Text()};
}

absl::StatusOr<std::vector<ListedFile>> BucketStore::ListGlob(const BucketName& pattern,
                                                              NameFilter wanted,
                                                              bool with_states) const {
  const BucketName folder = FolderOf(pattern);
  // A glob that ends with '/' matches nothing. But such a pattern may be the name of a folder.
  if (pattern.key.back() == '/') {
    SYSTOLE_ASSIGN_OR_RETURN(std::vector<std::string> inside, ListFolderOf(folder, wanted));
    RememberName(folder.Text());
    return WithStates(std::move(inside), {});
  }
  BucketListing listing = {.prefix = pattern, .with_states = with_states};
  listing.prefix.key.resize(pattern.key.find_first_of(kWildcards));
  // If the pattern has a '/' after the prefix, names in deeper folders may match. Otherwise each
  // name is listed only up to its first '/' after the prefix.
  listing.into_folders = absl::StrContains(pattern.key.substr(listing.prefix.key.size()), '/');
  SYSTOLE_ASSIGN_OR_RETURN(const BucketContents contents, Contents(listing));
  const ObjectNames& names = contents.names;
  const bool is_object = names.contains(pattern.Text());
  const auto first_inside = names.lower_bound(folder.Text());
  const bool is_folder =
      first_inside != names.end() && absl::StartsWith(*first_inside, folder.Text());
  if (is_object || is_folder) RememberName(is_object ? pattern.Text() : folder.Text());
  SYSTOLE_ASSIGN_OR_RETURN(std::vector<std::string> named,
                           !is_object && is_folder ? ListFolderOf(pattern, wanted)
                                                   : ListObjects(names, pattern.Text(), wanted));
  return WithStates(std::move(named), contents);
}

absl::StatusOr<std::vector<std::string>> BucketStore::List(const std::string& pattern,
                                                           NameFilter wanted) const {
  SYSTOLE_ASSIGN_OR_RETURN(const BucketName parsed, ParseBucketName(pattern));
  absl::StatusOr<std::vector<std::string>> names;
  if (IsGlob(parsed.key)) {
    absl::StatusOr<std::vector<ListedFile>> files = ListGlob(parsed, wanted, /*with_states=*/false);
    if (!files.ok()) return WithName(files.status(), pattern);
    names.emplace();
    for (ListedFile& file : *files) names->push_back(std::move(file.name));
  } else if (parsed.key.empty() || parsed.key.back() == '/') {
    names = ListFolderOf(parsed, wanted);
  } else {
    names = ListName(parsed, wanted);
  }
  if (!names.ok()) return WithName(names.status(), pattern);
  return names;
}

absl::StatusOr<PatternList> BucketStore::ListStates(const std::string& pattern,
                                                    NameFilter wanted) const {
  SYSTOLE_ASSIGN_OR_RETURN(const BucketName parsed, ParseBucketName(pattern));
  BucketName folder = parsed;
  const bool is_glob = IsGlob(parsed.key);
  const auto list_glob = [&]() -> absl::StatusOr<PatternList> {
    absl::StatusOr<std::vector<ListedFile>> files = ListGlob(parsed, wanted, /*with_states=*/true);
    if (!files.ok()) return WithName(files.status(), pattern);
    return PatternList{.files = *std::move(files)};
  };
  if (is_glob) {
    folder.key.resize(parsed.key.rfind('/') + 1);  // Empty if the key has no '/'.
    if (IsGlob(folder.key) || folder.key == parsed.key) return list_glob();
  } else if (!parsed.key.empty() && parsed.key.back() != '/') {
    if (!absl::IsNotFound(Look(pattern).status())) return Store::ListStates(pattern, wanted);
    folder = FolderOf(parsed);
  }
  absl::StatusOr<BucketContents> contents = Contents({.prefix = folder, .with_states = true});
  // The list of the whole folder is forbidden or too long. A list of only the names that begin like
  // the pattern may still be allowed and short enough.
  if (is_glob && (absl::IsPermissionDenied(contents.status()) ||
                  absl::IsResourceExhausted(contents.status()))) {
    return list_glob();
  }
  if (!contents.ok()) return WithName(contents.status(), pattern);
  ObjectNames& names = contents->names;
  if (is_glob) {
    const bool is_object = names.contains(pattern);
    if (!is_object && names.contains(FolderOf(parsed).Text())) {
      return Store::ListStates(pattern, wanted);
    }
    if (is_object) RememberName(pattern);
  } else if (folder.key.empty()) {
    names.insert(folder.Text());  // An empty bucket is a folder, too.
  }
  absl::StatusOr<std::vector<std::string>> named =
      ListObjects(names, is_glob ? pattern : folder.Text(), wanted);
  if (!named.ok()) return WithName(named.status(), pattern);
  std::string path = folder.Text();
  std::vector<ListedFile> beside = WithStates(ObjectsIn(names, path), *contents);
  return PatternList{.files = WithStates(*std::move(named), *contents),
                     .folder = FolderList{.folder = std::move(path), .files = std::move(beside)}};
}

void BucketStore::RememberName(const std::string& name) const {
  MutexLock lock(mu_);
  if (named_literally_.size() >= kMaxNamedLiterally) named_literally_.clear();
  named_literally_.insert(name);
}

bool BucketStore::Takes(const std::string& pattern, const std::string& name) const {
  const absl::StatusOr<BucketName> parsed = ParseBucketName(pattern);
  if (!parsed.ok()) return false;
  // A pattern without wildcards is the name of an object or a folder.
  if (!IsGlob(parsed->key)) return TakesObject({FolderOf(*parsed).Text()}, pattern, name);
  MutexLock lock(mu_);
  return TakesObject(named_literally_, pattern, name);
}

absl::StatusOr<std::vector<std::string>> BucketStore::ListFolder(const std::string& folder) const {
  SYSTOLE_ASSIGN_OR_RETURN(const BucketName parsed, ParseBucketName(folder));
  const absl::StatusOr<ObjectNames> names = Names({.prefix = FolderOf(parsed)});
  if (!names.ok()) return WithName(names.status(), folder);
  return ObjectsIn(*names, FolderOf(parsed).Text());
}

}  // namespace systole
