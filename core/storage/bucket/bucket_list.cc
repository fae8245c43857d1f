#include "core/storage/bucket/bucket_list.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/http/http_headers.h"
#include "core/http/http_message.h"
#include "core/interrupt/interrupt.h"
#include "core/status/status_macros.h"
#include "core/storage/bucket/bucket_answer.h"
#include "core/storage/bucket/bucket_name.h"
#include "core/storage/bucket/ranged_list.h"
#include "core/text/foreign_text.h"

namespace systole {
namespace {

std::string QueryOf(const BucketListing& listing, const ListPlace& place) {
  std::vector<std::pair<std::string, std::string>> parameters = {
      {"list-type", "2"},
      {"encoding-type", "url"},  // XML has no way to write some characters of keys.
      {"max-keys", "1000"},
      {"prefix", listing.prefix.key}};
  if (!listing.into_folders) parameters.emplace_back("delimiter", "/");
  if (!place.token.empty()) {
    parameters.emplace_back("continuation-token", place.token);
  } else if (!place.after.empty()) {
    parameters.emplace_back("start-after", place.after);
  }
  return EncodedQuery(std::move(parameters));
}

// Requests the pages of one list. Thread-safe.
class PageReader {
 public:
  PageReader(WebConnection& connection, const WebDialect& dialect, const BucketListing& listing,
             const BucketListOptions& options)
      : connection_(connection),
        dialect_(dialect),
        listing_(listing),
        options_(options),
        deadline_(connection.options().now() + options.max_time) {}

  absl::StatusOr<ListPage> Read(const ListPlace& place, uint64_t max_bytes) {
    if (InterruptRequested()) return InterruptedError();
    const absl::Duration time_left = deadline_ - connection_.options().now();
    if (time_left <= absl::ZeroDuration()) {
      return absl::DeadlineExceededError(
          absl::StrCat("the server's list did not end within ",
                       absl::FormatDuration(options_.max_time), " (", pages_.load(),
                       " pages came); put shards into "
                       "folders of their own, and write more of the name before the first "
                       "wildcard"));
    }
    const BucketName& prefix = listing_.prefix;
    const HttpRequest request = {
        .url = absl::StrCat(prefix.scheme, "://", prefix.bucket, QueryOf(listing_, place)),
        .headers = {{"accept-encoding", "identity"}},
        .timeout = std::min(connection_.options().open_timeout, time_left),
        .max_body_bytes = max_bytes};
    SYSTOLE_ASSIGN_OR_RETURN(const HttpResponse response, connection_.Fetch(request));
    if (response.status != 200) {
      return dialect_.RefusalOf(
          absl::StrCat("a list of \"", prefix.scheme, "://", prefix.bucket, "\""), response);
    }
    const absl::string_view encoding = FindHeader(response.headers, "content-encoding");
    if (!encoding.empty() && encoding != "identity") {
      return absl::DataLossError(
          absl::StrCat("the server's list is compressed (", ForeignName(encoding),
                       "), which the request did not ask for; a proxy on the way may be broken"));
    }
    ++pages_;
    return ParseListPage(response.body);
  }

 private:
  WebConnection& connection_;
  const WebDialect& dialect_;
  const BucketListing& listing_;
  const BucketListOptions& options_;
  const absl::Duration deadline_;
  std::atomic<int> pages_ = 0;
};

}  // namespace

absl::StatusOr<BucketContents> ListBucket(WebConnection& connection, const WebDialect& dialect,
                                          const BucketListing& listing,
                                          const BucketListOptions& options) {
  PageReader reader(connection, dialect, listing, options);
  ListGathering gathering(listing, dialect.has_generations());
  ListRoom room(listing.prefix, options);
  ListPlace place;
  int idle_pages = 0;
  for (int pages = 0; pages < options.max_pages; ++pages) {
    SYSTOLE_ASSIGN_OR_RETURN(ListPage page, reader.Read(place, options.max_page_bytes));
    SYSTOLE_ASSIGN_OR_RETURN(const NewNames added, gathering.Add(page));
    SYSTOLE_RETURN_IF_ERROR(room.Take(added));
    if (page.next_token.empty()) return gathering.TakeContents();
    idle_pages = added.count > 0 ? 0 : idle_pages + 1;
    if (page.next_token == place.token) {
      return absl::DataLossError(
          "the server's list does not end: a page says that it is its own next page");
    }
    if (idle_pages > options.max_idle_pages) {
      return absl::DataLossError(absl::StrCat("the server's list does not end: ", idle_pages,
                                              " pages in a row have no new name"));
    }
    place.token = page.next_token;
    if (pages > 0) continue;
    SYSTOLE_ASSIGN_OR_RETURN(std::optional<BucketContents> rest,
                             ListInRanges(page, listing, dialect.has_generations(), options, room,
                                          [&](const ListPlace& next) {
                                            return reader.Read(
                                                next, options.max_page_bytes / kRangesAtOnce);
                                          }));
    if (!rest.has_value()) continue;
    BucketContents contents = gathering.TakeContents();
    AppendContents(contents, *std::move(rest));
    return contents;
  }
  return absl::ResourceExhaustedError(
      absl::StrCat("the list has more than ", options.max_pages, " pages"));
}

}  // namespace systole
