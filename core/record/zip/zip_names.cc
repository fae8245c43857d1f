#include "core/record/zip/zip_names.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace systole {
namespace {

// The bytes that a made name takes in addition to its characters: a node, a string and the
// allocator's share.
constexpr size_t kBytesPerName = 64;

}  // namespace

ZipNames::ZipNames(std::vector<ZipNamesOfMember> members) {
  size_t left = kMaxKnownNames;
  for (ZipNamesOfMember& of : members) {
    Member& member = members_.emplace_back();
    if (!of.prefix.empty()) {
      for (std::string& feature : of.features) {
        if (left == 0) break;
        --left;
        std::string joined = absl::StrCat(of.prefix, feature);
        member.names.emplace(std::move(feature), std::move(joined));
      }
    }
    member.dataset = std::move(of.dataset);
    member.prefix = std::move(of.prefix);
  }
}

std::optional<absl::string_view> ZipNames::NameOf(size_t member, absl::string_view name,
                                                  MadeText& made, size_t& left) const {
  const Member& of = members_[member];
  if (of.prefix.empty()) return name;
  if (const auto known = of.names.find(name); known != of.names.end()) return known->second;
  const size_t bytes = kBytesPerName + of.prefix.size() + name.size();
  if (bytes > left) return std::nullopt;
  left -= bytes;
  return made.Keep(absl::StrCat(of.prefix, name));
}

}  // namespace systole
