#include "core/storage/bucket/bucket_list.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/http/http_headers.h"
#include "core/http/http_message.h"
#include "core/interrupt/interrupt.h"
#include "core/status/status_macros.h"
#include "core/storage/bucket/bucket_answer.h"
#include "core/storage/web/web_answer.h"
#include "core/text/foreign_text.h"

namespace systole {
namespace {

std::string QueryOf(const BucketListing& listing, const std::string& token) {
  std::vector<std::pair<std::string, std::string>> parameters = {
      {"list-type", "2"},
      {"encoding-type", "url"},  // XML has no way to write some characters of keys.
      {"max-keys", "1000"},
      {"prefix", listing.prefix.key}};
  if (!listing.into_folders) parameters.emplace_back("delimiter", "/");
  if (!token.empty()) parameters.emplace_back("continuation-token", token);
  return EncodedQuery(std::move(parameters));
}

// The names of one list, as its pages come in.
class Gathering {
 public:
  Gathering(const BucketListing& listing, bool has_generations, const BucketListOptions& options)
      : listing_(listing), has_generations_(has_generations), options_(options) {}

  // Whether the page brings a new name.
  absl::StatusOr<bool> Add(const ListPage& page) {
    const size_t before = contents_.names.size();
    for (size_t i = 0; i < page.keys.size(); ++i) {
      SYSTOLE_RETURN_IF_ERROR(AddKey(page.keys[i], &page.objects[i]));
    }
    for (const std::string& key : page.folders) SYSTOLE_RETURN_IF_ERROR(AddKey(key, nullptr));
    return contents_.names.size() > before;
  }

  BucketContents TakeContents() { return std::move(contents_); }

 private:
  // `object` is null for a folder.
  absl::Status AddKey(const std::string& key, const ListedObject* object) {
    if (!absl::StartsWith(key, listing_.prefix.key)) {
      return absl::DataLossError("the server lists keys that do not begin as it was asked");
    }
    const auto [name, is_new] = contents_.names.insert(root_ + key);
    if (!is_new) return absl::OkStatus();
    if (listing_.with_states && object != nullptr) AddState(*name, *object);
    name_bytes_ += root_.size() + key.size();
    if (contents_.names.size() <= options_.max_names && name_bytes_ <= options_.max_name_bytes) {
      return absl::OkStatus();
    }
    return absl::ResourceExhaustedError(absl::StrCat(
        "more than ", options_.max_names, " names or ", options_.max_name_bytes,
        " bytes of names begin with \"", ForeignText(listing_.prefix.Text()),
        "\"; put shards into folders of their own, and write more of the name before the first "
        "wildcard"));
  }

  void AddState(const std::string& name, const ListedObject& object) {
    const uint64_t size_bytes = object.size_bytes.value_or(kMaxWebObjectBytes + 1);
    if (size_bytes > kMaxWebObjectBytes) return;
    // As in WebConnection::Look(): if objects have generations, only a generation is an identity.
    std::string identity = has_generations_
                               ? ObjectOfList(size_bytes, "", object.generation).Identity()
                               : ObjectOfList(size_bytes, object.etag, "").Identity();
    if (identity.empty()) return;
    contents_.states.emplace(
        name, StoredState{.size_bytes = size_bytes, .identity = std::move(identity)});
  }

  const BucketListing& listing_;
  const bool has_generations_;
  const BucketListOptions& options_;
  const std::string root_ = listing_.prefix.Root();
  BucketContents contents_;
  uint64_t name_bytes_ = 0;
};

}  // namespace

absl::StatusOr<BucketContents> ListBucket(WebConnection& connection, const WebDialect& dialect,
                                          const BucketListing& listing,
                                          const BucketListOptions& options) {
  Gathering gathering(listing, dialect.has_generations(), options);
  std::string token;
  int idle_pages = 0;
  const absl::Duration deadline = connection.options().now() + options.max_time;
  for (int pages = 0; pages < options.max_pages; ++pages) {
    if (InterruptRequested()) return InterruptedError();
    const absl::Duration time_left = deadline - connection.options().now();
    if (time_left <= absl::ZeroDuration()) {
      return absl::DeadlineExceededError(
          absl::StrCat("the server took ", absl::FormatDuration(options.max_time), " for ", pages,
                       " pages of its list, which did not end; put shards into folders of their "
                       "own, and write more of the name before the first wildcard"));
    }
    const HttpRequest request = {
        .url = absl::StrCat(listing.prefix.scheme, "://", listing.prefix.bucket,
                            QueryOf(listing, token)),
        .headers = {{"accept-encoding", "identity"}},
        .timeout = std::min(connection.options().open_timeout, time_left),
        .max_body_bytes = options.max_page_bytes};
    SYSTOLE_ASSIGN_OR_RETURN(const HttpResponse response, connection.Fetch(request));
    if (response.status != 200) {
      return dialect.RefusalOf(
          absl::StrCat("a list of \"", listing.prefix.scheme, "://", listing.prefix.bucket, "\""),
          response);
    }
    const absl::string_view encoding = FindHeader(response.headers, "content-encoding");
    if (!encoding.empty() && encoding != "identity") {
      return absl::DataLossError(
          absl::StrCat("the server's list is compressed (", ForeignName(encoding),
                       "), which nobody asked for; a proxy on the way may be wrong"));
    }
    SYSTOLE_ASSIGN_OR_RETURN(ListPage page, ParseListPage(response.body));
    SYSTOLE_ASSIGN_OR_RETURN(const bool brings_new, gathering.Add(page));
    if (page.next_token.empty()) return gathering.TakeContents();
    idle_pages = brings_new ? 0 : idle_pages + 1;
    if (page.next_token == token) {
      return absl::DataLossError("the server's list does not go on: a page leads to itself");
    }
    if (idle_pages > options.max_idle_pages) {
      return absl::DataLossError(absl::StrCat("the server's list does not go on: ", idle_pages,
                                              " pages in a row have no new name"));
    }
    token = std::move(page.next_token);
  }
  return absl::ResourceExhaustedError(
      absl::StrCat("the list has more than ", options.max_pages, " pages"));
}

}  // namespace systole
