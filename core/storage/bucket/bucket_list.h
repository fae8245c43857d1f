// Lists of a bucket, page by page.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_STORAGE_BUCKET_BUCKET_LIST_H_
#define SYSTOLE_CORE_STORAGE_BUCKET_BUCKET_LIST_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/storage/bucket/bucket_name.h"
#include "core/storage/object_names.h"
#include "core/storage/store.h"
#include "core/storage/web/web_source.h"

namespace systole {

// A server decides how long its list is. The names are kept in memory until the list ends.
struct BucketListOptions {
  size_t max_names = 1'000'000;
  uint64_t max_name_bytes = uint64_t{256} << 20;
  // The most bytes of one page, which is XML. 1,000 keys of 1,024 bytes, encoded, take 4 MB at
  // most.
  uint64_t max_page_bytes = uint64_t{16} << 20;
  int max_pages = 10'000;
  // The most pages in a row that bring no new name. Cloud Storage sends such pages where objects
  // were deleted.
  int max_idle_pages = 16;
  // The time for all pages together. Without this bound a server could send one name a minute, and
  // a start would take a week. Usually 1,000,000 names are 1,000 pages of some 100 ms each.
  absl::Duration max_time = absl::Minutes(10);
};

// The part of a bucket that is listed.
struct BucketListing {
  BucketName prefix;          // All keys that begin with its key.
  bool into_folders = false;  // False: a name ends at the first '/' after the prefix.
  bool with_states = false;   // Whether BucketContents::states are wanted.
};

struct BucketContents {
  // Names with scheme and bucket. Names of folders, and of objects that stand for folders, end with
  // '/'.
  ObjectNames names;
  // The states of objects, as Stat() would return them. The keys are views of `names`. Objects
  // whose state the list does not show are missing.
  absl::flat_hash_map<absl::string_view, StoredState> states;
};

// Lists the bucket. The bucket may change while it is listed, but no name comes twice.
//   NotFound, PermissionDenied, ..  WebDialect::RefusalOf(), of this dialect's server.
//   ResourceExhausted               more than `options` allow.
//   DeadlineExceeded                longer than `options` allow.
//   DataLoss                        ParseListPage(); keys outside the prefix; pages that repeat.
//   Cancelled                       InterruptRequested().
absl::StatusOr<BucketContents> ListBucket(WebConnection& connection, const WebDialect& dialect,
                                          const BucketListing& listing,
                                          const BucketListOptions& options);

}  // namespace systole

#endif  // SYSTOLE_CORE_STORAGE_BUCKET_BUCKET_LIST_H_
