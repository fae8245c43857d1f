#include "core/dataset/folder_index.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "core/checksum/xxh3.h"
#include "core/record/source/consume_number.h"
#include "core/record/source/index_path.h"
#include "core/record/source/record_index.h"
#include "core/storage/store.h"

namespace systole {
namespace {

constexpr absl::string_view kMagic = "systole-shards-1 ";
// The index's name without ".idx", which FolderIndexPath() adds.
constexpr absl::string_view kIndexBase = "shards.manifest";
constexpr size_t kMaxFormatBytes = 32;
// Each line has more than kMinLineBytes bytes. So a text has fewer lines than its size divided by
// kMinLineBytes.
constexpr size_t kMinLineBytes = 32;

absl::Status Wrong(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("index ", what));
}

bool ConsumeNumbers(absl::string_view& text, ShardFacts& facts, size_t (&sizes)[3]) {
  if (!ConsumeNumber(text, ' ', facts.bytes) || !ConsumeNumber(text, ' ', facts.records) ||
      !ConsumeNumber(text, ' ', facts.payload.least) ||
      !ConsumeNumber(text, ' ', facts.payload.most) || text.find(' ') != 16 ||
      !ConsumeNumber(text, ' ', facts.content_hash, 16)) {
    return false;
  }
  return ConsumeNumber(text, ' ', sizes[0]) && ConsumeNumber(text, ' ', sizes[1]) &&
         ConsumeNumber(text, ' ', sizes[2]);
}

// Parses the first line of `text` into `line`, and removes it from `text`. False if this line is
// malformed.
bool ConsumeLine(absl::string_view& text, FolderIndexLine& line) {
  constexpr size_t kMost[3] = {kMaxFormatBytes, kMaxIdentityBytes, kMaxShardNameBytes};
  size_t sizes[3] = {};
  if (!ConsumeNumbers(text, line.facts, sizes)) return false;
  std::string* const texts[3] = {&line.facts.format, &line.facts.identity, &line.name};
  for (size_t i = 0; i < 3; ++i) {
    if (sizes[i] > std::min(kMost[i], text.size())) return false;
    *texts[i] = std::string(text.substr(0, sizes[i]));
    text.remove_prefix(sizes[i]);
  }
  return absl::ConsumePrefix(&text, "\n") && FitsFolderIndex(line);
}

}  // namespace

std::string FolderIndexPath(absl::string_view folder, absl::string_view index_dir) {
  return IndexPath(absl::StrCat(folder, kIndexBase), index_dir);
}

bool FitsFolderIndex(const FolderIndexLine& line) {
  const ShardFacts& facts = line.facts;
  const auto is_printable = [](absl::string_view text) {
    return std::all_of(text.begin(), text.end(), [](char c) { return absl::ascii_isprint(c); });
  };
  if (line.name.empty() || line.name.size() > kMaxShardNameBytes ||
      absl::StrContains(line.name, '/') || facts.format.empty() ||
      facts.format.size() > kMaxFormatBytes || !is_printable(facts.format) ||
      facts.identity.empty() || facts.identity.size() > kMaxIdentityBytes ||
      !is_printable(facts.identity)) {
    return false;
  }
  // A record takes at least one byte of the shard's file, and its payload lies in the file.
  const PayloadRange& payload = facts.payload;
  if (facts.bytes > uint64_t{1} << 62 || facts.records < 0 ||
      facts.records > static_cast<int64_t>(std::min(facts.bytes, kMaxFarRecords)) ||
      payload.least < 0 || payload.least > payload.most ||
      static_cast<uint64_t>(payload.most) > facts.bytes) {
    return false;
  }
  return facts.records > 0 || payload.most == 0;
}

std::string FolderIndexText(absl::Span<const FolderIndexLine> lines) {
  std::string body;
  for (const auto& [name, facts] : lines) {
    absl::StrAppendFormat(&body, "%d %d %d %d %016x %d %d %d ", facts.bytes, facts.records,
                          facts.payload.least, facts.payload.most, facts.content_hash,
                          facts.format.size(), facts.identity.size(), name.size());
    absl::StrAppend(&body, facts.format, facts.identity, name, "\n");
  }
  return absl::StrFormat("%s%d %016x\n%s", kMagic, lines.size(), Xxh3(body), body);
}

absl::StatusOr<std::vector<FolderIndexLine>> ParseFolderIndex(absl::string_view text) {
  uint64_t count = 0;
  uint64_t hash = 0;
  if (!absl::ConsumePrefix(&text, kMagic))
    return Wrong("is not an index of shards of this version");
  if (!ConsumeNumber(text, ' ', count) || text.find('\n') != 16 ||
      !ConsumeNumber(text, '\n', hash, 16)) {
    return Wrong("has a malformed first line");
  }
  if (Xxh3(text) != hash) return Wrong("is damaged: its hash does not match");
  if (count > std::min(kMaxFolderShards, text.size() / kMinLineBytes)) {
    return Wrong(absl::StrCat("says that it has ", count,
                              " shards, more than its size or the limit of ", kMaxFolderShards,
                              " allows"));
  }
  std::vector<FolderIndexLine> lines;
  lines.reserve(count);
  while (!text.empty()) {
    if (lines.size() == count) return Wrong("has more shards than it says");
    FolderIndexLine line;
    if (!ConsumeLine(text, line)) {
      return Wrong(absl::StrCat("has a malformed line for shard ", lines.size()));
    }
    if (!lines.empty() && lines.back().name >= line.name) {
      return Wrong(absl::StrCat("has shard ", lines.size(), " in a wrong place"));
    }
    lines.push_back(std::move(line));
  }
  if (lines.size() != count) return Wrong("does not have as many shards as it says");
  return lines;
}

}  // namespace systole
