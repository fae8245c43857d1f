#include "client/cli/shards/shard_differences.h"

#include "absl/strings/str_cat.h"
#include "core/text/foreign_text.h"

namespace systole {

void PrintShardDifferences(absl::Span<const ShardDifference> differences, std::ostream& out) {
  for (const ShardDifference& difference : differences) out << difference.text << "\n";
}

void AppendShardDifferences(absl::Span<const ShardDifference> differences, JsonWriter& json) {
  json.Key("differences").BeginArray();
  for (const ShardDifference& difference : differences) {
    json.BeginObject().Field("shard", ForeignName(difference.shard));
    json.Field("manifest", ForeignName(difference.manifest));
    json.Field("missing", difference.missing).Field("text", difference.text).EndObject();
  }
  json.EndArray();
}

std::string ShardDifferencesText(size_t number) {
  return absl::StrCat(number, number == kMaxShardDifferences ? " or more" : "",
                      number == 1 ? " shard is" : " shards are",
                      " not what the manifest beside them says");
}

}  // namespace systole
