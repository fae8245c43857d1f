#include "core/storage/list_shards.h"

#include <fnmatch.h>
#include <glob.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <system_error>
#include <tuple>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/status/foreign_text.h"
#include "core/status/status_macros.h"
#include "core/storage/byte_source.h"
#include "core/storage/file_source.h"

namespace systole {
namespace {

bool LiesBesideShards(absl::string_view path) {
  return absl::EndsWith(path, ".idx") || absl::EndsWith(path, ".idx.hash") ||
         absl::EndsWith(path, ".idx.restart") || absl::EndsWith(path, kLabelsFileName) ||
         absl::EndsWith(path, kManifestSuffix) || absl::EndsWith(path, ".json");
}

// The mode of what stands at `path`; nullopt if nothing does.
std::optional<mode_t> ModeOf(const std::string& path) {
  struct stat info;
  if (::stat(path.c_str(), &info) != 0) return std::nullopt;
  return info.st_mode;
}

// Whether `pattern` is a URL, such as "gs://bucket/shards-*".
bool IsUrl(absl::string_view pattern) {
  const size_t end = pattern.find("://");
  return end != absl::string_view::npos && end > 0 &&
         std::all_of(pattern.begin(), pattern.begin() + end, [](char c) {
           return absl::ascii_isalnum(c) || c == '+' || c == '.' || c == '-';
         });
}

// Every path that `pattern` names, whatever it is.
absl::StatusOr<std::vector<std::string>> Expand(const std::string& pattern) {
  if (const std::optional<mode_t> mode = ModeOf(pattern); mode.has_value()) {
    if (S_ISDIR(*mode)) return ListFolder(pattern);
    return std::vector<std::string>{pattern};
  }
  if (IsUrl(pattern)) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", ForeignText(pattern),
                     "\" is a URL, and only paths of this machine are read; mount the store as a "
                     "folder or copy the shards here, and give their path"));
  }
  glob_t matches = {};
  const int result = ::glob(pattern.c_str(), GLOB_ERR | GLOB_NOSORT, nullptr, &matches);
  const int error = errno;
  absl::Cleanup free_matches = [&matches] { ::globfree(&matches); };
  switch (result) {
    case 0:
      return std::vector<std::string>(matches.gl_pathv, matches.gl_pathv + matches.gl_pathc);
    case GLOB_NOMATCH:
      return absl::NotFoundError(
          absl::StrCat("pattern \"", ForeignText(pattern),
                       "\" matches no file; check the path, and quote it for the shell"));
    case GLOB_NOSPACE:
      return absl::ResourceExhaustedError(
          absl::StrCat("no memory to expand pattern \"", ForeignText(pattern), "\""));
    default:
      return absl::ErrnoToStatus(
          error, absl::StrCat("cannot read a folder on the way of pattern \"", ForeignText(pattern),
                              "\""));
  }
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ListFolder(const std::string& folder) {
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

bool PatternTakes(const std::string& pattern, const std::string& path) {
  if (LiesBesideShards(path)) return false;
  if (pattern == path) return true;
  if (const std::optional<mode_t> mode = ModeOf(pattern); mode.has_value()) {
    if (!S_ISDIR(*mode) || BaseName(path)[0] == '.') return false;
    return (std::filesystem::path(pattern) / std::string(BaseName(path))).string() == path;
  }
  return ::fnmatch(pattern.c_str(), path.c_str(), FNM_PATHNAME | FNM_PERIOD) == 0;
}

absl::StatusOr<std::vector<std::string>> ListShards(absl::Span<const std::string> patterns) {
  if (patterns.empty()) return absl::InvalidArgumentError("no pattern to list shards of");
  std::vector<std::string> shards;
  for (const std::string& pattern : patterns) {
    SYSTOLE_ASSIGN_OR_RETURN(const std::vector<std::string> paths, Expand(pattern));
    const size_t before = shards.size();
    for (const std::string& path : paths) {
      if (LiesBesideShards(path)) continue;
      const absl::StatusOr<FileIdentity> file = StatFile(path);
      if (!file.ok()) {
        return absl::Status(file.status().code(), absl::StrCat("pattern \"", ForeignText(pattern),
                                                               "\": ", file.status().message()));
      }
      shards.push_back(path);
    }
    if (shards.size() == before) {
      return absl::NotFoundError(absl::StrCat(
          "pattern \"", ForeignText(pattern), "\" matches ",
          paths.empty() ? "an empty folder"
                        : "only files that lie beside shards (index files, labels.txt, manifests)",
          "; want TFRecord shards"));
    }
  }
  // By name first: the folders that they lie in may differ from machine to machine.
  std::sort(shards.begin(), shards.end(), [](const std::string& a, const std::string& b) {
    return std::tuple(BaseName(a), a) < std::tuple(BaseName(b), b);
  });
  shards.erase(std::unique(shards.begin(), shards.end()), shards.end());
  return shards;
}

}  // namespace systole
