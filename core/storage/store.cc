#include "core/storage/store.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status/status_macros.h"
#include "core/text/foreign_text.h"

namespace systole {

absl::Status ChangedSinceOpened(absl::string_view name, absl::string_view how) {
  return absl::FailedPreconditionError(
      absl::StrCat("shard \"", ForeignName(BaseName(name)), "\" ", how,
                   " since it was opened; open the dataset anew (restart the server, or make a new "
                   "LocalFeed) to read what is there now"));
}

absl::Status PatternMatchesNothing(absl::string_view pattern) {
  return absl::NotFoundError(absl::StrCat("pattern \"", ForeignText(ShownName(pattern)),
                                          "\" matches no file; check the path, and put it in "
                                          "quotes, so that the shell does not expand it"));
}

absl::StatusOr<PatternList> Store::ListStates(const std::string& pattern, NameFilter wanted) const {
  SYSTOLE_ASSIGN_OR_RETURN(std::vector<std::string> names, List(pattern, wanted));
  PatternList list;
  list.files.reserve(names.size());
  for (std::string& name : names) list.files.push_back({.name = std::move(name)});
  return list;
}

absl::StatusOr<std::unique_ptr<ByteSource>> Store::OpenInState(const std::string& name,
                                                               const StoredState& state) const {
  SYSTOLE_ASSIGN_OR_RETURN(std::unique_ptr<ByteSource> source, Open(name));
  SYSTOLE_ASSIGN_OR_RETURN(const uint64_t size_bytes, source->Size());
  if (size_bytes == state.size_bytes && source->identity() == state.identity) return source;
  return ChangedSinceOpened(name, "was replaced");
}

absl::StatusOr<std::unique_ptr<ByteSink>> Store::Create(const std::string& name) const {
  return absl::FailedPreconditionError(absl::StrCat(
      "\"", ForeignText(ShownName(name)),
      "\" cannot be written: its store is read-only; write into a folder or a bucket, and set "
      "--index-dir for indexes"));
}

absl::Status Store::Remove(const std::string& name) const { return Create(name).status(); }

}  // namespace systole
