// A store of shards, and of the small files beside them: the files of this machine, objects in
// memory, a bucket. Each store is a folder beside this one and a line in stores/store_table.cc.
//
// Names and patterns are written with the store's scheme ("mem://x/a"); those of the local store
// are paths. Names have parts between '/'. What stands before the last '/' is the folder, whether
// the store has folders or not.
#ifndef SYSTOLE_CORE_STORAGE_STORE_H_
#define SYSTOLE_CORE_STORAGE_STORE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/storage/byte_sink.h"
#include "core/storage/byte_source.h"

namespace systole {

// Most bytes of an identity.
inline constexpr size_t kMaxIdentityBytes = 256;

// What stands under a name now.
struct StoredState {
  uint64_t size_bytes = 0;
  // Text that changes when the bytes do: an ETag, a generation, a time. It need not differ between
  // two places of the same bytes: a copy and its original may share one. At most kMaxIdentityBytes
  // of printable ASCII; nobody but the store looks into it. Empty = nothing tells one state from
  // another; what was kept for a state is then checked, not trusted.
  std::string identity;
};

// FailedPrecondition for ByteSource::CheckUnchanged(): the source `name`, by its base name, "was
// replaced" or whatever else `how` says, since it was opened.
absl::Status ChangedSinceOpened(absl::string_view name, absl::string_view how);

// NotFound for Store::List().
absl::Status PatternMatchesNothing(absl::string_view pattern);

// Thread-safe. Lives until the process ends.
class Store {
 public:
  // Whether a name is one that the caller wants.
  using NameFilter = absl::FunctionRef<bool(absl::string_view name)>;

  virtual ~Store() = default;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  // The files that `pattern` names and that are `wanted`, which is called once for each name. In no
  // order. A pattern is a name, a glob (*, ? and [..], none of which takes a '/', nor a '.' at the
  // beginning of a part), or a folder, which stands for all that lies in it and is not hidden. A
  // name that exists is never expanded.
  //   NotFound           the pattern names nothing. An empty folder is an empty list.
  //   InvalidArgument    a wanted name is a folder, or no file, or the pattern is malformed.
  //   PermissionDenied   a folder on the way cannot be read.
  // Errors name the pattern.
  virtual absl::StatusOr<std::vector<std::string>> List(const std::string& pattern,
                                                        NameFilter wanted) const = 0;

  // Whether List() would name the file `name` for `pattern` if it were there: for a file that is
  // missing. Its folder must be written as List() returns it.
  virtual bool Takes(const std::string& pattern, const std::string& name) const = 0;

  // The names of all that lies in a folder and is not hidden, in no order. `folder` ends with '/',
  // or is empty for the folder of names without '/'.
  virtual absl::StatusOr<std::vector<std::string>> ListFolder(const std::string& folder) const = 0;

  // NotFound, PermissionDenied, or InvalidArgument if `name` is no file; each names it.
  virtual absl::StatusOr<std::unique_ptr<ByteSource>> Open(const std::string& name) const = 0;
  virtual absl::StatusOr<StoredState> Stat(const std::string& name) const = 0;

  // A new file, which takes the place of another one of this name when it is closed, whole. For
  // what can be made again, such as an index: a power cut may take it.
  //   FailedPrecondition   the store keeps no files of ours (this class's answer).
  // Other errors are the store's; each names the file.
  virtual absl::StatusOr<std::unique_ptr<ByteSink>> Create(const std::string& name) const;

  // Removes a file that Create() made. NotFound if there is none; FailedPrecondition as Create().
  virtual absl::Status Remove(const std::string& name) const;

  // Removes what killed processes left of Create() for these names.
  virtual void RemoveLeftovers(absl::Span<const std::string> /*names*/) const {}

  // The same text for all names of one file.
  virtual std::string FullName(const std::string& name) const { return name; }

 protected:
  Store() = default;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_STORAGE_STORE_H_
