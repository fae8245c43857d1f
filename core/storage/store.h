// A store of shards, and of the small files beside them: the files of this machine, objects in
// memory, a bucket. Each store has a folder beside this file, and a line in stores/store_table.cc.
//
// Names and patterns begin with the store's scheme ("mem://x/a"). Only the names of the local store
// are paths without a scheme. A '/' separates the parts of a name. The part before the last '/' is
// the folder of a name, even if the store itself has no folders.
#ifndef SYSTOLE_CORE_STORAGE_STORE_H_
#define SYSTOLE_CORE_STORAGE_STORE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
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

// The most bytes of an identity.
inline constexpr size_t kMaxIdentityBytes = 256;

// The present state of a file in a store.
struct StoredState {
  uint64_t size_bytes = 0;
  // A text that changes when the bytes change. It is made of an ETag, a generation or a time. A
  // copy and its original may have the same identity. An identity has at most kMaxIdentityBytes of
  // printable ASCII. Only the store itself parses it. Empty: the store cannot tell states apart.
  // Then files that were kept for a state, such as an index, are checked before they are used.
  std::string identity;
};

// A file as a list shows it.
struct ListedFile {
  std::string name;
  // As Stat() would return it. If the list does not show the state, `state.identity` is empty.
  StoredState state = {};
};

// The result of ListFolder(), with the files' states.
struct FolderList {
  std::string folder;  // Ends with '/'.
  std::vector<ListedFile> files;
};

// The files that a pattern names, and the folder that was listed to find them.
struct PatternList {
  std::vector<ListedFile> files;
  // All files in the folder, if the store listed a whole folder.
  std::optional<FolderList> folder = {};
};

// The FailedPrecondition that ByteSource::CheckUnchanged() returns. `how` says what happened to the
// source since it was opened: "was replaced". The message has only the base name of `name`.
absl::Status ChangedSinceOpened(absl::string_view name, absl::string_view how);

// The NotFound that Store::List() returns if a pattern names nothing.
absl::Status PatternMatchesNothing(absl::string_view pattern);

// Thread-safe. Lives until the process ends.
class Store {
 public:
  // Whether the caller wants the file of this name.
  using NameFilter = absl::FunctionRef<bool(absl::string_view name)>;

  virtual ~Store() = default;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  // The files that `pattern` names and for which `wanted` returns true, in no order. `wanted` is
  // called once for each name. A pattern is a name, a glob or a folder. In a glob, *, ? and [..]
  // match neither a '/' nor a '.' at the beginning of a part. A folder means all files in it that
  // are not hidden. If a file or folder has the pattern as its name, the pattern is not taken as a
  // glob.
  //   NotFound           the pattern names nothing. But the result for an empty folder is an empty
  //                      list. If a store would have to send a request for each name, List() may
  //                      return a name that does not exist. Then Open() returns this error.
  //   InvalidArgument    a wanted name is a folder or anything else that is not a file, or the
  //                      pattern is malformed.
  //   PermissionDenied   a folder on the path cannot be read.
  // Errors name the pattern.
  virtual absl::StatusOr<std::vector<std::string>> List(const std::string& pattern,
                                                        NameFilter wanted) const = 0;

  // Like List(), but also returns the states that the store's list shows. The default
  // implementation returns no states. A store that returns states may list the whole folder of the
  // pattern, if the user may list this folder.
  virtual absl::StatusOr<PatternList> ListStates(const std::string& pattern,
                                                 NameFilter wanted) const;

  // `name` is the name of a file that does not exist. Returns whether List() would return this name
  // for `pattern` if the file existed. The folder in `name` must be written as in the names that
  // List() returns.
  virtual bool Takes(const std::string& pattern, const std::string& name) const = 0;

  // The names of all files and folders in `folder`, in no order. Hidden files and folders are left
  // out. `folder` ends with '/', or is empty for the folder of names without '/'.
  virtual absl::StatusOr<std::vector<std::string>> ListFolder(const std::string& folder) const = 0;

  // NotFound, PermissionDenied, or InvalidArgument if `name` is not a file. Each message has the
  // name.
  virtual absl::StatusOr<std::unique_ptr<ByteSource>> Open(const std::string& name) const = 0;
  virtual absl::StatusOr<StoredState> Stat(const std::string& name) const = 0;
  // Opens the file in the state that ListStates() showed. If a store can tie each read to this
  // state, OpenInState() sends no request, and a read fails with FailedPrecondition if the file is
  // in another state. The default implementation opens the file, and returns FailedPrecondition if
  // the file is in another state. REQUIRES: state has an identity.
  virtual absl::StatusOr<std::unique_ptr<ByteSource>> OpenInState(const std::string& name,
                                                                  const StoredState& state) const;

  // Begins a new file. When the sink is closed, the new file replaces an earlier file of this name
  // as a whole. Use Create() only for files that can be made again, such as an index, because a
  // power cut may destroy the file.
  //   FailedPrecondition   the store is read-only (the default).
  // Other errors depend on the store. Each message has the file's name.
  virtual absl::StatusOr<std::unique_ptr<ByteSink>> Create(const std::string& name) const;

  // Removes a file that Create() made. NotFound if there is no such file; FailedPrecondition if the
  // store is read-only (the default).
  virtual absl::Status Remove(const std::string& name) const;

  // If a process is killed while it writes a file with Create(), an unfinished file may stay in the
  // store. Removes such unfinished files of these names.
  virtual void RemoveLeftovers(absl::Span<const std::string> /*names*/) const {}

  // The full name of the file. All names under which a file can be opened have the same full name.
  virtual std::string FullName(const std::string& name) const { return name; }

 protected:
  Store() = default;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_STORAGE_STORE_H_
