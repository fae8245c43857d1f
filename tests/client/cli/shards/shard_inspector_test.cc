#include "client/cli/shards/shard_inspector.h"

#include <atomic>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/example/example_builder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/cli/image_folder.h"
#include "tests/core/record/tfrecord/shard_builder.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

TEST(ShardInspectorTest, SummarisesShardsAndFeatures) {
  const TempFolder folder;
  const std::string small = ExampleBuilder()
                                .AddBytes("image", TestJpeg(40, 30, 3, 1))
                                .AddInt64s("label", {1})
                                .AddFloats("box", {1, 2})
                                .Serialize();
  const std::string large = ExampleBuilder()
                                .AddBytes("image", TestJpeg(48, 16, 3, 1))
                                .AddInt64s("label", {1, 2, 3})
                                .AddBytes("box", "of another kind")
                                .Serialize();
  const std::string a = folder.Write("a", ShardBuilder().Add(small).Add(large).Build());
  const std::string b = folder.Write("b", ShardBuilder().Add(small).Build());
  const absl::StatusOr<InspectReport> report = InspectShards({a, b});
  ASSERT_THAT(report, IsOk());
  ASSERT_THAT(report->shards, SizeIs(2));
  EXPECT_EQ(report->shards[0].records, 2);
  EXPECT_EQ(report->records, 3);
  EXPECT_EQ(report->sampled, 3);
  ASSERT_THAT(report->features, SizeIs(3));

  const FeatureSummary& box = report->features[0];
  EXPECT_EQ(box.name, "box");
  EXPECT_EQ(box.kind, FeatureKind::kFloat);
  EXPECT_EQ(box.records, 2);
  EXPECT_EQ(box.other_kind, 1);
  const FeatureSummary& image = report->features[1];
  EXPECT_EQ(image.kind, FeatureKind::kBytes);
  EXPECT_EQ(image.jpegs, 3);
  EXPECT_EQ(image.width.least, 40);
  EXPECT_EQ(image.width.most, 48);
  EXPECT_EQ(image.height.least, 16);
  EXPECT_EQ(image.height.most, 30);
  const FeatureSummary& label = report->features[2];
  EXPECT_EQ(label.values.least, 1);
  EXPECT_EQ(label.values.most, 3);
  EXPECT_THAT(folder.List(), ElementsAre("a", "b"));  // No index file was left.
}

TEST(ShardInspectorTest, CountsNonExamplesUnreadableRecordsAndDamagedHeaders) {
  const TempFolder folder;
  const std::string good = ShardBuilder().Add("").Add(std::string(784, '\x07')).Build();
  const std::string path = folder.Write("a", WithFlippedBit(good, 12 * 8));  // CRC of record 0.
  const absl::StatusOr<InspectReport> report = InspectShards({path});
  ASSERT_THAT(report, IsOk());
  EXPECT_EQ(report->no_example, 1);
  EXPECT_EQ(report->unreadable, 1);
  EXPECT_EQ(report->shards[0].damaged, 0);
  EXPECT_THAT(report->features, IsEmpty());
  const std::string header = folder.Write("b", WithFlippedBit(good, 3));
  EXPECT_EQ(InspectShards({header})->shards[0].damaged, 1);
}

TEST(ShardInspectorTest, LooksAtTheFirstRecordsOfEachShardOnly) {
  const TempFolder folder;
  ShardBuilder builder;
  for (int i = 0; i < 40; ++i) builder.Add("");
  const std::string path = folder.Write("a", builder.Build());
  const absl::StatusOr<InspectReport> report = InspectShards({path, path});
  ASSERT_THAT(report, IsOk());
  EXPECT_EQ(report->sampled, 32);
  EXPECT_EQ(report->records, 80);
}

TEST(ShardInspectorTest, RecordsAreNumberedOverAllShards) {
  const TempFolder folder;
  const std::string record = ExampleBuilder()
                                 .AddBytes("image", TestJpeg(40, 30, 3, 1))
                                 .AddBytes("class", "tulip")
                                 .AddBytes("blob", std::string("\0\1", 2))
                                 .AddInt64s("label", {-7})
                                 .AddFloats("many", {0.5f, 1, 2, 3, 4, 5, 6, 7, 8, 9})
                                 .Serialize();
  const std::string a = folder.Write("a", ShardBuilder().Add("").Add("").Build());
  const std::string b = folder.Write("b", ShardBuilder().Add("").Add(record).Build());
  const absl::StatusOr<RecordDetail> detail = InspectRecord({a, b}, 3);
  ASSERT_THAT(detail, IsOk());
  EXPECT_EQ(detail->shard, b);
  EXPECT_EQ(detail->record_in_shard, 1);
  EXPECT_EQ(detail->offset, 16u);
  EXPECT_EQ(detail->payload_bytes, record.size());
  ASSERT_THAT(detail->features, SizeIs(5));
  EXPECT_EQ(detail->features[0].preview, "2 bytes");
  EXPECT_EQ(detail->features[1].preview, "\"tulip\"");
  EXPECT_THAT(detail->features[2].preview, HasSubstr("JPEG 40 x 30, 3 components"));
  EXPECT_EQ(detail->features[3].preview, "-7");
  EXPECT_EQ(detail->features[4].preview, "0.5, 1, 2, 3, 4, 5, 6, 7, ...");
}

TEST(ShardInspectorTest, InspectRecordSaysThatAPayloadIsNotAnExample) {
  const TempFolder folder;
  const std::string path = folder.Write("a", ShardBuilder().Add(std::string(784, '\x07')).Build());
  const absl::StatusOr<RecordDetail> detail = InspectRecord({path}, 0);
  ASSERT_THAT(detail, IsOk());
  EXPECT_NE(detail->no_example, "");
  EXPECT_EQ(detail->payload_bytes, 784u);
}

TEST(ShardInspectorTest, PreviewSaysThatAJpegIsBroken) {
  const TempFolder folder;
  const std::string record = ExampleBuilder().AddBytes("image", "\xff\xd8nothing").Serialize();
  const std::string path = folder.Write("a", ShardBuilder().Add(record).Build());
  const absl::StatusOr<RecordDetail> detail = InspectRecord({path}, 0);
  ASSERT_THAT(detail, IsOk());
  EXPECT_THAT(detail->features[0].preview, StartsWith("9 bytes, a broken JPEG: "));
}

TEST(ShardInspectorTest, RecordOutOfRangeIsNotFoundAndDamageIsDataLoss) {
  const TempFolder folder;
  const std::string path =
      folder.Write("a", WithFlippedBit(ShardBuilder().Add("").Add("").Build(), 12 * 8));
  EXPECT_THAT(InspectRecord({path}, 2),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("there are 2")));
  EXPECT_THAT(InspectRecord({path}, -1),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("record -1")));
  EXPECT_THAT(InspectRecord({path}, 0), StatusIs(absl::StatusCode::kDataLoss,
                                                 AllOf(HasSubstr("\"a\""), HasSubstr("record 0"))));
}

// The paths of six images in two classes.
std::vector<std::string> SixImages(const TempFolder& folder) {
  FillImageFolder(folder, {"a", "b"}, 3);
  std::vector<std::string> paths;
  for (const std::string name : {"a", "b"}) {
    for (int k = 0; k < 3; ++k) paths.push_back(folder / absl::StrCat(name, "/", k, ".jpg"));
  }
  return paths;
}

TEST(ShardInspectorTest, FileDoneIsCalledOnceForEachFileOfAGroup) {
  const TempFolder folder;
  std::atomic<int> done = 0;
  const absl::StatusOr<InspectReport> report =
      InspectShards(SixImages(folder), {.threads = 3, .file_done = [&done] { ++done; }});
  ASSERT_THAT(report, IsOk());
  EXPECT_TRUE(report->is_group);
  EXPECT_EQ(report->records, 6);
  EXPECT_EQ(done, 6);
  EXPECT_THAT(folder.List(), ElementsAre("a", "b"));
}

TEST(ShardInspectorTest, InspectsARecordOfAGroupWhileOtherFilesAreMissing) {
  const TempFolder folder;
  const std::vector<std::string> paths = SixImages(folder);
  for (const char* gone : {"a/0.jpg", "b/2.jpg"}) std::filesystem::remove(folder / gone);
  const absl::StatusOr<RecordDetail> detail = InspectRecord(paths, 4);
  ASSERT_THAT(detail, IsOk());
  EXPECT_EQ(detail->place, "record 4, the file \"b/1.jpg\"");
  EXPECT_EQ(detail->file, "b/1.jpg");
  EXPECT_EQ(detail->record_in_shard, 4);
  EXPECT_EQ(detail->offset, 0u);
  ASSERT_THAT(detail->features, SizeIs(4));
  EXPECT_EQ(detail->features[0].name, "class");
  EXPECT_EQ(detail->features[0].preview, "\"b\"");
  EXPECT_THAT(InspectRecord(paths, 0), StatusIs(absl::StatusCode::kNotFound, HasSubstr("a/0.jpg")));
  for (const int64_t none : {-1, 6}) {
    EXPECT_THAT(InspectRecord(paths, none),
                StatusIs(absl::StatusCode::kNotFound, HasSubstr("there are 6, counted from 0")));
  }
}

}  // namespace
}  // namespace systole
