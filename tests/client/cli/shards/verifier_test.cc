#include "client/cli/shards/verifier.h"

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/concurrency/mutex.h"
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
using ::testing::Pair;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAreArray;

absl::StatusOr<VerifyReport> VerifyQuietly(const std::vector<std::string>& paths,
                                           const VerifyOptions& options = {}) {
  return Verify(paths, options, [](int64_t) {});
}

std::string ImageRecord(const std::string& image, int64_t label = 3) {
  return ExampleBuilder().AddBytes("image", image).AddInt64s("label", {label}).Serialize();
}

TEST(VerifierTest, CountsShardsRecordsJpegsAndBytesOfIntactFiles) {
  const TempFolder folder;
  const std::string a =
      folder.Write("a", ShardBuilder().Add(ImageRecord(TestJpeg(8, 8, 3, 1))).Add("").Build());
  const std::string b = folder.Write("b", "");
  const absl::StatusOr<VerifyReport> report = VerifyQuietly({a, b});
  ASSERT_THAT(report, IsOk());
  EXPECT_EQ(report->shards.size(), 2u);
  EXPECT_EQ(report->records, 2);  // The empty payload is an Example without features.
  EXPECT_EQ(report->jpegs, 1);
  EXPECT_EQ(report->bytes, std::filesystem::file_size(a));
  EXPECT_THAT(report->bad, IsEmpty());
}

// Every bit of a shard is covered by a CRC or by the framing.
TEST(VerifierTest, AnyFlippedBitNamesItsRecord) {
  const TempFolder folder;
  const std::string first = ExampleBuilder().AddInt64s("label", {1}).Serialize();
  const std::string second = ExampleBuilder().AddInt64s("label", {2, 3}).Serialize();
  const uint64_t second_offset = ShardBuilder().Add(first).size();
  const std::string whole = ShardBuilder().Add(first).Add(second).Add(first).Build();
  const uint64_t third_offset = ShardBuilder().Add(first).Add(second).size();
  for (uint64_t bit = second_offset * 8; bit < third_offset * 8; ++bit) {
    const std::string path = folder.Write("shard", WithFlippedBit(whole, bit));
    const absl::StatusOr<VerifyReport> report = VerifyQuietly({path});
    ASSERT_THAT(report, IsOk()) << bit;
    EXPECT_EQ(report->records, 3) << bit;
    ASSERT_THAT(report->bad, SizeIs(1)) << bit;
    EXPECT_EQ(report->bad[0].record, 1) << bit;
    EXPECT_EQ(report->bad[0].offset, second_offset) << bit;
    EXPECT_EQ(report->bad[0].shard, path) << bit;
    EXPECT_THAT(report->bad[0].cause, AllOf(HasSubstr("CRC"), Not(HasSubstr("offset")))) << bit;
  }
}

TEST(VerifierTest, RecordThatIsNoExampleIsBadUnlessOnlyFramingIsAsked) {
  const TempFolder folder;
  const std::string path =
      folder.Write("shard", ShardBuilder().Add(std::string(784, '\x07')).Build());
  const absl::StatusOr<VerifyReport> report = VerifyQuietly({path});
  ASSERT_THAT(report, IsOk());
  EXPECT_THAT(report->bad, SizeIs(1));
  const absl::StatusOr<VerifyReport> framing = VerifyQuietly({path}, {.framing_only = true});
  ASSERT_THAT(framing, IsOk());
  EXPECT_THAT(framing->bad, IsEmpty());
  EXPECT_EQ(framing->records, 1);
}

// The records hold the first bytes of some kinds of files, and a class name.
TEST(VerifierTest, CountsUndecodedValuesByKind) {
  const TempFolder folder;
  const std::string png = "\x89PNG\r\n\x1a\n and so on";
  const std::string webp("RIFF\x10\0\0\0WEBPVP8 ", 16);
  const std::string shard = folder / "s";
  ShardBuilder()
      .Add(ExampleBuilder().AddBytes("image", png).AddBytes("class", "daisy").Serialize())
      .Add(ExampleBuilder().AddBytes("image", png).AddBytes("class", "rose").Serialize())
      .Add(ExampleBuilder().AddBytes("image", webp).Serialize())
      .Add(ExampleBuilder().AddBytes("image", std::string("\1\2\0", 3)).Serialize())
      .WriteTo(shard);
  const absl::StatusOr<VerifyReport> report = VerifyQuietly({shard}, {});
  ASSERT_THAT(report, IsOk());
  EXPECT_EQ(report->jpegs, 0);
  EXPECT_THAT(report->bad, IsEmpty());
  EXPECT_THAT(report->not_decoded, ElementsAre(Pair("PNG", 2), Pair("WebP", 1),
                                               Pair("other bytes", 1), Pair("text", 2)));
}

TEST(VerifierTest, BrokenJpegIsBadAndNamesItsFeature) {
  const TempFolder folder;
  const std::string jpeg = TestJpeg(32, 32, 3, 1);
  const std::string path = folder.Write(
      "shard", ShardBuilder()
                   .Add(ImageRecord(jpeg))
                   .Add(ImageRecord(jpeg.substr(0, jpeg.size() - 20)))  // Its CRCs are valid.
                   .Add(ImageRecord("\xff\xd8 and nothing else"))
                   .Add(ImageRecord("no JPEG, and does not claim to be one"))
                   .Build());
  const absl::StatusOr<VerifyReport> report = VerifyQuietly({path});
  ASSERT_THAT(report, IsOk());
  EXPECT_EQ(report->jpegs, 1);
  ASSERT_THAT(report->bad, SizeIs(2));
  EXPECT_EQ(report->bad[0].record, 1);
  EXPECT_THAT(report->bad[0].cause, HasSubstr("\"image\""));
  EXPECT_EQ(report->bad[1].record, 2);
}

TEST(VerifierTest, ChecksEveryValueOfABytesFeature) {
  const TempFolder folder;
  const std::string jpeg = TestJpeg(8, 8, 3, 1);
  const std::string cut = jpeg.substr(0, jpeg.size() / 2);
  const std::string record = ExampleBuilder().AddBytes("frames", {jpeg, cut, jpeg}).Serialize();
  const absl::StatusOr<VerifyReport> report =
      VerifyQuietly({folder.Write("shard", ShardBuilder().Add(record).Build())});
  ASSERT_THAT(report, IsOk());
  EXPECT_THAT(report->bad, SizeIs(1));
}

TEST(VerifierTest, TruncatedTailIsOneBadRecord) {
  const TempFolder folder;
  const std::string record = ExampleBuilder().AddInt64s("label", {1}).Serialize();
  const std::string whole = ShardBuilder().Add(record).Add(record).Build();
  for (size_t cut = 1; cut < whole.size() / 2; ++cut) {
    const std::string path = folder.Write("shard", whole.substr(0, whole.size() - cut));
    const absl::StatusOr<VerifyReport> report = VerifyQuietly({path});
    ASSERT_THAT(report, IsOk());
    ASSERT_THAT(report->bad, SizeIs(1)) << cut;
    EXPECT_EQ(report->bad[0].record, 1) << cut;
  }
}

TEST(VerifierTest, ReportDoesNotDependOnThreadsAndIsInOrder) {
  const TempFolder folder;
  const std::string record = ExampleBuilder().AddInt64s("label", {1}).Serialize();
  std::vector<std::string> paths;
  for (const char* name : {"a", "b", "c"}) {
    ShardBuilder builder;
    for (int i = 0; i < 300; ++i) builder.Add(i % 100 == 57 ? "\x07 damaged" : record);
    paths.push_back(folder.Write(name, builder.Build()));
  }
  for (const int threads : {1, 4}) {
    const absl::StatusOr<VerifyReport> report = VerifyQuietly(paths, {.threads = threads});
    ASSERT_THAT(report, IsOk());
    ASSERT_THAT(report->bad, SizeIs(9));
    for (int i = 0; i < 9; ++i) {
      EXPECT_EQ(report->bad[i].shard, paths[i / 3]);
      EXPECT_EQ(report->bad[i].record, i % 3 * 100 + 57);
    }
  }
}

TEST(VerifierTest, ProgressAddsUpToAllBytesOverMoreShardsThanAreOpenAtATime) {
  const TempFolder folder;
  std::vector<std::string> paths;
  for (int i = 0; i < 70; ++i) {
    paths.push_back(folder.Write(absl::StrCat("s", i), ShardBuilder().Add("").Build()));
  }
  std::atomic<int64_t> done = 0;
  const absl::StatusOr<VerifyReport> report =
      Verify(paths, {.threads = 1}, [&](int64_t bytes) { done += bytes; });
  ASSERT_THAT(report, IsOk());
  EXPECT_EQ(report->shards.size(), 70u);
  EXPECT_EQ(done, 70 * 16);
}

TEST(VerifierTest, MissingFileIsAnErrorAndNotDamage) {
  EXPECT_THAT(VerifyQuietly({"/nowhere/shard"}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("/nowhere/shard")));
}

// Each file is read when the group is opened, and once more when it is decoded.
TEST(VerifierTest, ProgressOfAGroupIsHalfOfEachFileAndTheRestAtOnce) {
  const TempFolder folder;
  FillImageFolder(folder, {"a"}, 3);
  std::vector<std::string> paths;
  int64_t total = 0;
  std::vector<int64_t> wanted;
  for (const char* name : {"a/0.jpg", "a/1.jpg", "a/2.jpg"}) {
    paths.push_back(folder / name);
    const auto bytes = static_cast<int64_t>(std::filesystem::file_size(paths.back()));
    wanted.push_back(bytes / 2);
    total += bytes;
  }
  wanted.push_back(total - wanted[0] - wanted[1] - wanted[2]);
  Mutex mu;
  std::vector<int64_t> told;
  const auto report = Verify(paths, {.threads = 2}, [&](int64_t bytes) {
    MutexLock lock(mu);
    told.push_back(bytes);
  });
  ASSERT_THAT(report, IsOk());
  EXPECT_EQ(report->jpegs, 3);
  EXPECT_THAT(told, UnorderedElementsAreArray(wanted));
}

}  // namespace
}  // namespace systole
