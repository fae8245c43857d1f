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
// time (ranged_list.h). If the server cannot list ranges, the list is read page by page. The bucket
// may change during the call, but no name comes twice.
//   NotFound, PermissionDenied, ..  the server refuses; the error of WebDialect::RefusalOf().
//   ResourceExhausted               more names, bytes or pages than `options` allow.
//   DeadlineExceeded                longer than `options` allow.
//   DataLoss                        an error of ParseListPage(), a key outside the prefix, or
//                                   pages that repeat without end.
//   Cancelled                       InterruptRequested().
absl::StatusOr<BucketContents> ListBucket(WebConnection& connection, const WebDialect& dialect,
                                          const BucketListing& listing,
                                          const BucketListOptions& options);

}  // namespace systole

#endif  // SYSTOLE_CORE_STORAGE_BUCKET_BUCKET_LIST_H_
