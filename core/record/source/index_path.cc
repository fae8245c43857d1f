#include "core/record/source/index_path.h"

#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/checksum/xxh3.h"
#include "core/storage/byte_source.h"
#include "core/storage/stores/store_table.h"

namespace systole {

std::string WithEnding(absl::string_view name, absl::string_view ending) {
  const absl::string_view base = BaseName(name);
  const auto end = static_cast<size_t>(base.data() + base.size() - name.data());
  return absl::StrCat(name.substr(0, end), ending, name.substr(end));
}

std::string IndexPath(const std::string& shard_path, absl::string_view index_dir) {
  if (index_dir.empty()) return WithEnding(shard_path, ".idx");
  const absl::StatusOr<const Store*> store = StoreOf(shard_path);
  return absl::StrFormat("%s/%s-%016x.idx", index_dir, BaseName(shard_path),
                         Xxh3(store.ok() ? (*store)->FullName(shard_path) : shard_path));
}

std::string RestartPath(absl::string_view index_path) { return WithEnding(index_path, ".restart"); }

}  // namespace systole
