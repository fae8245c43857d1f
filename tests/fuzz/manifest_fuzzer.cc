// Reads any bytes as a manifest beside shards. An accepted manifest lists a bounded number of files
// in its own folder. The first byte chooses the kind: 'j' is dataset_info.json, anything else a
// ShardManifest.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "core/dataset/manifest.h"
#include "core/status/check.h"
#include "tests/fuzz/fuzzer.h"

SYSTOLE_FUZZER(manifest, const uint8_t* data, size_t size) {
  using namespace systole;
  if (size == 0) return 0;
  const absl::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);
  const absl::string_view source = data[0] == 'j' ? "dataset_info.json" : "x.manifest";
  const absl::StatusOr<std::vector<ListedShard>> listed = ParseManifest(text, source);
  if (!listed.ok()) {
    SYSTOLE_CHECK(absl::StrContains(listed.status().message(), source));
    return 0;
  }
  SYSTOLE_CHECK(listed->size() <= size);
  for (const ListedShard& shard : *listed) {
    SYSTOLE_CHECK(!shard.name.empty() && shard.name.size() <= 255);
    SYSTOLE_CHECK(!absl::StrContains(shard.name, '/'));
    SYSTOLE_CHECK(shard.records >= 0 && shard.bytes >= -1);
  }
  return 0;
}
