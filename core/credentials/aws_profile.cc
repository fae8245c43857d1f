#include "core/credentials/aws_profile.h"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/credentials/credential_file.h"
#include "core/status/status_macros.h"
#include "core/text/foreign_text.h"

namespace systole {
namespace {

// Settings that belong together: all of them must come from the same file.
constexpr absl::string_view kKeys[] = {"aws_access_key_id", "aws_secret_access_key",
                                       "aws_session_token"};

// The path of a file, and whether a variable names it.
std::pair<std::string, bool> PathOf(const CredentialSurroundings& surroundings,
                                    const char* variable, absl::string_view in_home) {
  const std::string home = surroundings.variable("HOME");
  const std::string named = surroundings.variable(variable);
  if (absl::StartsWith(named, "~/") && !home.empty()) {
    return {absl::StrCat(home, named.substr(1)), true};
  }
  if (!named.empty()) return {named, true};
  return {home.empty() ? "" : absl::StrCat(home, "/", in_home), false};
}

// The file that `variable` names, or else the default file, parsed. Empty if the default file does
// not exist.
absl::StatusOr<IniFile> ReadIni(const CredentialSurroundings& surroundings, const char* variable,
                                absl::string_view in_home, std::string& path) {
  bool is_named = false;
  std::tie(path, is_named) = PathOf(surroundings, variable, in_home);
  if (path.empty()) return IniFile();
  absl::StatusOr<std::string> text = ReadCredentialFile(path, "AWS's file", kMaxIniBytes);
  if (absl::IsNotFound(text.status())) {
    if (!is_named) return IniFile();
    return absl::FailedPreconditionError(
        absl::StrCat(variable, " names a file that does not exist: '", ForeignText(path),
                     "'; correct or unset the variable"));
  }
  if (absl::IsPermissionDenied(text.status())) {
    return absl::PermissionDeniedError(
        absl::StrCat(text.status().message(), "; let this user read it, or name another file by ",
                     variable, " (/dev/null for none)"));
  }
  SYSTOLE_RETURN_IF_ERROR(text.status());
  return ParseIni(*text, path);
}

// The section of a profile in the configuration file. Its header is [profile NAME], with or without
// quotes. For the default profile the header may also be [default], which is ignored if there is
// [profile default].
const IniSection* SectionOf(const IniFile& file, absl::string_view name) {
  const IniSection* found = nullptr;
  for (const auto& [title, section] : file) {
    absl::string_view rest = title;
    if (!absl::ConsumePrefix(&rest, "profile") || rest.empty() || !absl::ascii_isblank(rest[0])) {
      continue;
    }
    rest = absl::StripAsciiWhitespace(rest);
    if (rest.size() >= 2 && (rest[0] == '"' || rest[0] == '\'') && rest.back() == rest[0]) {
      rest = rest.substr(1, rest.size() - 2);
    }
    if (rest == name) found = &section;
  }
  if (found == nullptr && name == "default") {
    if (const auto plain = file.find("default"); plain != file.end()) return &plain->second;
  }
  return found;
}

}  // namespace

std::string AwsProfile::Get(absl::string_view key) const {
  const auto found = settings.find(std::string(key));
  return found == settings.end() ? "" : found->second;
}

std::string AwsProfile::Shown() const {
  return absl::StrCat("profile '", ForeignName(name), "' of '", ForeignText(config_path), "' or '",
                      ForeignText(credentials_path), "'");
}

absl::StatusOr<AwsProfile> ReadAwsProfile(const CredentialSurroundings& surroundings) {
  AwsProfile profile;
  const char* named_by = nullptr;
  for (const char* variable : {"AWS_PROFILE", "AWS_DEFAULT_PROFILE"}) {
    profile.name = surroundings.variable(variable);
    if (!profile.name.empty()) {
      named_by = variable;
      break;
    }
  }
  if (named_by == nullptr) profile.name = "default";
  SYSTOLE_ASSIGN_OR_RETURN(const IniFile config, ReadIni(surroundings, "AWS_CONFIG_FILE",
                                                         ".aws/config", profile.config_path));
  SYSTOLE_ASSIGN_OR_RETURN(const IniFile credentials,
                           ReadIni(surroundings, "AWS_SHARED_CREDENTIALS_FILE", ".aws/credentials",
                                   profile.credentials_path));
  const IniSection* const in_config = SectionOf(config, profile.name);
  const auto in_credentials = credentials.find(profile.name);
  if (in_credentials != credentials.end()) profile.settings = in_credentials->second;
  if (in_config != nullptr) {
    const bool has_keys = std::any_of(
        std::begin(kKeys), std::end(kKeys),
        [&](absl::string_view key) { return profile.settings.contains(std::string(key)); });
    for (const auto& [key, value] : *in_config) {
      const bool is_key = std::find(std::begin(kKeys), std::end(kKeys), key) != std::end(kKeys);
      if (!is_key || !has_keys) profile.settings.emplace(key, value);
    }
  }
  if (const std::string services = profile.Get("services"); !services.empty()) {
    const auto section = config.find(absl::StrCat("services ", services));
    if (section != config.end()) profile.services = section->second;
  }
  if (named_by != nullptr && in_config == nullptr && in_credentials == credentials.end()) {
    return absl::FailedPreconditionError(
        absl::StrCat("there is no ", profile.Shown(), "; correct or unset ", named_by));
  }
  return profile;
}

}  // namespace systole
