#include "core/storage/list_shards.h"

#include <glob.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
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
         BaseName(path) == kLabelsFileName;
}

bool Exists(const std::string& path) {
  struct stat info;
  return ::stat(path.c_str(), &info) == 0;
}

// Every path that `pattern` names, whatever it is.
absl::StatusOr<std::vector<std::string>> Expand(const std::string& pattern) {
  if (Exists(pattern)) return std::vector<std::string>{pattern};
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
      return absl::NotFoundError(absl::StrCat("pattern \"", ForeignText(pattern),
                                              "\" matches index files (.idx) and ", kLabelsFileName,
                                              " only; want TFRecord shards"));
    }
  }
  std::sort(shards.begin(), shards.end());
  shards.erase(std::unique(shards.begin(), shards.end()), shards.end());
  return shards;
}

}  // namespace systole
