// Lists a bucket in ranges of keys, some at a time. The pages of a list come one after the other,
// because each page says where the next page begins. But a list can also begin after any key.
//
//   page 1: train-00000 .. train-00999, and the list goes on
//   --> (train-00999, train-1], (train-1, ..)                after page 1
//   --> (train-01999, train-03], (train-03, train-1], ..     after each further page
//
// The keys of a page show where the rest of the list can be divided, because the digits of a
// counter usually go on. A wrong guess costs requests, but no key is lost. When a range is done,
// the rest of another range is divided. Let n be the number of pages that have keys and are not the
// last page of their range. There are at most n + 1 ranges. So a list takes at most one request
// more than twice as many as it would take without ranges. A list of one page takes one request.
//
// A server may not know how to begin after a key, or may not list keys in order. So each page is
// checked: its keys must be in order and come after the key that the request named. The last page
// of a range also shows the first key after the range. The next range must begin with this key.
#ifndef SYSTOLE_CORE_STORAGE_BUCKET_RANGED_LIST_H_
#define SYSTOLE_CORE_STORAGE_BUCKET_RANGED_LIST_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/storage/bucket/bucket_answer.h"
#include "core/storage/bucket/list_gathering.h"

namespace systole {

// The most ranges that are listed at a time, with one request each.
inline constexpr int kRangesAtOnce = 16;

// Where a page of a list begins.
struct ListPlace {
  std::string token;  // ListPage::next_token of the page before.
  std::string after;  // If there is no token: the page has keys after this one.
};

// Returns the page that begins at the place. Called by several threads at a time.
using ReadListPage = absl::FunctionRef<absl::StatusOr<ListPage>(const ListPlace& place)>;

// Lists what comes after `first`, the first page of the list. REQUIRES: `first` is not also the
// last page. Nullopt if the list must be read page by page, because the server cannot list ranges,
// or because the bucket changed at the border of two ranges. `room` already counts the names of
// `first`.
//   Unavailable, DeadlineExceeded, Cancelled   errors of `read`. Its other errors give nullopt,
//                                              because the server may refuse to begin after a key.
//   ResourceExhausted                          more than `options` or `room` allow.
absl::StatusOr<std::optional<BucketContents>> ListInRanges(const ListPage& first,
                                                           const BucketListing& listing,
                                                           bool has_generations,
                                                           const BucketListOptions& options,
                                                           const ListRoom& room, ReadListPage read);

// Texts at which the rest of a range may be divided: at most `at_most`, in ascending order, greater
// than `last` and less than `end` (empty: no end). `first` and `last` are the first and the last
// key of a page. All texts begin with the first `prefix_bytes` of `last`. Thread-safe.
std::vector<std::string> GuessSplits(absl::string_view first, absl::string_view last,
                                     absl::string_view end, size_t prefix_bytes, size_t at_most);

}  // namespace systole

#endif  // SYSTOLE_CORE_STORAGE_BUCKET_RANGED_LIST_H_
