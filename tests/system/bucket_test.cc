// Tests shards in buckets. The real programs inspect, index, verify and serve them, and a feed in
// the process of the test reads them.
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "client/local/local_engine.h"
#include "client/local/local_feed.h"
#include "client/step/step.h"
#include "core/dataset/dataset.h"
#include "core/example/example_builder.h"
#include "core/textproto/message_text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "systole/v1/feed.pb.h"
#include "tests/core/record/tfrecord/shard_builder.h"
#include "tests/core/storage/bucket/stub_bucket.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/status_matchers.h"
#include "tests/system/process.h"
#include "tests/system/served_feed.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const AwsSigning kSign = {.access_key_id = "AKIDOFTEST",
                          .secret_access_key = "SECRET/OF+TEST",
                          .session_token = "SESSIONOFTEST",
                          .region = "eu-west-1",
                          .service = "s3"};

// The environment of a program that reads `bucket`.
ProcessOptions Environment(const StubBucket& bucket, const std::string& secret = {}) {
  return {.environment = {
              "AWS_ACCESS_KEY_ID=" + kSign.access_key_id,
              "AWS_SECRET_ACCESS_KEY=" + (secret.empty() ? kSign.secret_access_key : secret),
              "AWS_SESSION_TOKEN=" + kSign.session_token, "AWS_REGION=" + kSign.region,
              "AWS_ENDPOINT_URL_S3=" + bucket.endpoint(),
              "STORAGE_EMULATOR_HOST=" + bucket.endpoint()}};
}

// Matches a text that contains no part of the credentials in this file.
auto ShowsNoSecret() {
  return AllOf(Not(HasSubstr("SECRET/OF")), Not(HasSubstr("OF+TEST")),
               Not(HasSubstr("SECRETWRONG")), Not(HasSubstr("SESSIONOFTEST")),
               Not(HasSubstr("AKIDOFTEST")));
}

std::string Shard(int first, int records) {
  ShardBuilder builder;
  for (int i = first; i < first + records; ++i) {
    builder.Add(ExampleBuilder()
                    .AddBytes("raw", absl::StrCat("0123456789abcdef", 10 + i))
                    .AddInt64s("cls", {i})
                    .Serialize());
  }
  return builder.Build();
}

// Puts four shards train-N.tfrecord of 16 records into the bucket's folder "d", and writes them
// into `folder`.
void PutShards(StubBucket& bucket, const TempFolder& folder) {
  for (int i = 0; i < 4; ++i) {
    const std::string name = absl::StrCat("train-", i, ".tfrecord");
    bucket.Put("d/" + name, Shard(16 * i, 16));
    folder.Write(name, Shard(16 * i, 16));
  }
}

std::string SpecOf(const std::string& dataset, int epochs = 1) {
  return absl::StrCat("dataset: '", dataset, "' seed: 3 epochs: ", epochs,
                      " shuffle { mode: GLOBAL } global_batch: 8 num_cores: 4 "
                      "outputs { name: 'raw' feature: 'raw' transforms { decode_raw {} } "
                      "  dtype: UINT8 shape: 18 } "
                      "outputs { name: 'label' feature: 'cls' dtype: INT64 }");
}

// Returns the sorted digests of a feed of this dataset. `systole feed` must end without an error.
std::string Digests(const ServerProcess& server, const std::string& dataset) {
  const TempFolder folder;
  const std::string spec = folder.Write("spec.textproto", SpecOf(dataset));
  const Finished fed =
      RunSystole({"feed", "--server", server.address(), "--spec", spec, "--digest"});
  EXPECT_EQ(fed.exit_code, 0) << fed.err;
  std::string digests;
  // Leaves out the line with --resume, because it contains the dataset's name in the spec.
  for (const std::string& line : Lines(fed.out)) {
    if (!absl::StrContains(line, "systole2:")) absl::StrAppend(&digests, line, "\n");
  }
  return SortedByStepAndCore(digests);
}

TEST(BucketTest, AFeedFromABucketHasTheBytesOfTheSameFeedFromFiles) {
  for (const bool is_gcs : {false, true}) {
    const TempFolder folder;
    StubBucket bucket(is_gcs ? StubBucketOptions{.is_gcs = true, .page_keys = 3}
                             : StubBucketOptions{.sign = kSign, .page_keys = 3});
    PutShards(bucket, folder);
    const auto server =
        ServerProcess::Start({"--dataset", "bucket=" + bucket.Name("d/train-*.tfrecord"),
                              "--dataset", "folder=" + bucket.Name("d"), "--dataset",
                              absl::StrCat("files=", folder.path(), "/train-*.tfrecord")},
                             Environment(bucket));
    ASSERT_THAT(server, IsOk());
    const std::string digests = Digests(**server, "files");
    EXPECT_EQ(Lines(digests).size(), 4u * 8u);
    EXPECT_EQ(Digests(**server, "bucket"), digests);
    EXPECT_EQ(Digests(**server, "folder"), digests);
  }
}

TEST(BucketTest, TransientBucketFailuresDoNotChangeTheDigests) {
  const TempFolder folder;
  StubBucket bucket({.sign = kSign});
  PutShards(bucket, folder);
  std::atomic<int> count = 0;
  bucket.SetFault([&](const StubRequest& request) -> std::optional<StubAnswer> {
    const int number = ++count;
    if (number % 7 == 0) return RefuseInXml(503, "SlowDown");
    if (number % 8 != 0 || !absl::StartsWith(request.method, "GET")) return std::nullopt;
    StubAnswer cut = bucket.Usual(request);
    cut.bytes.resize(cut.bytes.size() - 1);
    cut.closes = true;
    return cut;
  });
  const auto server = ServerProcess::Start(
      {"--dataset", "bucket=" + bucket.Name("d/*"), "--dataset", "files=" + folder.path()},
      Environment(bucket));
  ASSERT_THAT(server, IsOk());
  EXPECT_EQ(Digests(**server, "bucket"), Digests(**server, "files"));
  EXPECT_GT(count, 20);
}

TEST(BucketTest, CommandsReadGlobsAndKeepIndexesInAnotherFolder) {
  const TempFolder folder;
  const TempFolder indexes;
  StubBucket bucket({.sign = kSign});
  PutShards(bucket, folder);
  const std::string glob = bucket.Name("d/train-*.tfrecord");
  const ProcessOptions environment = Environment(bucket);
  const Finished inspected = RunSystole({"inspect", glob}, environment);
  EXPECT_EQ(inspected.exit_code, 0) << inspected.err;
  EXPECT_THAT(inspected.out, AllOf(HasSubstr("64 records"), HasSubstr("cls")));
  const Finished verified = RunSystole({"verify", glob}, environment);
  EXPECT_EQ(verified.exit_code, 0) << verified.err;
  const Finished indexed = RunSystole({"index", glob, "--index-dir", indexes.path()}, environment);
  EXPECT_EQ(indexed.exit_code, 0) << indexed.err;
  int kept = 0;
  for (const auto& entry : std::filesystem::directory_iterator(indexes.path())) {
    kept += entry.path().extension() == ".idx" ? 1 : 0;
  }
  EXPECT_EQ(kept, 4);
  const Finished beside = RunSystole({"index", glob}, environment);
  EXPECT_EQ(beside.exit_code, 0) << beside.err;
  for (int i = 0; i < 4; ++i) {
    EXPECT_TRUE(bucket.Get(absl::StrCat("d/train-", i, ".tfrecord.idx")).has_value());
    EXPECT_TRUE(bucket.Get(absl::StrCat("d/train-", i, ".tfrecord.idx.hash")).has_value());
  }
  bucket.SetFault([](const StubRequest& request) -> std::optional<StubAnswer> {
    if (request.method != "PUT") return std::nullopt;
    return RefuseInXml(403, "AccessDenied");
  });
  const Finished refused = RunSystole({"index", glob, "--rebuild"}, environment);
  EXPECT_NE(refused.exit_code, 0);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("train-0.tfrecord.idx"), HasSubstr("403 AccessDenied"),
                                 HasSubstr("s3:PutObject"), ShowsNoSecret()));
}

// Serves the shards of the bucket to one feed, and returns the log of the server.
std::string LogOfServer(StubBucket& bucket, std::vector<std::string> args) {
  args.insert(args.begin(), {"--dataset", "bucket=" + bucket.Name("d/train-*.tfrecord")});
  const auto server = ServerProcess::Start(args, Environment(bucket));
  EXPECT_THAT(server, IsOk());
  EXPECT_EQ(Lines(Digests(**server, "bucket")).size(), 4u * 8u);
  (*server)->process().Signal(SIGTERM);
  return (*server)->process().Wait().err;
}

TEST(BucketTest, AServerWritesIndexesIntoABucketOnlyIfItIsTold) {
  for (const bool is_gcs : {false, true}) {
    const TempFolder folder;
    StubBucket bucket(is_gcs ? StubBucketOptions{.is_gcs = true}
                             : StubBucketOptions{.sign = kSign});
    PutShards(bucket, folder);
    EXPECT_THAT(LogOfServer(bucket, {}),
                AllOf(HasSubstr("index not kept"), HasSubstr("--write-index"),
                      HasSubstr("systole index"), HasSubstr("--index-dir"), ShowsNoSecret()));
    for (const StubRequest& request : bucket.server().requests()) {
      EXPECT_TRUE(request.method == "GET" || request.method == "HEAD") << request.method;
    }
    EXPECT_THAT(LogOfServer(bucket, {"--write-index"}), Not(HasSubstr("index not kept")));
    const std::optional<std::string> index = bucket.Get("d/train-3.tfrecord.idx");
    EXPECT_TRUE(index.has_value() && bucket.Get("d/train-3.tfrecord.idx.hash").has_value());
    // The next server reads these indexes, and scans no shard.
    const size_t before = bucket.server().requests().size();
    EXPECT_THAT(LogOfServer(bucket, {}), Not(HasSubstr("index")));
    for (size_t i = before; i < bucket.server().requests().size(); ++i) {
      EXPECT_NE(bucket.server().requests()[i].method, "PUT");
    }
    EXPECT_EQ(bucket.Get("d/train-3.tfrecord.idx"), index);
  }
}

TEST(BucketTest, InspectShowsWhatAFeedFetchesAndProposesWindowSettings) {
  const TempFolder folder;
  const TempFolder specs;
  StubBucket bucket({.sign = kSign});
  PutShards(bucket, folder);
  const std::string glob = bucket.Name("d/train-*.tfrecord");
  const std::string spec = specs.Write("s.textproto", SpecOf("train"));
  const std::string window = "shuffle { mode: WINDOW block_records: 64 window_records: 64 }";
  const ProcessOptions environment = Environment(bucket);
  const Finished cold =
      RunSystole({"inspect", glob, "--spec", spec, "--read-budget", "0"}, environment);
  EXPECT_EQ(cold.exit_code, 0) << cold.err;
  EXPECT_THAT(cold.out,
              AllOf(HasSubstr("64 records"), HasSubstr("all of the set, in about 64 requests"),
                    HasSubstr("\n  " + window + "\n"), HasSubstr("--read-budget 1MB")));
  const Finished json =
      RunSystole({"inspect", glob, "--spec", spec, "--read-budget", "0", "--json"}, environment);
  EXPECT_THAT(json.out,
              AllOf(HasSubstr("\"epoch\":{\"set_bytes\":"), HasSubstr("\"first_requests\":64"),
                    HasSubstr("\"window\":{\"block_records\":64,\"window_records\":64")));
  // With the default budgets of a server, a feed keeps everything that it has read.
  const Finished kept = RunSystole({"inspect", glob, "--spec", spec}, environment);
  EXPECT_THAT(kept.out, AllOf(HasSubstr("each later one 0 bytes"), Not(HasSubstr("WINDOW"))));
  const Finished disk = RunSystole(
      {"inspect", glob, "--spec", spec, "--read-budget", "0", "--block-cache-bytes", "1GB"},
      environment);
  EXPECT_THAT(disk.out, HasSubstr("each later one 0 bytes"));

  // For shards on this machine, `inspect` prints the same with and without a spec.
  const std::string files = folder / "train-*.tfrecord";
  EXPECT_EQ(RunSystole({"inspect", files, "--spec", spec}).out, RunSystole({"inspect", files}).out);
  EXPECT_EQ(RunSystole({"inspect", files, "--spec", spec, "--json"}).out,
            RunSystole({"inspect", files, "--json"}).out);
}

TEST(BucketTest, InspectCountsOnlyTheBucketsBytesOfAFeedOfSeveralDatasets) {
  const TempFolder folder;
  StubBucket bucket({.sign = kSign});
  PutShards(bucket, folder);
  const size_t bytes = 4 * Shard(0, 16).size();
  for (const std::string members :
       {"concatenation { dataset: 'far' } concatenation { dataset: 'near' }",
        "mixture { dataset: 'far' weight: 1 } mixture { dataset: 'near' weight: 1 }"}) {
    SCOPED_TRACE(members);
    const std::string spec =
        folder.Write("s.textproto", absl::StrReplaceAll(SpecOf("X"), {{"dataset: 'X'", members}}));
    const auto inspect = [&](const std::vector<std::string>& more) {
      std::vector<std::string> args = {"inspect", "--spec", spec,
                                       absl::StrCat("near=", folder / "train-*.tfrecord"),
                                       absl::StrCat("far=", bucket.Name("d/train-*.tfrecord"))};
      args.insert(args.end(), more.begin(), more.end());
      const Finished inspected = RunSystole(args, Environment(bucket));
      EXPECT_EQ(inspected.exit_code, 0) << inspected.err;
      return inspected.out;
    };
    EXPECT_THAT(inspect({}),
                AllOf(HasSubstr("dataset 'near':\n"), HasSubstr("dataset 'far':\n"),
                      HasSubstr("all of the set"), HasSubstr("each later one 0 bytes")));
    EXPECT_THAT(inspect({"--json"}),
                AllOf(HasSubstr("{\"name\":\"near\","), HasSubstr("{\"name\":\"far\","),
                      HasSubstr(absl::StrCat("\"epoch\":{\"set_bytes\":", bytes, ",")),
                      HasSubstr("\"later_bytes\":0,")));
  }
}

TEST(BucketTest, InspectRefusesUnsuitableSpecsAndOptionCombinations) {
  const TempFolder folder;
  folder.Write("a.tfrecord", Shard(0, 16));
  const std::string shards = folder / "a.tfrecord";
  const std::string spec = folder.Write("s.textproto", SpecOf("train"));
  const auto refusal = [&](const std::vector<std::string>& more) {
    std::vector<std::string> args = {"inspect", shards};
    args.insert(args.end(), more.begin(), more.end());
    const Finished refused = RunSystole(args);
    EXPECT_NE(refused.exit_code, 0);
    return refused.err;
  };
  EXPECT_THAT(refusal({"--spec", spec, "--record", "0"}), HasSubstr("leave out --spec"));
  for (const std::string option : {"--read-budget", "--block-cache-bytes"}) {
    EXPECT_THAT(refusal({option, "4GB"}), HasSubstr(option + " has no effect without --spec"));
  }
  EXPECT_THAT(refusal({"--spec", spec, "--read-budget", "much"}),
              HasSubstr("--read-budget is 'much', want a size, such as 512MB"));
  EXPECT_THAT(refusal({"--spec", folder / "none.textproto"}), HasSubstr("none.textproto"));
  EXPECT_THAT(refusal({"--spec", folder.Write("m.textproto",
                                              "concatenation { dataset: 'a' } concatenation { "
                                              "dataset: 'b' } global_batch: 8 "
                                              "outputs { name: 'cls' feature: 'cls' }")}),
              HasSubstr("--spec has several datasets"));
  EXPECT_THAT(refusal({"--spec", folder.Write("f.textproto",
                                              "dataset: 'a' global_batch: 8 "
                                              "outputs { name: 'x' feature: 'none' }")}),
              HasSubstr("none"));
}

TEST(BucketTest, VerifyFindsAShardOfTheManifestThatIsMissing) {
  const TempFolder folder;
  StubBucket bucket({.sign = kSign});
  PutShards(bucket, folder);
  bucket.Put("d/train.manifest",
             "shards { name: 'train-0.tfrecord' records: 16 } "
             "shards { name: 'train-4.tfrecord' records: 16 }");
  const Finished verified =
      RunSystole({"verify", bucket.Name("d/train-*.tfrecord")}, Environment(bucket));
  EXPECT_NE(verified.exit_code, 0);
  EXPECT_THAT(absl::StrCat(verified.out, verified.err), HasSubstr("train-4.tfrecord"));
}

TEST(BucketTest, ManifestShardsThatThePatternDoesNotMatchAreNotRequested) {
  const TempFolder folder;
  StubBucket bucket({.sign = kSign});
  PutShards(bucket, folder);
  const std::string pattern = bucket.Name("d/train-*.tfrecord");
  ASSERT_EQ(RunSystole({"verify", pattern}, Environment(bucket)).exit_code, 0);
  const int without = bucket.reads();
  std::string manifest;
  for (int i = 0; i < 100; ++i) {
    absl::StrAppend(&manifest, "shards { name: 'valid-", i, ".tfrecord' records: 16 } ");
  }
  bucket.Put("d/all.manifest", manifest);
  ASSERT_EQ(RunSystole({"verify", pattern}, Environment(bucket)).exit_code, 0);
  EXPECT_LE(bucket.reads(), 2 * without + 5);  // The 5 reads are for the manifest itself.
}

TEST(BucketTest, ClientsDoNotLearnThePathOfAnUnreadableManifest) {
  const TempFolder folder;
  StubBucket bucket({.sign = kSign});
  PutShards(bucket, folder);
  bucket.Put("d/train.manifest", "shards { name: 'train-0.tfrecord' records: 16 }");
  bucket.SetFault([](const StubRequest& request) -> std::optional<StubAnswer> {
    if (!absl::StrContains(request.target, "train.manifest")) return std::nullopt;
    return RefuseInXml(403, "AccessDenied");
  });
  const auto server = ServerProcess::Start(
      {"--dataset", "bucket=" + bucket.Name("d/*.tfrecord"), "--dataset", "files=" + folder.path()},
      Environment(bucket));
  ASSERT_THAT(server, IsOk());
  const TempFolder specs;
  const Finished fed = RunSystole({"feed", "--server", (*server)->address(), "--spec",
                                   specs.Write("s.textproto", SpecOf("bucket")), "--digest"});
  EXPECT_NE(fed.exit_code, 0);
  EXPECT_THAT(fed.err, AllOf(HasSubstr("manifest"), Not(HasSubstr("s3://")), Not(HasSubstr("d/")),
                             Not(HasSubstr(std::to_string(bucket.server().port())))));
  (*server)->process().Signal(SIGTERM);
  EXPECT_THAT((*server)->process().Wait().err,
              AllOf(HasSubstr(bucket.Name("d/train.manifest")), HasSubstr("AccessDenied")));
}

TEST(BucketTest, AManifestsPathStaysHiddenIfADatasetAlsoHasLocalFiles) {
  const TempFolder folder;
  StubBucket bucket({.sign = kSign});
  bucket.Put("d/b.tfrecord", Shard(0, 16));
  bucket.Put("d/b.manifest", "");
  bucket.SetFault([](const StubRequest& request) -> std::optional<StubAnswer> {
    if (!absl::StrContains(request.target, "b.manifest")) return std::nullopt;
    return RefuseInXml(403, "AccessDenied");
  });
  folder.Write("a.tfrecord", Shard(16, 16));  // The first of the dataset's shards.
  const auto server =
      ServerProcess::Start({"--dataset", "both=" + bucket.Name("d/*.tfrecord"), "--dataset",
                            "both=" + folder.path(), "--dataset", "files=" + folder.path()},
                           Environment(bucket));
  ASSERT_THAT(server, IsOk());
  const TempFolder specs;
  const Finished fed = RunSystole({"feed", "--server", (*server)->address(), "--spec",
                                   specs.Write("s.textproto", SpecOf("both")), "--digest"});
  EXPECT_NE(fed.exit_code, 0);
  EXPECT_THAT(fed.err, AllOf(HasSubstr("manifest"), Not(HasSubstr("s3://")), Not(HasSubstr("d/"))));
}

TEST(BucketTest, VerifyReportsWhyItCannotLookForManifests) {
  const TempFolder folder;
  StubBucket bucket({.sign = kSign});
  PutShards(bucket, folder);
  bucket.SetFault([](const StubRequest& request) -> std::optional<StubAnswer> {
    // Only the request that lists the folder ends like this. The request that lists the pattern has
    // a longer prefix.
    if (!absl::EndsWith(request.target, "prefix=d%2F")) return std::nullopt;
    return RefuseInXml(400, "OddRefusal");
  });
  const Finished verified =
      RunSystole({"verify", bucket.Name("d/train-*.tfrecord")}, Environment(bucket));
  EXPECT_NE(verified.exit_code, 0);
  EXPECT_THAT(absl::StrCat(verified.out, verified.err),
              AllOf(HasSubstr("to look for manifests"), HasSubstr("OddRefusal")));
}

TEST(BucketTest, InspectNamesTheCauseOfReadErrorsAndShowsNoSecrets) {
  StubBucket bucket({.sign = kSign});
  bucket.Put("d/a", Shard(0, 8));
  const auto says = [&](const std::string& name, const std::string& secret = {}) {
    std::string said;
    for (const std::vector<std::string>& args :
         {std::vector<std::string>{"inspect", name}, {"inspect", name, "--json"}}) {
      const Finished finished = RunSystole(args, Environment(bucket, secret));
      EXPECT_NE(finished.exit_code, 0) << name;
      absl::StrAppend(&said, finished.out, finished.err);
    }
    EXPECT_THAT(said, ShowsNoSecret());
    return said;
  };
  EXPECT_THAT(says(bucket.Name("d/none")), HasSubstr("matches no file"));
  EXPECT_THAT(says(bucket.Name("d/none-*")), HasSubstr("matches no file"));
  EXPECT_THAT(says("s3://other-bucket/a"), HasSubstr("no such bucket"));
  EXPECT_THAT(says("s3://Bad/a"), HasSubstr("3 to 63"));
  EXPECT_THAT(says("s3://AKIDOFTEST:SECRET/OF+TEST@bucket/a"), HasSubstr("environment"));
  EXPECT_THAT(says(bucket.Name("d/a"), "SECRETWRONG"),
              AllOf(HasSubstr("SignatureDoesNotMatch"), HasSubstr("AWS_SECRET_ACCESS_KEY")));
  bucket.SetFault([](const StubRequest&) { return RefuseInXml(403, "AccessDenied"); });
  EXPECT_THAT(says(bucket.Name("d/a")),
              AllOf(HasSubstr("s3:GetObject"), HasSubstr("s3:ListBucket")));
}

TEST(BucketTest, TheServersLogSaysWhyABucketIsUnreadableAndClientsSeeNoAddress) {
  StubBucket bucket({.sign = kSign});
  const TempFolder folder;
  PutShards(bucket, folder);
  const auto server = ServerProcess::Start(
      {"--dataset", "wrong=" + bucket.Name("d/*"), "--dataset", "files=" + folder.path()},
      Environment(bucket, "SECRETWRONG"));
  ASSERT_THAT(server, IsOk());
  const TempFolder specs;
  const Finished fed = RunSystole({"feed", "--server", (*server)->address(), "--spec",
                                   specs.Write("s.textproto", SpecOf("wrong")), "--digest"});
  EXPECT_NE(fed.exit_code, 0);
  EXPECT_THAT(fed.err,
              AllOf(Not(HasSubstr("s3://")), ShowsNoSecret(),
                    Not(HasSubstr("127.0.0.1:" + std::to_string(bucket.server().port())))));
  (*server)->process().Signal(SIGTERM);
  EXPECT_THAT((*server)->process().Wait().err,
              AllOf(HasSubstr("SignatureDoesNotMatch"), ShowsNoSecret()));
}

TEST(BucketTest, ALocalFeedHasTheStepsOfFilesAndRefusesAReplacedObject) {
  const TempFolder folder;
  StubBucket bucket({.sign = kSign});
  PutShards(bucket, folder);
  for (const std::string& variable : Environment(bucket).environment) {
    const size_t equals = variable.find('=');
    ::setenv(variable.substr(0, equals).c_str(), variable.substr(equals + 1).c_str(), 1);
  }
  v1::FeedSpec spec;
  ASSERT_THAT(ParseTextproto(SpecOf("d", /*epochs=*/100), "spec", spec), IsOk());
  const auto open = [&](const std::string& pattern, int64_t read_budget = 0) {
    absl::StatusOr<std::shared_ptr<const Dataset>> dataset = Dataset::Open("d", {pattern});
    EXPECT_THAT(dataset, IsOk());
    absl::StatusOr<std::shared_ptr<LocalEngine>> engine =
        LocalEngine::Create({.read_budget_bytes = read_budget});
    EXPECT_THAT(engine, IsOk());
    absl::StatusOr<std::unique_ptr<LocalFeed>> feed =
        LocalFeed::Create(spec, *dataset, {.engine = *engine, .prefetch_bytes = 1});
    EXPECT_THAT(feed, IsOk());
    return *std::move(feed);
  };
  const auto keeps_all = open(bucket.Name("d/train-*"));
  const auto keeps_nothing = open(bucket.Name("d/train-*"), /*read_budget=*/1);
  const auto from_files = open(folder.path() + "/train-*");
  const auto same_step = [&](LocalFeed& feed, const Step& want) {
    const auto step = feed.Next();
    ASSERT_THAT(step, IsOk());
    for (int core = 0; core < 4; ++core) {
      EXPECT_EQ(StepDigest(**step, core), StepDigest(want, core));
    }
  };
  for (int i = 0; i < 50; ++i) {
    // Replaces a shard. From now on, only a feed that has kept everything has the bytes of the old
    // shard.
    if (i == 8) bucket.Put("d/train-1.tfrecord", Shard(16, 16));
    const auto want = from_files->Next();
    ASSERT_THAT(want, IsOk());
    same_step(*keeps_all, **want);
    if (i < 8) same_step(*keeps_nothing, **want);
  }
  absl::Status end = absl::OkStatus();
  for (int step = 0; step < 50 && end.ok(); ++step) end = keeps_nothing->Next().status();
  EXPECT_THAT(end, StatusIs(absl::StatusCode::kFailedPrecondition,
                            AllOf(HasSubstr("\"train-1.tfrecord\" was replaced"),
                                  Not(HasSubstr("s3://")))));
}

}  // namespace
}  // namespace systole
