// Lists a bucket in ranges of keys, several ranges at a time. The pages of one list can only be
// requested one after the other, because each page says where the next page begins. But a list can
// begin after any key. So each range but the first is requested as a list of its own. The first
// range goes on with the list of page 1.
//
//   page 1: train-00000 .. train-00999, and more pages follow
//   --> the ranges (train-00999, train-1] and (train-1, end of the list)
//   page 2: train-01000 .. train-01999, the first page of the range (train-00999, train-1]
//   --> the rest of this range is divided into (train-01999, train-06] and (train-06, train-1]
//
// The keys of a page show where the rest of the list can be divided: if these keys have a counter,
// later keys probably have the counter's next digits. A wrong guess costs requests, but no key is
// lost. When a range is done, the rest of another range is divided.
//   The last page of each range may be an extra request. Let n be the number of all other pages
// that have keys. There are at most n + 1 ranges. So a list that takes m requests without ranges
// takes at most m + (m + 1) requests in ranges. A list of one page takes one request.
//
// Some servers cannot begin a list after a key, or do not list keys in order. So each page is
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
  std::string after;  // Used if there is no token: the page begins after this key.
};

// Returns the page that begins at the place. Called by several threads at a time.
using ReadListPage = absl::FunctionRef<absl::StatusOr<ListPage>(const ListPlace& place)>;

// Lists the rest of a list after its first page, `first`. REQUIRES: more pages follow. Nullopt if
// the list must be read page by page, because the server cannot list ranges, or because the bucket
// changed at the border of two ranges. `room` already counts the names of `first`.
//   Unavailable, DeadlineExceeded, Cancelled   errors of `read`. Any other error of `read` gives
//                                              nullopt, because the server may refuse to begin a
//                                              list after a key.
//   ResourceExhausted                          more than `options` or `room` allow.
absl::StatusOr<std::optional<BucketContents>> ListInRanges(const ListPage& first,
                                                           const BucketListing& listing,
                                                           bool has_generations,
                                                           const BucketListOptions& options,
                                                           const ListRoom& room, ReadListPage read);

// Texts at which the rest of a range may be divided: at most `at_most`, in ascending order, greater
// than `last` and less than `end` (empty: no end). `first` and `last` are the first and the last
// key of a page. All texts begin with the first `prefix_bytes` bytes of `last`. Thread-safe.
std::vector<std::string> GuessSplits(absl::string_view first, absl::string_view last,
                                     absl::string_view end, size_t prefix_bytes, size_t at_most);

}  // namespace systole

#endif  // SYSTOLE_CORE_STORAGE_BUCKET_RANGED_LIST_H_
