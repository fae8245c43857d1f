// `systole pack` with images and shards in buckets, by the real program.
#include <atomic>
#include <filesystem>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/status/check.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/cli/image_folder.h"
#include "tests/core/storage/bucket/stub_bucket.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/system/process.h"
#include "tests/system/served_feed.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const AwsSigning kSign = {.access_key_id = "AKIDOFTEST",
                          .secret_access_key = "SECRETOFTEST",
                          .session_token = {},
                          .region = "eu-west-1",
                          .service = "s3"};

StubBucketOptions Options(bool is_gcs) {
  constexpr size_t kLeastPart = size_t{5} << 20;
  return is_gcs ? StubBucketOptions{.is_gcs = true, .min_part_bytes = kLeastPart}
                : StubBucketOptions{.sign = kSign, .min_part_bytes = kLeastPart};
}

Finished Pack(StubBucket& bucket, const std::string& images, const std::string& out,
              std::vector<std::string> flags = {"--shards", "3", "--validation", "0.25"}) {
  std::vector<std::string> args = {"pack", images, out};
  args.insert(args.end(), flags.begin(), flags.end());
  const Finished packed = RunSystole(
      args,
      {.environment = {"AWS_ACCESS_KEY_ID=" + kSign.access_key_id,
                       "AWS_SECRET_ACCESS_KEY=" + kSign.secret_access_key,
                       "AWS_REGION=" + kSign.region, "AWS_ENDPOINT_URL_S3=" + bucket.endpoint(),
                       "STORAGE_EMULATOR_HOST=" + bucket.endpoint()}});
  EXPECT_THAT(packed.out + packed.err,
              AllOf(Not(HasSubstr("SECRETOFTEST")), Not(HasSubstr("AKIDOFTEST"))));
  return packed;
}

// Expects that the bucket has the files of `folder`, under names that begin with `key`.
void ExpectSame(const StubBucket& bucket, const std::string& key, const TempFolder& folder) {
  ASSERT_THAT(folder.List(), Not(IsEmpty()));
  for (const std::string& name : folder.List()) {
    EXPECT_EQ(bucket.Get(key + name), ReadWholeFile(folder / name)) << name;
  }
}

class PackTest : public testing::Test {
 protected:
  PackTest() { FillImageFolder(images_, {"rose", "daisy"}, 8); }

  // The files of a run of `pack` that are in the bucket's folder "out".
  static std::vector<std::string> LeftOf(const StubBucket& bucket) {
    std::vector<std::string> left;
    for (const char* name : {"labels.txt", "p.manifest", "p-train-00000-of-00003.tfrecord",
                             "p-train-00001-of-00003.tfrecord", "p-train-00002-of-00003.tfrecord",
                             "p-validation-00000-of-00001.tfrecord"}) {
      if (bucket.Get(std::string("out/") + name).has_value()) left.push_back(name);
    }
    return left;
  }

  const TempFolder images_;
};

TEST_F(PackTest, PackWritesTheSameFilesToABucketAndAFolderFromAnySource) {
  for (const bool is_gcs : {false, true}) {
    StubBucket bucket(Options(is_gcs));
    const TempFolder local;
    ASSERT_EQ(Pack(bucket, images_.path(), local / "p").exit_code, 0);
    for (const char* name : {"rose", "daisy"}) {
      for (int k = 0; k < 8; ++k) {
        const std::string image = absl::StrCat(name, "/", k, ".jpg");
        bucket.Put("images/" + image, ReadWholeFile(images_ / image));
      }
    }
    // Lists of the names of all images, one name on each line. With GCS the names are web
    // addresses, because a web server cannot list files.
    const TempFolder lists;
    std::string lines;
    for (int k = 7; k >= 0; --k) {
      for (const char* name : {"rose", "daisy"}) {
        absl::StrAppend(
            &lines,
            is_gcs ? absl::StrCat(bucket.endpoint(), "/", kStubBucket, "/") : bucket.Name(""),
            "images/", name, "/", k, ".jpg\n");
      }
    }
    int run = 0;
    for (const std::string& images :
         {images_.path(), bucket.Name("images"), bucket.Name("images/*/*.jpg"),
          images_.path() + "/*/*.jpg", "@" + lists.Write("names.txt", lines)}) {
      const std::string folder = absl::StrCat("out", ++run, "/");
      const Finished packed = Pack(bucket, images, bucket.Name(folder + "p"));
      ASSERT_EQ(packed.exit_code, 0) << packed.err;
      EXPECT_THAT(packed.out, AllOf(HasSubstr(bucket.Name(folder + "p.manifest")),
                                    HasSubstr("2 classes, 12 train images")));
      ExpectSame(bucket, folder, local);
    }
    // Packs again under the first run's name, and so replaces that run's shards.
    EXPECT_EQ(Pack(bucket, images_.path(), bucket.Name("out1/p")).exit_code, 0);
    ExpectSame(bucket, "out1/", local);
  }
}

TEST_F(PackTest, ALargeShardIsUploadedInPartsAndLeavesNoOpenUpload) {
  for (const bool is_gcs : {false, true}) {
    StubBucket bucket(Options(is_gcs));
    const TempFolder large;
    const TempFolder local;
    std::filesystem::create_directory(large / "a");
    large.Write("a/0.jpg", TestJpeg(2000, 1600, 3, 1));
    const std::vector<std::string> flags = {"--shards", "1", "--raw"};
    ASSERT_EQ(Pack(bucket, large.path(), local / "p", flags).exit_code, 0);
    const Finished packed = Pack(bucket, large.path(), bucket.Name("out/p"), flags);
    ASSERT_EQ(packed.exit_code, 0) << packed.err;
    ExpectSame(bucket, "out/", local);
    std::vector<size_t> part_bytes;
    for (const StubRequest& request : bucket.server().requests()) {
      if (request.method == "PUT" && absl::StrContains(request.target, "partNumber=")) {
        EXPECT_THAT(request.target, HasSubstr("p-train-00000-of-00001.tfrecord"));
        part_bytes.push_back(request.body.size());
      }
    }
    EXPECT_GE(part_bytes.size(), 2u);
    EXPECT_EQ(std::accumulate(part_bytes.begin(), part_bytes.end(), size_t{0}),
              bucket.Get("out/p-train-00000-of-00001.tfrecord")->size());
    EXPECT_EQ(bucket.uploads(), 0);
  }
}

TEST_F(PackTest, ShardsAndLabelsOfAnotherSetAreNotMixedWithNewOnes) {
  StubBucket bucket(Options(/*is_gcs=*/false));
  ASSERT_EQ(Pack(bucket, images_.path(), bucket.Name("out/p")).exit_code, 0);
  const Finished other = Pack(bucket, images_.path(), bucket.Name("out/p"), {"--shards", "4"});
  EXPECT_NE(other.exit_code, 0);
  EXPECT_THAT(other.err, HasSubstr("left from another run"));
  const TempFolder lilies;
  FillImageFolder(lilies, {"lily"}, 3);
  const Finished labels = Pack(bucket, lilies.path(), bucket.Name("out/q"), {"--shards", "1"});
  EXPECT_NE(labels.exit_code, 0);
  EXPECT_THAT(labels.err, HasSubstr("labels.txt names other classes"));
  EXPECT_EQ(bucket.Get("out/labels.txt"), "daisy\nrose\n");
}

TEST_F(PackTest, AFailedUploadRemovesItsObjectsOrNamesThoseLeft) {
  for (const bool may_remove : {true, false}) {
    StubBucket bucket(Options(/*is_gcs=*/false));
    bucket.SetFault([may_remove](const StubRequest& request) -> std::optional<StubAnswer> {
      const bool refused =
          request.method == "PUT" && absl::StrContains(request.target, "train-00001");
      if (!refused && (may_remove || request.method != "DELETE")) return std::nullopt;
      return RefuseInXml(403, "AccessDenied");
    });
    const Finished packed = Pack(bucket, images_.path(), bucket.Name("out/p"));
    EXPECT_NE(packed.exit_code, 0);
    EXPECT_THAT(packed.err, AllOf(HasSubstr("p-train-00001-of-00003"), HasSubstr("s3:PutObject")));
    if (may_remove) {
      EXPECT_THAT(LeftOf(bucket), IsEmpty());
      EXPECT_THAT(packed.err, Not(HasSubstr("could not be removed")));
    } else {
      EXPECT_THAT(packed.err, HasSubstr("could not be removed"));
      for (const std::string& left : LeftOf(bucket)) {
        EXPECT_THAT(packed.err, HasSubstr(bucket.Name("out/" + left)));
      }
      EXPECT_THAT(LeftOf(bucket), Not(IsEmpty()));
    }
  }
}

TEST_F(PackTest, AMissingWritePermissionIsReportedBeforeImagesAreRead) {
  StubBucket bucket(Options(/*is_gcs=*/false));
  bucket.Put("images/a/0.jpg", TestJpeg(40, 30, 3, 0));
  bucket.SetFault([](const StubRequest& request) -> std::optional<StubAnswer> {
    if (request.method == "GET" || request.method == "HEAD") return std::nullopt;
    return RefuseInXml(403, "AccessDenied");
  });
  const Finished packed =
      Pack(bucket, bucket.Name("images"), bucket.Name("out/p"), {"--shards", "1"});
  EXPECT_NE(packed.exit_code, 0);
  EXPECT_THAT(packed.err, AllOf(HasSubstr("403 AccessDenied"), HasSubstr("s3:PutObject")));
  for (const StubRequest& request : bucket.server().requests()) {
    EXPECT_THAT(request.target, Not(HasSubstr("0.jpg")));
  }
  const Finished web = Pack(bucket, images_.path(), bucket.endpoint() + "/out/p?sig=SECRETOFTEST");
  EXPECT_NE(web.exit_code, 0);
  EXPECT_THAT(web.err, HasSubstr("read-only"));
}

}  // namespace
}  // namespace systole
