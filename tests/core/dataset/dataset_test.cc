#include "core/dataset/dataset.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/example/example_builder.h"
#include "core/image/jpeg/jpeg_encoder.h"
#include "core/interrupt/interrupt.h"
#include "core/record/each_shard.h"
#include "core/record/source/client_reason.h"
#include "core/record/tfrecord/tfrecord_shard.h"
#include "core/status/status_macros.h"
#include "core/storage/byte_source.h"
#include "core/storage/memory_source.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/record/tfrecord/shard_builder.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

InterruptFlag* raised_while_opening = nullptr;
std::atomic<int> opened = 0;

// The format TFRecord, but its function `open` raises the flag when it opens the second shard.
constexpr ShardFormat kRaising = {.name = "TFRecord",
                                  .begins = nullptr,
                                  .ending = {},
                                  .open = [](ShardFile file, const ShardOptions& options) {
                                    if (++opened == 2) raised_while_opening->Raise();
                                    return TfRecordFormat().open(std::move(file), options);
                                  }};
constexpr const ShardFormat* kFormats[] = {&kRaising};

TEST(DatasetTest, OpeningEndsBeforeTheNextShardsWhenInterrupted) {
  const TempFolder folder;
  for (int i = 0; i < 3 * kShardsOpenedAtOnce; ++i) {
    folder.Write(absl::StrCat(i, ".tfrecord"), ShardBuilder().Add("payload").Build());
  }
  InterruptFlag unwanted;
  raised_while_opening = &unwanted;
  opened = 0;
  const InterruptScope scope(unwanted);
  const absl::StatusOr<std::shared_ptr<Dataset>> dataset =
      Dataset::Open("photos", {folder / "*.tfrecord"}, {.formats = kFormats});
  EXPECT_THAT(dataset, StatusIs(absl::StatusCode::kCancelled, HasSubstr("'photos'")));
  // One shard may already be open when the flag is raised. Each of the kShardsOpenedAtOnce threads
  // may then be opening another one.
  EXPECT_LE(opened, 1 + kShardsOpenedAtOnce);
}

// Without an interruption, each of these patterns gives an error other than Cancelled.
TEST(DatasetTest, AnInterruptedOpenIsCancelledEvenIfItWouldFailAnyway) {
  const TempFolder folder;
  folder.Write("empty.tfrecord", "");
  InterruptFlag unwanted;
  unwanted.Raise();
  for (const std::string& pattern : {folder / "none", folder / "empty.tfrecord"}) {
    EXPECT_FALSE(absl::IsCancelled(Dataset::Open("photos", {pattern}).status()));
    const InterruptScope scope(unwanted);
    EXPECT_THAT(Dataset::Open("photos", {pattern}),
                StatusIs(absl::StatusCode::kCancelled, HasSubstr("was interrupted")));
  }
}

TEST(DatasetTest, ErrorsShowNoSecretOfAnAddress) {
  // Open() refuses these names before it sends a request.
  for (const char* name :
       {"https://user:SECRET@host/a.tfrecord", "HTTPS://user:SECRET@host/a?SECRET",
        "https://user:SECRET/x@host/a", "https://host/*.tfrecord?sig=SECRET",
        "https://host/dir/?SECRET", "https://host/1.jpg?sig=SECRET",
        "https:/user:SECRET@host/a?SECRET", " https://host/a?SECRET", "gs://user:SECRET@bucket/a",
        "s3://ID:SEC/RET@bucket/a", "s3://ID:SECRET@bucket", "s3:/ID:SECRET@bucket/a"}) {
    const absl::Status status = Dataset::Open("photos", {name}).status();
    EXPECT_FALSE(status.ok()) << name;
    EXPECT_THAT(std::string(status.message()), Not(HasSubstr("SECRET"))) << name;
  }
}

// Writes a folder for each class, with two images in each.
void WriteImages(const TempFolder& folder, const std::vector<std::string>& classes) {
  const std::vector<uint8_t> pixels(size_t{16} * 8 * 3, 100);
  for (const std::string& name : classes) {
    std::filesystem::create_directory(folder / name);
    for (const char* file : {"/1.jpg", "/2.jpg"}) {
      folder.Write(name + file, *EncodeJpeg(pixels, 16, 8, 3, {}));
    }
  }
}

TEST(DatasetTest, AllImageFilesOfADatasetFormOneShard) {
  const TempFolder folder;
  std::vector<std::string> classes;
  for (int i = 100; i < 150; ++i) classes.push_back(absl::StrCat("c", i));  // 100 files.
  WriteImages(folder, classes);
  // A manifest lists files of records. So for a dataset of images a bad manifest is no error.
  folder.Write("x.manifest", "no manifest");
  const auto dataset = Dataset::Open("photos", {folder / "*/*.jpg"});
  ASSERT_THAT(dataset, IsOk());
  EXPECT_EQ((*dataset)->shards().size(), 1u);
  EXPECT_EQ((*dataset)->num_records(), 100);
  std::vector<std::string> features;
  for (const FeatureDescription& each : (*dataset)->features()) features.push_back(each.name);
  EXPECT_THAT(features, testing::UnorderedElementsAre("class", "image", "label", "size"));
  EXPECT_EQ((*dataset)->Where(3), "file 'c101/2.jpg', record 3 (record_id 3)");
  const DamageLog::Entry entry = Dataset::DamageAt(*(*dataset)->shards()[0], 3, 7, "broken");
  EXPECT_EQ(entry.shard, "c101/2.jpg");
  EXPECT_EQ(entry.record, 7);
  EXPECT_EQ(entry.offset, 0);
  EXPECT_THAT(Dataset::Open("photos", {folder / "*/*.jpg"}, {}, {.records = 100}), IsOk());
  EXPECT_THAT(Dataset::Open("photos", {folder / "*/*.jpg"}, {}, {.records = 99}),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("100 records")));
}

TEST(DatasetTest, ImagesAndOtherFilesInOneDatasetAreRefused) {
  const TempFolder folder;
  WriteImages(folder, {"a"});
  folder.Write("a/notes", "text");
  folder.Write("b.tfrecord", ShardBuilder().Add("payload").Build());
  for (const std::vector<std::string>& patterns : std::vector<std::vector<std::string>>{
           {folder / "a/*"}, {folder / "b.tfrecord", folder / "a/*.jpg"}}) {
    EXPECT_THAT(Dataset::Open("photos", patterns),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("\"1.jpg\" is a record by itself"), HasSubstr("*/*.jpg"),
                               Not(HasSubstr(folder.path())))));
  }
}

TEST(DatasetTest, AnErrorOfLabelsTxtShowsNoFolder) {
  const TempFolder folder;
  WriteImages(folder, {"a"});
  folder.Write("labels.txt", "a\na\n");
  EXPECT_THAT(Dataset::Open("photos", {folder / "*/*.jpg"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("labels.txt, line 2"), Not(HasSubstr(folder.path())))));
}

// Opens an absolute pattern, a pattern with "..", and a relative pattern. The error names the file
// with the folder that the pattern begins with. The reason for clients does not show this folder.
TEST(DatasetTest, ClientErrorsOfUnreadableImagesShowNoServerFolder) {
  const TempFolder folder;
  WriteImages(folder, {"a", "b"});
  const std::string relative =
      std::filesystem::path(folder.path()).lexically_relative(std::filesystem::current_path());
  for (const std::string& root : {folder.path(), folder / "a/..", relative}) {
    SCOPED_TRACE(root);
    WriteImages(folder, {"b"});
    const absl::Status error =
        Dataset::Open("photos", {root + "/*/*.jpg"},
                      {.index_use = IndexUse::kIgnore,
                       .for_each =
                           [&folder](int64_t count, absl::FunctionRef<void(int64_t)> work) {
                             std::filesystem::remove(folder / "b/2.jpg");
                             for (int64_t i = 0; i < count; ++i) work(i);
                           }})
            .status();
    EXPECT_THAT(error, StatusIs(absl::StatusCode::kNotFound, HasSubstr(root + "/b/2.jpg")));
    const std::string reason = ReasonForClients(error);
    EXPECT_THAT(reason, AllOf(HasSubstr("\"b/2.jpg\" cannot be read (NOT_FOUND)"),
                              Not(HasSubstr(std::filesystem::path(root).filename().string()))));
  }
  std::filesystem::create_directory(folder / "labels.txt");
  const absl::Status error = Dataset::Open("photos", {relative + "/*/*.jpg"}).status();
  EXPECT_THAT(error, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(folder.path())));
  EXPECT_THAT(ReasonForClients(error),
              AllOf(HasSubstr("labels.txt"), Not(HasSubstr(folder.path()))));
}

// Calls a function of the test before each read. If the function returns an error, the read fails
// with this error.
class AskingSource final : public ByteSource {
 public:
  using BeforeRead = std::function<absl::Status(uint64_t offset)>;

  AskingSource(std::string bytes, BeforeRead before_read)
      : memory_(std::move(bytes), "dir/a.tfrecord"), before_read_(std::move(before_read)) {}

  absl::StatusOr<size_t> ReadAt(uint64_t offset, absl::Span<char> out) const override {
    SYSTOLE_RETURN_IF_ERROR(before_read_(offset));
    return memory_.ReadAt(offset, out);
  }
  absl::StatusOr<uint64_t> Size() const override { return memory_.Size(); }
  absl::Status CheckUnchanged() const override { return absl::OkStatus(); }
  absl::string_view name() const override { return memory_.name(); }

 private:
  const MemorySource memory_;
  const BeforeRead before_read_;
};

// A shard of 40 examples.
std::vector<std::unique_ptr<const RecordSource>> Shards(AskingSource::BeforeRead before_read) {
  ShardBuilder builder;
  for (int i = 0; i < 40; ++i) {
    builder.Add(ExampleBuilder().AddInt64s("label", {100 + i}).Serialize());
  }
  absl::StatusOr<TfRecordShard> shard = TfRecordShard::Create(
      std::make_unique<AskingSource>(builder.Build(), std::move(before_read)));
  EXPECT_THAT(shard, IsOk());
  std::vector<std::unique_ptr<const RecordSource>> shards;
  shards.push_back(std::make_unique<TfRecordShard>(*std::move(shard)));
  return shards;
}

TEST(DatasetTest, CreateFailsAfterOneReadDuringAnOutage) {
  int reads = 0;
  bool away = false;
  std::vector<std::unique_ptr<const RecordSource>> shards = Shards([&](uint64_t) {
    ++reads;
    return away ? absl::UnavailableError("store is away") : absl::OkStatus();
  });
  away = true;
  reads = 0;
  EXPECT_THAT(Dataset::Create("photos", std::move(shards)),
              StatusIs(absl::StatusCode::kUnavailable,
                       AllOf(HasSubstr("'photos'"), HasSubstr("store is away"))));
  EXPECT_EQ(reads, 1);
}

TEST(DatasetTest, AnOutageAfterTheFirstRecordEndsSamplingAndKeepsItsFeatures) {
  std::vector<uint64_t> reads;
  bool opens = true;
  std::vector<std::unique_ptr<const RecordSource>> shards = Shards([&](uint64_t offset) {
    reads.push_back(offset);
    return opens || offset == 0 ? absl::OkStatus() : absl::UnavailableError("store is away");
  });
  opens = false;
  reads.clear();
  const absl::StatusOr<std::shared_ptr<Dataset>> dataset =
      Dataset::Create("photos", std::move(shards));
  ASSERT_THAT(dataset, IsOk());
  EXPECT_EQ((*dataset)->features().size(), 1u);
  // Record 0 is read first, for its features. Then records from all over the dataset are sampled.
  // The sample begins with record 0 again. The second record of the sample is record 5, whose read
  // fails. This ends the sampling.
  EXPECT_THAT(reads, ElementsAre(0, 0, (*dataset)->shards()[0]->span(5).offset));
}

}  // namespace
}  // namespace systole
