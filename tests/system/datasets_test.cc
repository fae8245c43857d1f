// Tests datasets with bad files. A server refuses a dataset with a file that is not a shard, and
// serves a dataset with damaged shards. The server reports both cases at every start.
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/record/tfrecord/shard_builder.h"
#include "tests/status_matchers.h"
#include "tests/system/served_feed.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kDamage = 1;

class DatasetsTest : public testing::Test {
 protected:
  static std::string Gzip() { return absl::StrCat("\x1f\x8b\x08", std::string(2000, '\x55')); }

  std::string Flag(const std::string& name, const std::string& pattern) const {
    return absl::StrCat(name, "=", folder_ / pattern);
  }
  Finished Feed(const std::string& server, const std::string& dataset) const {
    return RunSystole({"feed", "--server", server, "--digest", "--spec",
                       folder_.Write("spec.textproto",
                                     absl::StrReplaceAll(RawSpec(784, 1),
                                                         {{"\"raw\"", "\"" + dataset + "\""}}))});
  }

  const TempFolder folder_;
};

TEST_F(DatasetsTest, InvalidDatasetsAreReportedAndTheValidOneIsServed) {
  folder_.Write("raw.tfrecord", RawShard(0, 64, 784));
  folder_.Write("mixed-0.tfrecord", RawShard(0, 20, 784));
  folder_.Write("mixed-1.tfrecord", Gzip());
  std::filesystem::create_directory(folder_ / "daisy");
  folder_.Write("daisy/1.jpg", "\xff\xd8\xff\xe0 and so on");
  for (const bool cached : {false, true}) {
    SCOPED_TRACE(cached);
    const auto server = ServerProcess::Start(
        {"--dataset", Flag("raw", "raw.tfrecord"), "--dataset", Flag("mixed", "mixed-*.tfrecord"),
         "--dataset", Flag("images", "daisy/*.jpg"), "--dataset", Flag("cut", "none*")});
    ASSERT_THAT(server, IsOk());
    EXPECT_THAT(
        (*server)->process().err(),
        AllOf(HasSubstr("dataset 'mixed' is not served: shard \"mixed-1.tfrecord\": it does not "
                        "begin as gzip does"),
              HasSubstr("dataset 'images' is not served: none of the 1 image files in"),
              HasSubstr("\"daisy/1.jpg\": "),
              HasSubstr(absl::StrCat("pattern \"", folder_ / "none*"))));
    const std::string address = (*server)->address();
    EXPECT_EQ(Feed(address, "raw").exit_code, 0);
    const Finished refused = Feed(address, "mixed");
    EXPECT_EQ(refused.exit_code, kDamage);
    EXPECT_THAT(refused.err,
                AllOf(HasSubstr("does not serve the dataset 'mixed'"),
                      HasSubstr("begin as gzip does"), Not(HasSubstr(folder_.path()))));
    const Finished datasets = RunSystole({"datasets", "--server", address});
    EXPECT_EQ(datasets.exit_code, kDamage);
    EXPECT_THAT(datasets.out,
                AllOf(HasSubstr("raw: 64 records in 1 shards"), HasSubstr("mixed: refused: "),
                      HasSubstr("cut: refused: no file matches its pattern"),
                      Not(HasSubstr(folder_.path()))));
  }
}

TEST_F(DatasetsTest, AServerWithNoValidDatasetExits) {
  folder_.Write("raw.tfrecord", Gzip());
  const Finished server = Process({ServerProgram(), "--listen", "127.0.0.1:0", "--dataset",
                                   Flag("raw", "raw.tfrecord")})
                              .Wait();
  EXPECT_EQ(server.exit_code, kDamage);
  EXPECT_THAT(server.err, AllOf(HasSubstr("'raw'"), HasSubstr("begin as gzip does")));
}

TEST_F(DatasetsTest, CompressedShardsInAFolderGiveTheBytesOfPlainOnes) {
  ASSERT_EQ(RunSystole({"make-flowers", folder_ / "images", "--images", "24"}).exit_code, 0);
  std::vector<std::string> args;
  for (const std::string kind : {"none", "gzip", "zlib", "zstd"}) {
    ASSERT_EQ(RunSystole({"pack", folder_ / "images", folder_ / (kind + "/raw"), "--shards", "3",
                          "--compression", kind})
                  .exit_code,
              0);
    args.insert(args.end(), {"--dataset", Flag(kind, kind)});
  }
  constexpr char kFlowers[] = R"pb(
    dataset: "raw"
    num_cores: 2
    global_batch: 6
    epochs: 2
    seed: 3
    shuffle { mode: GLOBAL }
    outputs {
      name: "image"
      feature: "image"
      dtype: FLOAT32
      transforms { decode_jpeg {} }
      transforms { random_resized_crop { height: 40 width: 40 } }
    }
    outputs { name: "id" feature: "record_id" dtype: INT64 }
  )pb";
  // The second server (`cached`) uses what the first server has written beside the shards.
  for (const bool cached : {false, true}) {
    SCOPED_TRACE(cached);
    const auto server = ServerProcess::Start(args);
    ASSERT_THAT(server, IsOk());
    std::set<std::string> digests;
    for (const std::string kind : {"none", "gzip", "zlib", "zstd"}) {
      const Finished feed = RunSystole(
          {"feed", "--server", (*server)->address(), "--digest", "--spec",
           folder_.Write("spec.textproto",
                         absl::StrReplaceAll(kFlowers, {{"\"raw\"", "\"" + kind + "\""}}))});
      EXPECT_EQ(feed.exit_code, 0) << feed.err;
      EXPECT_GT(feed.out.size(), 100u);
      digests.insert(feed.out);
    }
    EXPECT_EQ(digests.size(), 1u);
  }
}

TEST_F(DatasetsTest, TheCompressionFlagIsUsedEvenIfAShardIsNotCompressed) {
  folder_.Write("raw.tfrecord", RawShard(0, 64, 784));
  const Finished server = Process({ServerProgram(), "--listen", "127.0.0.1:0", "--compression",
                                   "GZIP", "--dataset", Flag("raw", "raw.tfrecord")})
                              .Wait();
  EXPECT_EQ(server.exit_code, kDamage);
  EXPECT_THAT(server.err, HasSubstr("incorrect header check"));
  // The error is logged once.
  EXPECT_EQ(server.err.find("incorrect header check"), server.err.rfind("incorrect header check"));
}

TEST_F(DatasetsTest, DamageIsReportedAtEveryServerStart) {
  folder_.Write("raw-0.tfrecord", RawShard(0, 64, 784));
  folder_.Write("raw-1.tfrecord", WithFlippedBit(RawShard(64, 64, 784), 8 * (5 * 800 + 3)));
  for (const bool cached : {false, true}) {
    SCOPED_TRACE(cached);
    const auto server = ServerProcess::Start({"--dataset", Flag("raw", "raw-*.tfrecord")});
    ASSERT_THAT(server, IsOk());
    EXPECT_THAT((*server)->process().err(),
                AllOf(HasSubstr("dataset 'raw': 1 damaged stretch was found while indexing"),
                      HasSubstr("shard 'raw-1.tfrecord', offset 4000 (record_id 69): CRC of the "
                                "length field")));
    const Finished text = RunSystole({"datasets", "--server", (*server)->address(), "--shards"});
    EXPECT_EQ(text.exit_code, kDamage);
    EXPECT_THAT(
        text.out,
        AllOf(HasSubstr("raw: 128 records in 2 shards, fingerprint "),
              HasSubstr("raw-0.tfrecord  64 records, 51200 bytes"),
              HasSubstr("1 damaged stretch was found while indexing, of 1 record or more:\n"),
              HasSubstr("shard 'raw-1.tfrecord', offset 4000 (record_id 69): ")));
    const Finished json = RunSystole({"datasets", "--server", (*server)->address(), "--json"});
    EXPECT_THAT(json.out, AllOf(HasSubstr("\"damaged\":1"), HasSubstr("\"offset\":4000"),
                                HasSubstr("\"record\":69"), HasSubstr("\"refused\":[]")));
  }
}

TEST_F(DatasetsTest, TheDatasetsCommandExitsWith0AndWithoutAServerWith4) {
  folder_.Write("raw.tfrecord", RawShard(0, 64, 784));
  const auto server = ServerProcess::Start({"--dataset", Flag("raw", "raw.tfrecord")});
  ASSERT_THAT(server, IsOk());
  const Finished datasets = RunSystole({"datasets", "--server", (*server)->address()});
  EXPECT_EQ(datasets.exit_code, 0) << datasets.err;
  EXPECT_EQ(datasets.err, "");
  EXPECT_EQ(
      RunSystole({"datasets", "--server", "127.0.0.1:1", "--connect-timeout", "0.2"}).exit_code, 4);
}

}  // namespace
}  // namespace systole
