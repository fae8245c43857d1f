// Pack() with a bucket that refuses requests, does not answer, or is used by another run at the
// same time.
#include <algorithm>
#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cli/shards/packer.h"
#include "core/interrupt/interrupt.h"
#include "core/record/each_shard.h"
#include "core/storage/byte_source.h"
#include "core/storage/stores/store_table.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/cli/image_folder.h"
#include "tests/core/http/stub_objects.h"
#include "tests/core/storage/bucket/stub_bucket.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

StubBucket& Bucket() { return SignedBucketOfProcess(); }

class PackerBucketTest : public testing::Test {
 protected:
  PackerBucketTest() { FillImageFolder(images_, {"a", "b"}, 4); }
  ~PackerBucketTest() override { Bucket().SetFault(nullptr); }

  // A key of this test in the bucket.
  static std::string Key(const std::string& name) {
    return absl::StrCat(testing::UnitTest::GetInstance()->current_test_info()->name(), "/", name);
  }
  static std::string Name(const std::string& name) { return Bucket().Name(Key(name)); }
  // Requests with this method for a target that holds `part` are refused.
  static void Refuse(const std::string& method, const std::string& part) {
    Bucket().SetFault([=](const StubRequest& request) -> std::optional<StubAnswer> {
      if (request.method != method || !absl::StrContains(request.target, part)) return std::nullopt;
      return Bodiless(request, RefuseInXml(403, "AccessDenied"));
    });
  }
  // The names in the test's folder of the bucket.
  static std::vector<std::string> Left() {
    std::vector<std::string> left;
    absl::StatusOr<std::vector<std::string>> there =
        StoreOf(Name("out/")).value()->ListFolder(Name("out/"));
    if (absl::IsNotFound(there.status())) return {};
    EXPECT_THAT(there, IsOk());
    for (const std::string& path : *there) left.emplace_back(BaseName(path));
    std::sort(left.begin(), left.end());
    return left;
  }

  const TempFolder images_;
};

TEST_F(PackerBucketTest, SkipBadDoesNotSkipAnImageThatCannotBeRead) {
  const TempFolder out;
  for (int k = 0; k < 4; ++k) {
    Bucket().Put(Key(absl::StrCat("images/a/", k, ".jpg")), TestJpeg(40, 30, 3, k));
  }
  const PackOptions options = {.plan = {.shards = 1}, .skip_bad = true};
  Refuse("GET", "a/2.jpg");
  EXPECT_THAT(PackQuietly(Name("images"), out / "p", options),
              StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("a/2.jpg")));
  EXPECT_THAT(out.List(), IsEmpty());
  // The image was removed after the folder was listed.
  Bucket().SetFault([](const StubRequest& request) -> std::optional<StubAnswer> {
    if (!absl::StrContains(request.target, "a/2.jpg")) return std::nullopt;
    return Bodiless(request, RefuseInXml(404, "NoSuchKey"));
  });
  EXPECT_THAT(PackQuietly(Name("images"), out / "p", options),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("a/2.jpg")));
  Bucket().SetFault(nullptr);
  Bucket().Put(Key("images/a/2.jpg"), "no picture");
  const absl::StatusOr<PackReport> report = PackQuietly(Name("images"), out / "p", options);
  ASSERT_THAT(report, IsOk());
  EXPECT_EQ(report->train_images, 3);
  EXPECT_THAT(report->skipped, SizeIs(1));
}

TEST_F(PackerBucketTest, LabelsThatMayNotBeReadAreNotReplaced) {
  Bucket().Put(Key("out/labels.txt"), "others\n");
  Refuse("GET", "labels.txt");
  EXPECT_THAT(PackQuietly(images_.path(), Name("out/p"), {.plan = {.shards = 1}}),
              StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("labels.txt")));
  EXPECT_EQ(Bucket().Get(Key("out/labels.txt")), "others\n");
  EXPECT_THAT(Left(), ElementsAre("labels.txt"));
}

TEST_F(PackerBucketTest, AnInterruptedRunReportsWhichShardsItLeftIfAny) {
  EXPECT_THAT(PackAndStop(images_.path(), Name("out/p"), "packing", 5),
              StatusIs(absl::StatusCode::kCancelled, "interrupted: no shard of this run is left"));
  EXPECT_THAT(Left(), IsEmpty());
  Refuse("DELETE", "p-train");
  EXPECT_THAT(PackAndStop(images_.path(), Name("out/p"), "packing", 5),
              StatusIs(absl::StatusCode::kCancelled,
                       AllOf(HasSubstr("interrupted; and these files"), HasSubstr("p-train-00000"),
                             Not(HasSubstr("no shard")), Not(HasSubstr("labels.txt")))));
}

TEST_F(PackerBucketTest, AnInterruptionEndsAWaitForTheServer) {
  for (int k = 0; k < 4; ++k) {
    Bucket().Put(Key(absl::StrCat("images/a/", k, ".jpg")), TestJpeg(40, 30, 3, k));
  }
  for (const char* waits : {"list-type=2", "labels.txt", "a/2.jpg", "out/p-train"}) {
    InterruptFlag unwanted;
    Bucket().SetFault([&](const StubRequest& request) -> std::optional<StubAnswer> {
      if (unwanted.is_raised() || !absl::StrContains(request.target, waits)) return std::nullopt;
      unwanted.Raise();
      return StubAnswer{.hangs = true};
    });
    const InterruptScope scope(unwanted);
    EXPECT_THAT(PackQuietly(Name("images"), Name("out/p"), {.plan = {.shards = 2}}),
                StatusIs(absl::StatusCode::kCancelled, "interrupted: no shard of this run is left"))
        << waits;
    const InterruptFlag never;
    const InterruptScope of_the_test(never);
    EXPECT_THAT(Left(), IsEmpty()) << waits;
  }
}

TEST_F(PackerBucketTest, AWrittenShardThatCannotBeReadBackIsRemoved) {
  std::atomic<bool> looked = false;
  Bucket().SetFault([&looked](const StubRequest& request) -> std::optional<StubAnswer> {
    const bool is_look = request.method == "GET" || request.method == "HEAD";
    if (!is_look || !absl::StrContains(request.target, "p-train-00001")) return std::nullopt;
    if (looked.exchange(true)) return std::nullopt;
    return Bodiless(request, RefuseInXml(403, "AccessDenied"));
  });
  EXPECT_THAT(PackQuietly(images_.path(), Name("out/p"), {.plan = {.shards = 2}}),
              StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("p-train-00001")));
  EXPECT_THAT(Left(), IsEmpty());
}

TEST_F(PackerBucketTest, AfterAnErrorNoNewShardStartsAndTenLeftShardsAreNamed) {
  FillImageFolder(images_, {"c"}, 20);
  std::atomic<int> puts = 0;
  Bucket().SetFault([&](const StubRequest& request) -> std::optional<StubAnswer> {
    const bool is_shard = absl::StrContains(request.target, "p-train");
    if (is_shard && request.method == "PUT") ++puts;
    const bool refused = absl::StrContains(request.target, "p-train-00013") ||
                         (is_shard && request.method == "DELETE");
    if (!refused) return std::nullopt;
    return Bodiless(request, RefuseInXml(403, "AccessDenied"));
  });
  EXPECT_THAT(PackQuietly(images_.path(), Name("out/p"), {.plan = {.shards = 20}, .threads = 1}),
              StatusIs(absl::StatusCode::kPermissionDenied,
                       AllOf(HasSubstr("p-train-00009"), Not(HasSubstr("p-train-00010")),
                             HasSubstr(" and 3 more"))));
  EXPECT_EQ(puts, 14);
}

// Each of the threads that remove shards stops after its first failure.
TEST_F(PackerBucketTest, CleanupMakesOneFailingDeletePerThreadAndThenStops) {
  FillImageFolder(images_, {"c"}, 60);
  std::atomic<int> asked = 0;
  Bucket().SetFault([&](const StubRequest& request) -> std::optional<StubAnswer> {
    if (request.method == "PUT" && absl::StrContains(request.target, "p-train-00049")) {
      return RefuseInXml(403, "AccessDenied");
    }
    if (request.method != "DELETE") return std::nullopt;
    if (absl::StrContains(request.target, "p-train")) ++asked;
    return Reply(301, "");
  });
  EXPECT_THAT(PackQuietly(images_.path(), Name("out/p"), {.plan = {.shards = 50}}),
              StatusIs(absl::StatusCode::kPermissionDenied,
                       AllOf(HasSubstr("p-train-00009"), HasSubstr(" and 40 more"))));
  EXPECT_GE(asked, 1);
  EXPECT_LE(asked, kShardsOpenedAtOnce);
  EXPECT_TRUE(Bucket().Get(Key("out/labels.txt")).has_value());
}

TEST_F(PackerBucketTest, LabelsFileUsedByAnotherRunStaysAfterAnError) {
  // Another run began after this one had written labels.txt.
  Bucket().SetFault([](const StubRequest& request) -> std::optional<StubAnswer> {
    if (request.method != "PUT" || !absl::StrContains(request.target, "p-train")) {
      return std::nullopt;
    }
    Bucket().Put(Key("out/q-train-00000-of-00001.tfrecord"), "a shard");
    return RefuseInXml(403, "AccessDenied");
  });
  EXPECT_THAT(
      PackQuietly(images_.path(), Name("out/p"), {.plan = {.shards = 1}}),
      StatusIs(absl::StatusCode::kPermissionDenied, Not(HasSubstr("could not be removed"))));
  EXPECT_THAT(Left(), ElementsAre("labels.txt", "q-train-00000-of-00001.tfrecord"));
}

}  // namespace
}  // namespace systole
