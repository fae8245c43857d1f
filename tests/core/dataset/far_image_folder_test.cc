// Opens datasets of image files in a bucket. Tests the requests of a start.
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/dataset/dataset.h"
#include "core/image/jpeg/jpeg_encoder.h"
#include "core/memory/aligned_buffer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/storage/bucket/stub_bucket.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::HasSubstr;

constexpr int kImages = 300;
// The most reads of labels.txt (1) and of records from which the dataset's features are found (9).
constexpr int kFewReads = 10;

StubBucket& Bucket() { return UnsignedBucketOfProcess(); }

// The folder of the running test.
std::string Folder() {
  return absl::StrCat(testing::UnitTest::GetInstance()->current_test_info()->name(), "/");
}

std::string KeyOf(int image) {
  return absl::StrFormat("%sclass-%d/%05d.jpg", Folder(), image % 3, image);
}

std::string Image(int key) {
  const std::vector<uint8_t> pixels(12 * 8 * 3, static_cast<uint8_t>(key));
  return *EncodeJpeg(pixels, 12, 8, 3, {.quality = 90});
}

void PutImages() {
  for (int i = 0; i < kImages; ++i) Bucket().Put(KeyOf(i), Image(i));
}

std::shared_ptr<Dataset> Open(const TempFolder& indexes, const std::string& glob = "*/*.jpg") {
  const absl::StatusOr<std::shared_ptr<Dataset>> dataset =
      Dataset::Open("far", {Bucket().Name(Folder() + glob)}, {.index_dir = indexes.path()});
  EXPECT_THAT(dataset, IsOk());
  return dataset.ok() ? *dataset : nullptr;
}

// Requests while `work` runs.
struct Asked {
  int lists = 0;
  int reads = 0;
};
template <typename Work>
Asked AskedBy(Work work) {
  const int lists = Bucket().lists();
  const int reads = Bucket().reads();
  work();
  return {.lists = Bucket().lists() - lists, .reads = Bucket().reads() - reads};
}

// The number of requests so far for the object `key`.
int ReadsOf(const std::string& key) {
  const std::vector<StubRequest> requests = Bucket().server().requests();
  return static_cast<int>(std::count_if(
      requests.begin(), requests.end(),
      [&key](const StubRequest& request) { return absl::EndsWith(request.target, key); }));
}

TEST(FarImageFolderTest, AFirstStartReadsEachImageWithOneRequest) {
  PutImages();
  const TempFolder indexes;
  const Asked asked = AskedBy([&] { ASSERT_NE(Open(indexes), nullptr); });
  EXPECT_EQ(asked.lists, 1);
  EXPECT_GE(asked.reads, kImages);
  EXPECT_LE(asked.reads, kImages + kFewReads);
}

TEST(FarImageFolderTest, AStartWithAnIndexListsTheFolderOnceAndReadsFewImages) {
  PutImages();
  const TempFolder indexes;
  const std::shared_ptr<Dataset> first = Open(indexes);
  std::shared_ptr<Dataset> dataset;
  const Asked asked = AskedBy([&] { dataset = Open(indexes); });
  EXPECT_EQ(asked.lists, 1);
  EXPECT_LE(asked.reads, kFewReads);
  ASSERT_NE(dataset, nullptr);
  EXPECT_EQ(dataset->num_records(), kImages);
  EXPECT_EQ(dataset->fingerprint(), first->fingerprint());
  AlignedBuffer scratch;
  AlignedBuffer other;
  for (const int64_t record : {0, 123, kImages - 1}) {
    EXPECT_EQ(dataset->ReadRecord(record, scratch).value(),
              first->ReadRecord(record, other).value());
  }
  // A folder of one class is listed as a whole.
  const Asked one_class = AskedBy([&] { Open(indexes, "class-1/*.jpg"); });
  EXPECT_EQ(one_class.lists, 1);
  EXPECT_LE(one_class.reads, kFewReads);
}

TEST(FarImageFolderTest, AnImageThatWasReplacedIsReadAgain) {
  PutImages();
  const TempFolder indexes;
  const std::shared_ptr<Dataset> first = Open(indexes);
  Bucket().Put(KeyOf(7), Image(201));
  const int before = ReadsOf(KeyOf(7));
  std::shared_ptr<Dataset> dataset;
  const Asked asked = AskedBy([&] { dataset = Open(indexes); });
  const int reads = ReadsOf(KeyOf(7)) - before;
  EXPECT_GE(reads, 1);
  EXPECT_LE(asked.reads - reads, kFewReads);
  ASSERT_NE(dataset, nullptr);
  EXPECT_NE(dataset->fingerprint(), first->fingerprint());
  EXPECT_EQ(Open(indexes)->fingerprint(), dataset->fingerprint());
  // Record 102 is image 7: it comes after the 100 images of class 0, and images 1 and 4 of class 1.
  AlignedBuffer scratch;
  AlignedBuffer other;
  EXPECT_THAT(dataset->ReadRecord(102, scratch), IsOkAndHolds(HasSubstr(Image(201))));
  EXPECT_THAT(dataset->ReadRecord(103, scratch),
              IsOkAndHolds(first->ReadRecord(103, other).value()));
}

// An image is replaced after the folder was listed and before the image is read.
TEST(FarImageFolderTest, AnImageThatIsReplacedAfterTheListIsNoticed) {
  PutImages();
  const TempFolder indexes;
  const std::shared_ptr<Dataset> first = Open(indexes);
  const std::shared_ptr<Dataset> dataset = Open(indexes);
  Bucket().Put(KeyOf(0), Image(202));
  AlignedBuffer scratch;
  EXPECT_THAT(dataset->ReadRecord(0, scratch),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("00000.jpg")));

  // When the first image is read, the last image is replaced. The last image has not been read at
  // that time, so its new bytes are read later.
  const TempFolder others;
  std::atomic<bool> replaced = false;
  Bucket().SetFault([&](const StubRequest& request) -> std::optional<StubAnswer> {
    if (absl::StrContains(request.target, ".jpg") && !replaced.exchange(true)) {
      Bucket().Put(KeyOf(kImages - 1), Image(203));
    }
    return std::nullopt;
  });
  const std::shared_ptr<Dataset> anew = Open(others);
  Bucket().SetFault(nullptr);
  ASSERT_NE(anew, nullptr);
  EXPECT_EQ(anew->fingerprint(), Open(others)->fingerprint());
}

// The list may write an image's identity in another form than the answer to a read does. Then a
// start asks for each image. This takes longer, but the result is right.
TEST(FarImageFolderTest, AListingWithAnotherFormOfETagsStillGivesTheSameDataset) {
  PutImages();
  const TempFolder indexes;
  const std::shared_ptr<Dataset> first = Open(indexes);
  Bucket().SetFault([](const StubRequest& request) -> std::optional<StubAnswer> {
    if (!absl::StrContains(request.target, "list-type=2")) return std::nullopt;
    StubAnswer usual = Bucket().Usual(request);
    for (size_t at = 0; (at = usual.bytes.find("<ETag>&quot;", at)) != std::string::npos; ++at) {
      usual.bytes[at + 12] = '-';
    }
    return usual;
  });
  std::shared_ptr<Dataset> dataset;
  const Asked asked = AskedBy([&] { dataset = Open(indexes); });
  Bucket().SetFault(nullptr);
  EXPECT_GE(asked.reads, kImages);
  EXPECT_LE(asked.reads, kImages + kFewReads);
  ASSERT_NE(dataset, nullptr);
  EXPECT_EQ(dataset->fingerprint(), first->fingerprint());
}

}  // namespace
}  // namespace systole
