// Gathers the names and states in a bucket's list, page by page, and limits the number of names.
#ifndef SYSTOLE_CORE_STORAGE_BUCKET_LIST_GATHERING_H_
#define SYSTOLE_CORE_STORAGE_BUCKET_LIST_GATHERING_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/storage/bucket/bucket_answer.h"
#include "core/storage/bucket/bucket_name.h"
#include "core/storage/object_names.h"
#include "core/storage/store.h"

namespace systole {

// The bounds of a list. Without bounds, a server could send a list without end, whose names are all
// kept in memory.
struct BucketListOptions {
  size_t max_names = 1'000'000;
  uint64_t max_name_bytes = uint64_t{256} << 20;
  // The most bytes of all pages that are being received at one time. A page is XML with up to 1,000
  // keys. It usually has some 400 kB. If each key has 1,024 bytes, which are percent-encoded, the
  // page has up to 4 MB.
  uint64_t max_page_bytes = uint64_t{16} << 20;
  // The most pages. In a list in ranges, the last page of each range does not count
  // (ranged_list.h). Such a list has at most max_pages + 1 ranges, so at most 2 * max_pages + 1
  // pages in all.
  int max_pages = 10'000;
  // The most pages in a row that bring no new name. Cloud Storage sends such pages where objects
  // were deleted.
  int max_idle_pages = 16;
  // The most time for all pages together. Without this bound a server could send one page a minute:
  // 10,000 pages would take a week. Usually 1,000,000 names are 1,000 pages of some 100 ms each.
  absl::Duration max_time = absl::Minutes(10);
};

// The part of a bucket that is listed.
struct BucketListing {
  BucketName prefix;          // The list has all keys that begin with prefix.key.
  bool into_folders = false;  // False: a name ends at the first '/' after the prefix.
  bool with_states = false;   // Whether BucketContents::states are wanted.
};

struct BucketContents {
  // Names with scheme and bucket. Names of folders, and of objects that stand for folders, end with
  // '/'.
  ObjectNames names;
  // The states of objects, as Stat() would return them. The keys of this map are views of the
  // strings in `names`. If the list does not show an object's state, the object is missing here.
  absl::flat_hash_map<absl::string_view, StoredState> states;
};

// Adds `more` to `all`. O(more.names.size()) if each name in `more` is greater than all names in
// `all`.
void AppendContents(BucketContents& all, BucketContents more);

// The number of the names that a page adds to the list, and the bytes of these names.
struct NewNames {
  size_t count = 0;
  uint64_t bytes = 0;
};

// Counts the names of a list, and limits them. Thread-compatible.
class ListRoom {
 public:
  // `prefix` is only for the error's message: all names begin with it.
  ListRoom(const BucketName& prefix, const BucketListOptions& options)
      : prefix_(prefix), max_names_(options.max_names), max_name_bytes_(options.max_name_bytes) {}

  // Counts `names`. ResourceExhausted if the list now has more names or more bytes of names than
  // the options allow. The message says what to do.
  absl::Status Take(const NewNames& names);

 private:
  BucketName prefix_;
  size_t max_names_;
  uint64_t max_name_bytes_;
  NewNames taken_;
};

// Collects the names of a list, or of a part of a list, page by page. Thread-compatible. Borrows
// the listing.
class ListGathering {
 public:
  ListGathering(const BucketListing& listing, bool has_generations)
      : listing_(&listing), has_generations_(has_generations), root_(listing.prefix.Root()) {}

  // Adds the names and states of the page to the contents. DataLoss if a key does not begin with
  // the prefix.
  absl::StatusOr<NewNames> Add(const ListPage& page);

  BucketContents TakeContents() { return std::move(contents_); }

 private:
  // `object` is null for a folder.
  absl::Status AddKey(const std::string& key, const ListedObject* object, NewNames& added);
  void AddState(const std::string& name, const ListedObject& object);

  const BucketListing* listing_;
  bool has_generations_;
  std::string root_;
  BucketContents contents_;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_STORAGE_BUCKET_LIST_GATHERING_H_
