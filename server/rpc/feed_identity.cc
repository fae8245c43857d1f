#include "server/rpc/feed_identity.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/spec/where_columns.h"
#include "core/text/foreign_text.h"

namespace systole {

absl::Status CheckIdentity(const v1::FeedIdentity& expected, const v1::FeedIdentity& own,
                           const v1::FeedSpec& spec) {
  if (expected.spec_fingerprint() != 0 && expected.spec_fingerprint() != own.spec_fingerprint()) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "the spec is not the one expected: its fingerprint is %016x here, %016x was expected; "
        "either it was damaged on the way, or `expected` is ResolveFeed's answer to another spec",
        own.spec_fingerprint(), expected.spec_fingerprint()));
  }
  if (expected.dataset_fingerprint() != own.dataset_fingerprint()) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "the dataset is not the one this feed began with: its fingerprint is %016x here, %016x was "
        "expected; serve the same shards, or start the feed anew",
        own.dataset_fingerprint(), expected.dataset_fingerprint()));
  }
  if (expected.order_fingerprint() != own.order_fingerprint()) {
    return absl::FailedPreconditionError(absl::StrCat(
        absl::StrFormat("the order is not the one this feed began with (%016x here, %016x "
                        "expected): seed, shuffle, select "
                        "and tail must stay the same",
                        own.order_fingerprint(), expected.order_fingerprint()),
        WhereColumns(spec).empty()
            ? ""
            : absl::StrCat(". Perhaps this server's columns were made while other records were "
                           "damaged than on the first server: make the columns anew for every "
                           "server: ",
                           NoteAnewCommand(spec))));
  }
  // The expected version is empty if the client accepts any version.
  if (!expected.content_version().empty() && expected.content_version() != own.content_version()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the content version is ", own.content_version(), " here, ",
                     ForeignName(expected.content_version()),
                     " was expected: the bytes may differ; run one version on all servers"));
  }
  return absl::OkStatus();
}

}  // namespace systole
