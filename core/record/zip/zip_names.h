// The names of the features of joined records. A joined record is made of one record of each member
// of a zip. The joined name of a feature is its member's prefix, followed by its name in the
// member's record.
//
// Thread-compatible: immutable. The caller's MadeText keeps the names that are made for one record.
#ifndef SYSTOLE_CORE_RECORD_ZIP_ZIP_NAMES_H_
#define SYSTOLE_CORE_RECORD_ZIP_ZIP_NAMES_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "core/example/example_format.h"

namespace systole {

// The facts about a member from which joined names are made.
struct ZipNamesOfMember {
  std::string dataset;  // For messages.
  std::string prefix;
  // The names of features that are known to be in the member's records. For these, joined names are
  // made in advance and kept, up to ZipNames::kMaxKnownNames for all members together. All other
  // joined names are made anew for each record.
  std::vector<std::string> features = {};
};

class ZipNames {
 public:
  // The most bytes of joined names that are made for one record. Names that were made in advance do
  // not count. Without this limit, a record of a million tiny features would take a hundred times
  // its size.
  static constexpr size_t kMaxMadeBytes = size_t{4} << 20;

  // The most joined names that are made in advance and kept.
  static constexpr size_t kMaxKnownNames = 10'000;

  explicit ZipNames(std::vector<ZipNamesOfMember> members);

  size_t num_members() const { return members_.size(); }
  const std::string& dataset(size_t member) const { return members_[member].dataset; }
  const std::string& prefix(size_t member) const { return members_[member].prefix; }

  // The joined name of the feature `name` of a member. The view is valid while `name`, `made` and
  // this object exist. `left` is how much of kMaxMadeBytes remains for the record, and becomes
  // smaller if a name is made. Nullopt: `left` is too small for the name.
  std::optional<absl::string_view> NameOf(size_t member, absl::string_view name, MadeText& made,
                                          size_t& left) const;

 private:
  struct Member {
    std::string dataset;
    std::string prefix;
    absl::flat_hash_map<std::string, std::string>
        names;  // From a name to its joined name. Empty without a prefix.
  };

  std::vector<Member> members_;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_RECORD_ZIP_ZIP_NAMES_H_
