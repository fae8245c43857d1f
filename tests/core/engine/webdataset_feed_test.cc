// Tests that feeds of WebDataset archives equal feeds of the same data in TFRecord, byte for byte.
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/batch/slice_layout.h"
#include "core/engine/step_engine.h"
#include "core/example/example_builder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/dataset/test_dataset.h"
#include "tests/core/record/tfrecord/shard_builder.h"
#include "tests/core/record/webdataset/archive_builder.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Adds sample number `i` to the archive. ExampleOf() makes a record with the same content.
void AddSample(int i, absl::string_view cls, ArchiveBuilder& archive) {
  const std::string key = absl::StrCat("train/", i);
  archive.Add(absl::StrCat(key, ".jpg"), TestJpeg(i))
      .Add(absl::StrCat(key, ".cls"), cls)
      .Add(absl::StrCat(key, ".txt"), absl::StrCat("text ", i))
      .Add(absl::StrCat(key, ".json"), absl::StrCat("{\"width\": ", i, ", \"score\": ", i,
                                                    ".5, \"name\": \"\\u0041", i, "\"}"));
}

std::string ExampleOf(int i) {
  return ExampleBuilder()
      .AddBytes("jpg", TestJpeg(i))
      .AddInt64s("cls", {i % 5})
      .AddBytes("txt", absl::StrCat("text ", i))
      .AddInt64s("json/width", {i})
      .AddFloats("json/score", {static_cast<float>(i) + 0.5f})
      .AddBytes("json/name", absl::StrCat("A", i))
      .Serialize();
}

// Writes 40 samples as two archives, and the same samples as two TFRecord shards.
void WriteShards(const TempFolder& folder) {
  for (int shard = 0; shard < 2; ++shard) {
    ArchiveBuilder archive;
    ShardBuilder records;
    for (int i = 20 * shard; i < 20 * shard + 20; ++i) {
      AddSample(i, absl::StrCat(i % 5, "\n"), archive);
      records.Add(ExampleOf(i));
    }
    folder.Write(absl::StrCat("a-", shard, ".tar"), archive.Build());
    records.WriteTo(folder / absl::StrCat("a-", shard, ".tfrecord"));
  }
}

constexpr char kImages[] = R"pb(
  outputs {
    name: "image"
    feature: "jpg"
    transforms { decode_jpeg {} }
    transforms { random_resized_crop { height: 16 width: 16 } }
    transforms { random_flip {} }
    dtype: BFLOAT16
  }
)pb";

constexpr char kOthers[] = R"pb(
  outputs { name: "label" feature: "cls" dtype: INT64 }
  outputs { name: "width" feature: "json/width" dtype: INT32 }
  outputs { name: "score" feature: "json/score" dtype: FLOAT32 }
  outputs {
    name: "name"
    feature: "json/name"
    padded { length: 5 }
    dtype: UINT8
  }
  outputs {
    name: "text"
    feature: "txt"
    padded { length: 8 truncate: true }
    dtype: UINT8
  }
  outputs {
    name: "absent"
    feature: "json/absent"
    default_value { int64s: 3 }
    dtype: INT64
  }
  outputs { name: "id" feature: "record_id" dtype: INT64 }
)pb";

std::shared_ptr<Dataset> MustOpenDataset(const std::string& pattern) {
  absl::StatusOr<std::shared_ptr<Dataset>> dataset = Dataset::Open("test", {pattern});
  EXPECT_THAT(dataset, IsOk());
  return *dataset;
}

std::vector<std::string> Digests(const std::shared_ptr<Dataset>& dataset,
                                 const std::string& outputs) {
  absl::StatusOr<std::shared_ptr<const FeedPlan>> plan = FeedPlan::Create(
      SpecFromText(absl::StrCat("dataset: 'test' seed: 3 shuffle { mode: GLOBAL } global_batch: 6 "
                                "num_cores: 2 epochs: 2 tail: PAD on_corrupt: MASK ",
                                outputs)),
      dataset);
  EXPECT_THAT(plan, IsOk());
  StepEngine engine({.threads = 2});
  absl::StatusOr<std::unique_ptr<StepStream>> stream =
      engine.Open(*plan, {.count = 1000, .core_begin = 0, .core_end = 2});
  EXPECT_THAT(stream, IsOk());
  std::vector<std::string> digests;
  while (true) {
    StepStream::Result slice = (*stream)->Next();
    EXPECT_THAT(slice, IsOk());
    if (!slice.ok() || !slice->has_value()) return digests;
    digests.push_back(SliceDigest((**slice)->layout(), (**slice)->data()));
  }
}

TEST(WebDatasetFeedTest, EqualsTheFeedOfTheSameDataInTfRecord) {
  const TempFolder folder;
  WriteShards(folder);
  // If an output decodes an image, the feed copies the records. Otherwise it reads them in place.
  for (const std::string& outputs : {absl::StrCat(kImages, kOthers), std::string(kOthers)}) {
    const std::vector<std::string> digests = Digests(MustOpenDataset(folder / "*.tar"), outputs);
    EXPECT_EQ(digests.size(), 2u * 2u * 7u);
    EXPECT_EQ(digests, Digests(MustOpenDataset(folder / "*.tfrecord"), outputs));
  }
}

TEST(WebDatasetFeedTest, DamageIsMaskedAsInTfRecord) {
  const TempFolder folder;
  WriteShards(folder);
  const auto before = MustOpenDataset(folder / "*.tar");  // Writes the indexes before the damage.
  const auto spoil = [&folder](const std::string& name, absl::string_view content) {
    std::string bytes = ReadWholeFile(folder / name);
    const size_t at = bytes.find(content.data(), 0, content.size());
    ASSERT_NE(at, std::string::npos);
    bytes[at] ^= 1;
    const auto written = std::filesystem::last_write_time(folder / name);
    folder.Write(name, bytes);
    std::filesystem::last_write_time(folder / name, written);
  };
  spoil("a-0.tar", "text 7");
  spoil("a-0.tfrecord", "text 7");
  const auto archives = MustOpenDataset(folder / "*.tar");
  const auto records = MustOpenDataset(folder / "*.tfrecord");
  const std::string outputs = absl::StrCat(kImages, kOthers);
  EXPECT_EQ(Digests(archives, outputs), Digests(records, outputs));
  EXPECT_EQ(archives->damage().masked_examples(), 2);  // Once in each epoch.
  ASSERT_EQ(archives->damage().entries().size(), 1u);
  EXPECT_EQ(archives->damage().entries()[0].record, 7);
  EXPECT_THAT(archives->damage().entries()[0].cause, HasSubstr("CRC-32C of the sample"));
}

TEST(WebDatasetFeedTest, AnInvalidClsOrJsonFileIsDamageNamingTheFile) {
  const TempFolder folder;
  ArchiveBuilder archive;
  AddSample(0, "1", archive);
  AddSample(1, "one", archive);
  archive.Add("train/2.json", "{\"width\": 1").Add("train/2.cls", "3");
  const auto dataset = MustOpenDataset(folder.Write("a.tar", archive.Build()));
  EXPECT_EQ(Digests(dataset, kOthers).size(), 4u);
  ASSERT_EQ(dataset->damage().entries().size(), 2u);
  for (const DamageLog::Entry& entry : dataset->damage().entries()) {
    EXPECT_THAT(entry.cause,
                entry.record == 1
                    ? AllOf(HasSubstr("shard 'a.tar', offset"), HasSubstr("record 1"),
                            HasSubstr("file \"train/1.cls\" holds \"one\", want a whole number"))
                    : AllOf(HasSubstr("shard 'a.tar', offset"), HasSubstr("record 2"),
                            HasSubstr("file \"train/2.json\" as JSON: want ','")));
  }
}

TEST(WebDatasetFeedTest, AnUnknownFeatureIsRefusedNamingTheKnownFeatures) {
  const TempFolder folder;
  WriteShards(folder);
  EXPECT_THAT(
      FeedPlan::Create(SpecFromText("dataset: 'test' global_batch: 2 num_cores: 1 "
                                    "outputs { name: 'x' feature: 'png' dtype: UINT8 "
                                    "  transforms { decode_png {} } "
                                    "  transforms { resize { height: 8 width: 8 } } }"),
                       MustOpenDataset(folder / "*.tar")),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("no feature 'png'"), HasSubstr("jpg"), HasSubstr("json/width"))));
}

}  // namespace
}  // namespace systole
