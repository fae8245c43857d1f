// Lists of a bucket.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_STORAGE_BUCKET_BUCKET_LIST_H_
#define SYSTOLE_CORE_STORAGE_BUCKET_BUCKET_LIST_H_

#include "absl/status/statusor.h"
#include "core/storage/bucket/list_gathering.h"
#include "core/storage/web/web_source.h"

namespace systole {

// Lists the bucket. If the list has more than one page, it is read in ranges of keys, several at a
// time (ranged_list.h). If the server cannot list ranges, it is read page by page. The bucket may
// change while it is listed, but no name comes twice.
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
