// Reads archives that webdataset wrote. Our samples must be those that webdataset reads
// (tests/golden/webdataset).
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/example/example_parser.h"
#include "core/record/shard_formats.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

constexpr char kFolder[] = "tests/golden/webdataset/";

std::string Hex(absl::string_view bytes) {
  return bytes.empty() ? "-" : absl::BytesToHexString(bytes);
}

// The form in samples.txt: "bytes 00ff", "int64 12", "float 0000803f".
std::string TextOf(const FeatureView& feature) {
  EXPECT_EQ(feature.count(), 1) << feature.name();
  if (feature.kind() == FeatureKind::kBytes) {
    return absl::StrCat("bytes ", Hex(*feature.BytesAt(0)));
  }
  if (feature.kind() == FeatureKind::kInt64) {
    int64_t value[1];
    EXPECT_THAT(feature.CopyInt64s(value), IsOk());
    return absl::StrCat("int64 ", value[0]);
  }
  float value[1];
  EXPECT_THAT(feature.CopyFloats(value), IsOk());
  return absl::StrCat("float ",
                      Hex(absl::string_view(reinterpret_cast<const char*>(value), sizeof(value))));
}

// The key is the archive and the number of the sample. The value maps the name of each feature, in
// hex, to the feature's TextOf().
using Samples = std::map<std::pair<std::string, int64_t>, std::map<std::string, std::string>>;

TEST(WebDatasetGoldenTest, SamplesAreThoseThatWebDatasetReads) {
  Samples wanted;
  std::map<std::string, int64_t> counts;
  const std::string listed = ReadWholeFile(absl::StrCat(kFolder, "samples.txt"));
  for (const absl::string_view line : absl::StrSplit(listed, '\n', absl::SkipEmpty())) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ');
    ASSERT_EQ(words.size(), 5u) << line;
    const int64_t number = std::stoll(words[1]);
    wanted[{words[0], number}][words[2]] = absl::StrCat(words[3], " ", words[4]);
    counts[words[0]] = number + 1;
  }
  ASSERT_EQ(counts.size(), 5u);

  Samples seen;
  for (const auto& [archive, count] : counts) {
    const auto shard = OpenShard(absl::StrCat(kFolder, archive), {.index_use = IndexUse::kIgnore});
    ASSERT_THAT(shard, IsOk());
    EXPECT_EQ((*shard)->num_records(), count) << archive;
    EXPECT_EQ((*shard)->num_damaged(), 0) << archive;
    AlignedBuffer scratch;
    for (int64_t i = 0; i < (*shard)->num_records(); ++i) {
      const absl::StatusOr<absl::string_view> record = (*shard)->ReadRecord(i, scratch);
      ASSERT_THAT(record, IsOk());
      const absl::StatusOr<ExampleView> view = ExampleView::Parse(*record, (*shard)->examples());
      ASSERT_THAT(view, IsOk());
      for (const FeatureView& feature : view->Features()) {
        seen[{archive, i}][Hex(feature.name())] = TextOf(feature);
      }
    }
  }
  EXPECT_EQ(seen, wanted);
}

}  // namespace
}  // namespace systole
