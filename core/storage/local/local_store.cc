#include "core/storage/local/local_store.h"

#include <fnmatch.h>
#include <glob.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/status/status_macros.h"
#include "core/storage/local/file_sink.h"
#include "core/storage/local/file_source.h"
#include "core/text/foreign_text.h"

namespace systole {
namespace {

// The mode of the file or folder at `path`; nullopt if there is none.
std::optional<mode_t> ModeOf(const std::string& path) {
  struct stat info;
  if (::stat(path.c_str(), &info) != 0) return std::nullopt;
  return info.st_mode;
}

absl::StatusOr<std::vector<std::string>> PathsIn(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder, error), end; at != end; at.increment(error)) {
    if (error) break;
    if (at->path().filename().string()[0] != '.') paths.push_back(at->path().string());
  }
  if (!error) return paths;
  return absl::ErrnoToStatus(error.value(),
                             absl::StrCat("cannot read the folder \"", ForeignText(folder), "\""));
}

// Every path that `pattern` names: files, folders and anything else, such as devices.
absl::StatusOr<std::vector<std::string>> Expand(const std::string& pattern) {
  if (const std::optional<mode_t> mode = ModeOf(pattern); mode.has_value()) {
    if (S_ISDIR(*mode)) return PathsIn(pattern);
    return std::vector<std::string>{pattern};
  }
  glob_t matches = {};
  const int result = ::glob(pattern.c_str(), GLOB_ERR | GLOB_NOSORT, nullptr, &matches);
  const int error = errno;
  absl::Cleanup free_matches = [&matches] { ::globfree(&matches); };
  switch (result) {
    case 0:
      return std::vector<std::string>(matches.gl_pathv, matches.gl_pathv + matches.gl_pathc);
    case GLOB_NOMATCH:
      return PatternMatchesNothing(pattern);
    case GLOB_NOSPACE:
      return absl::ResourceExhaustedError(
          absl::StrCat("no memory to expand pattern \"", ForeignText(ShownName(pattern)), "\""));
    default:
      return absl::ErrnoToStatus(error, absl::StrCat("cannot read a folder of pattern \"",
                                                     ForeignText(ShownName(pattern)), "\""));
  }
}

// Removes "." and ".." from an absolute path. A ".." leads out of the folder before it. If that
// folder is a symbolic link, the ".." leads out of the link's target.
std::string WithoutDots(const std::filesystem::path& path) {
  std::filesystem::path full = "/";
  for (const std::filesystem::path& part : path.relative_path()) {
    if (part.empty() || part == ".") continue;
    if (part != "..") {
      full /= part;
      continue;
    }
    std::error_code error;  // A link that leads nowhere counts as a folder.
    if (std::filesystem::is_symlink(std::filesystem::symlink_status(full, error))) {
      std::filesystem::path target = std::filesystem::canonical(full, error);
      if (!error) full = std::move(target);
    }
    full = full.parent_path();
  }
  return full.string();
}

}  // namespace

absl::StatusOr<std::vector<std::string>> LocalStore::List(const std::string& pattern,
                                                          NameFilter wanted) const {
  SYSTOLE_ASSIGN_OR_RETURN(std::vector<std::string> paths, Expand(pattern));
  std::erase_if(paths, [wanted](const std::string& path) { return !wanted(path); });
  for (const std::string& path : paths) {
    const absl::StatusOr<FileState> file = StatFile(path);
    if (!file.ok()) {
      return absl::Status(file.status().code(),
                          absl::StrCat("pattern \"", ForeignText(ShownName(pattern)),
                                       "\": ", file.status().message()));
    }
  }
  return paths;
}

bool LocalStore::Takes(const std::string& pattern, const std::string& name) const {
  if (pattern == name) return true;
  if (const std::optional<mode_t> mode = ModeOf(pattern); mode.has_value()) {
    if (!S_ISDIR(*mode) || BaseName(name)[0] == '.') return false;
    return (std::filesystem::path(pattern) / std::string(BaseName(name))).string() == name;
  }
  return ::fnmatch(pattern.c_str(), name.c_str(), FNM_PATHNAME | FNM_PERIOD) == 0;
}

absl::StatusOr<std::vector<std::string>> LocalStore::ListFolder(const std::string& folder) const {
  return PathsIn(folder.empty() ? "." : folder);
}

absl::StatusOr<std::unique_ptr<ByteSource>> LocalStore::Open(const std::string& name) const {
  return FileSource::Open(name);
}

absl::StatusOr<StoredState> LocalStore::Stat(const std::string& name) const {
  SYSTOLE_ASSIGN_OR_RETURN(const FileState file, StatFile(name));
  return StoredState{.size_bytes = file.size_bytes, .identity = file.Identity()};
}

absl::StatusOr<std::unique_ptr<ByteSink>> LocalStore::Create(const std::string& name) const {
  return FileSink::Create(name, {.sync = false});
}

absl::Status LocalStore::Remove(const std::string& name) const {
  if (::unlink(name.c_str()) == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot remove \"", ForeignText(name), "\""));
}

void LocalStore::RemoveLeftovers(absl::Span<const std::string> names) const {
  std::map<std::string, std::set<std::string>> by_folder;
  for (const std::string& name : names) {
    const std::filesystem::path path = name;
    by_folder[path.parent_path().string()].insert(path.filename().string());
  }
  for (const auto& [folder, ours] : by_folder) {
    RemoveStaleTemporaries(folder, [&ours = ours](absl::string_view base_name) {
      return ours.count(std::string(base_name)) > 0;
    });
  }
}

std::string LocalStore::FullName(const std::string& name) const {
  std::error_code error;  // Set if the current folder is missing. Then the path stays relative.
  const std::filesystem::path absolute = std::filesystem::absolute(name, error);
  return error ? std::filesystem::path(name).lexically_normal().string() : WithoutDots(absolute);
}

}  // namespace systole
