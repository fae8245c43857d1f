// Tests feeds of zipped datasets from real servers. A feed has the same bytes from any servers,
// from any token on, and in the process of the trainer. The shards of a member may be files, or
// objects in a bucket.
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "client/local/local_feed.h"
#include "client/step/step.h"
#include "core/dataset/dataset.h"
#include "core/example/example_builder.h"
#include "core/plan/feed_plan.h"
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
using ::testing::SizeIs;

// A shard of `records` records with numbers from `first` on. The feature "raw" has 18 bytes, which
// depend on `text` and on the record's number.
std::string Shard(const std::string& text, int first, int records) {
  ShardBuilder builder;
  for (int i = first; i < first + records; ++i) {
    builder.Add(ExampleBuilder()
                    .AddBytes("raw", absl::StrCat(text, "89abcdef", 10 + i))
                    .AddInt64s("cls", {i})
                    .Serialize());
  }
  return builder.Build();
}

constexpr char kSpec[] = R"pb(
  zip { dataset: "photos" prefix: "p/" }
  zip { dataset: "depths" prefix: "d/" }
  seed: 3
  epochs: 2
  shuffle { mode: GLOBAL }
  global_batch: 8
  num_cores: 4
  outputs {
    name: "photo"
    feature: "p/raw"
    transforms { decode_raw {} }
    dtype: UINT8
    shape: 18
  }
  outputs {
    name: "depth"
    feature: "d/raw"
    transforms { decode_raw {} }
    dtype: UINT8
    shape: 18
  }
  outputs { name: "cls" feature: "p/cls" dtype: INT64 }
)pb";

class ZipTest : public testing::Test {
 protected:
  ZipTest() {
    bucket_.Put("d/depths-0.tfrecord", Shard("depths--", 0, 24));
    bucket_.Put("d/depths-1.tfrecord", Shard("depths--", 24, 24));
    for (int i = 0; i < 3; ++i) {
      folder_.Write(absl::StrCat("photos-", i, ".tfrecord"), Shard("photos--", 16 * i, 16));
    }
    folder_.Write("depths-0.tfrecord", Shard("depths--", 0, 24));
    folder_.Write("depths-1.tfrecord", Shard("depths--", 24, 24));
    folder_.Write("short.tfrecord", Shard("short---", 0, 47));
    SetSpec(kSpec);
  }

  void SetSpec(const std::string& text) { spec_ = folder_.Write("spec.textproto", text); }

  std::string Files(const std::string& name) const {
    return absl::StrCat(folder_.path(), "/", name, "-*.tfrecord");
  }

  // Starts a server. The shards of its dataset "depths" are those that the pattern `depths`
  // matches.
  std::unique_ptr<ServerProcess> Start(const std::string& depths) const {
    absl::StatusOr<std::unique_ptr<ServerProcess>> server =
        ServerProcess::Start({"--dataset", absl::StrCat("photos=", Files("photos")), "--dataset",
                              absl::StrCat("depths=", depths), "--dataset",
                              absl::StrCat("short=", folder_ / "short.tfrecord")},
                             {.environment = Environment()});
    EXPECT_THAT(server, IsOk());
    return *std::move(server);
  }

  std::vector<std::string> Environment() const {
    return {"AWS_ACCESS_KEY_ID=ID", "AWS_SECRET_ACCESS_KEY=SECRET", "AWS_REGION=eu-west-1",
            "AWS_ENDPOINT_URL_S3=" + bucket_.endpoint()};
  }

  Finished Feed(const std::string& servers, std::vector<std::string> more = {}) const {
    std::vector<std::string> args = {"feed", "--server", servers, "--spec", spec_, "--digest"};
    args.insert(args.end(), more.begin(), more.end());
    return RunSystole(args);
  }

  // The lines of a feed, sorted by step and core. The feed must end without an error.
  std::vector<std::string> Digests(const std::string& servers,
                                   const std::vector<std::string>& more = {}) const {
    std::vector<std::string> args = {"--steps", "0"};  // To the end.
    args.insert(args.end(), more.begin(), more.end());
    const Finished feed = Feed(servers, args);
    EXPECT_EQ(feed.exit_code, 0) << feed.err;
    return Lines(SortedByStepAndCore(feed.out));
  }

  // The lines that Digests() would return for a LocalFeed.
  std::vector<std::string> LocalDigests() const {
    v1::FeedSpec spec;
    EXPECT_THAT(ParseTextproto(kSpec, "spec", spec), IsOk());
    const auto dataset = DatasetOf(
        spec, [&](const std::string& name) -> absl::StatusOr<std::shared_ptr<const Dataset>> {
          return Dataset::Open(name, {Files(name)});
        });
    EXPECT_THAT(dataset, IsOk());
    const auto feed = LocalFeed::Create(spec, *dataset, {.threads = 2});
    EXPECT_THAT(feed, IsOk());
    std::vector<std::string> lines;
    while (true) {
      const absl::StatusOr<std::optional<Step>> step = (*feed)->Next();
      EXPECT_THAT(step, IsOk());
      if (!step.ok() || !step->has_value()) return lines;
      for (int core = 0; core < 4; ++core) {
        lines.push_back(absl::StrCat((*step)->number(), " ", core, " ", StepDigest(**step, core)));
      }
    }
  }

  StubBucket bucket_;
  const TempFolder folder_;
  std::string spec_;
};

TEST_F(ZipTest, AFeedIsTheSameFromAnyServersFromAnyTokenAndLocally) {
  const auto files = Start(Files("depths"));
  const auto bucket = Start(bucket_.Name("d/depths-*.tfrecord"));
  const std::string one = files->address();
  const std::string two = absl::StrCat(one, ",", bucket->address());
  const std::vector<std::string> want = Digests(one);
  ASSERT_THAT(want, SizeIs(2 * 6 * 4));
  EXPECT_EQ(Digests(bucket->address()), want);
  EXPECT_EQ(Digests(two), want);
  EXPECT_EQ(LocalDigests(), want);
  for (const int taken : {1, 5, 7}) {
    const Finished head = Feed(two, {"--steps", absl::StrCat(taken)});
    const size_t at = head.err.rfind("--resume ");
    ASSERT_NE(at, std::string::npos) << head.err;
    const std::string token = head.err.substr(at + 9, head.err.find('\n', at) - at - 9);
    EXPECT_EQ(Digests(two, {"--resume", token}),
              std::vector<std::string>(want.begin() + taken * 4, want.end()));
    // A zip with other prefixes is another dataset, even if it has the same members.
    SetSpec(absl::StrReplaceAll(kSpec, {{"d/", "e/"}}));
    const Finished other = Feed(one, {"--resume", token});
    EXPECT_NE(other.exit_code, 0);
    EXPECT_THAT(other.err, HasSubstr("fingerprint"));
    SetSpec(kSpec);
  }
}

TEST_F(ZipTest, DamageOfAMemberIsInTheServersLogUnderItsOwnName) {
  std::string damaged = Shard("depths--", 24, 24);
  damaged[damaged.size() / 2] ^= 1;
  folder_.Write("depths-1.tfrecord", damaged);
  const auto server = Start(Files("depths"));
  const Finished fails = Feed(server->address());
  EXPECT_NE(fails.exit_code, 0);
  EXPECT_THAT(fails.err, AllOf(HasSubstr("depths-1.tfrecord"), HasSubstr("on_corrupt: MASK")));
  SetSpec(absl::StrCat("on_corrupt: MASK ", kSpec));
  const Finished masks = Feed(server->address());
  EXPECT_EQ(masks.exit_code, 0) << masks.err;
  EXPECT_THAT(server->process().err(), AllOf(HasSubstr("dataset 'depths': record 36 is masked"),
                                             Not(HasSubstr("dataset 'photos': record"))));
}

TEST_F(ZipTest, TheServerSaysWhyAZipSpecIsInvalid) {
  const auto server = Start(Files("depths"));
  const auto refusal = [&](const std::string& from, const std::string& to) {
    SetSpec(absl::StrReplaceAll(kSpec, {{from, to}}));
    const Finished feed = Feed(server->address());
    EXPECT_NE(feed.exit_code, 0);
    return feed.err;
  };
  EXPECT_THAT(refusal("\"depths\"", "\"short\""),
              HasSubstr("zip[1] ('short') has 47 records and zip[0] ('photos') has 48"));
  EXPECT_THAT(refusal("prefix: \"d/\"", "prefix: \"p/\""),
              HasSubstr("both have a feature 'p/cls'"));
  EXPECT_THAT(refusal("\"depths\"", "\"none\""), HasSubstr("no dataset 'none'"));
  EXPECT_THAT(refusal("seed: 3", "select { auto_shard { policy: AUTO count: 2 } }"),
              HasSubstr("want policy: DATA"));
}

TEST_F(ZipTest, InspectShowsTheBytesFetchedFromRemoteMembers) {
  const auto inspect = [this](std::vector<std::string> more) {
    std::vector<std::string> args = {"inspect", "--spec", spec_};
    args.insert(args.end(), more.begin(), more.end());
    return RunSystole(args, {.environment = Environment()});
  };
  const std::string photos = absl::StrCat("photos=", Files("photos"));
  const std::string depths = absl::StrCat("depths=", bucket_.Name("d/depths-*.tfrecord"));
  const Finished text = inspect({photos, depths});
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out, AllOf(HasSubstr("dataset 'photos':\n"), HasSubstr("dataset 'depths':\n"),
                              HasSubstr("3 shards, 48 records"), HasSubstr("2 shards, 48 records"),
                              HasSubstr("a feed of this spec: the first epoch fetches ")));
  const size_t bytes = Shard("depths--", 0, 24).size() + Shard("depths--", 24, 24).size();
  const Finished json = inspect({depths, photos, "--json"});
  EXPECT_EQ(json.exit_code, 0) << json.err;
  EXPECT_THAT(
      json.out,
      AllOf(HasSubstr("\"datasets\":[{\"name\":\"photos\","), HasSubstr("{\"name\":\"depths\","),
            HasSubstr(absl::StrCat("\"epoch\":{\"set_bytes\":", bytes, ",")),
            HasSubstr(absl::StrCat("\"first_bytes\":", bytes, ",")), HasSubstr("\"exact\":true")));
  // `inspect` says nothing of fetches if all shards are files of this machine.
  const Finished near = inspect({photos, absl::StrCat("depths=", Files("depths"))});
  EXPECT_EQ(near.exit_code, 0) << near.err;
  EXPECT_THAT(near.out, Not(HasSubstr("a feed of this spec")));

  const auto refusal = [&](const std::vector<std::string>& more) {
    const Finished refused = inspect(more);
    EXPECT_NE(refused.exit_code, 0);
    return refused.err;
  };
  EXPECT_THAT(refusal({Files("photos")}), AllOf(HasSubstr("must name the dataset"),
                                                HasSubstr("want 'photos=GLOB' 'depths=GLOB'")));
  EXPECT_THAT(refusal({photos, "depth=x"}), HasSubstr("'depth=x' must name the dataset"));
  EXPECT_THAT(refusal({photos}), HasSubstr("names dataset 'depths', and no shards of it"));
  EXPECT_THAT(refusal({photos, absl::StrCat("depths=", folder_ / "short.tfrecord")}),
              HasSubstr("zip[1] ('depths') has 47 records"));
}

TEST_F(ZipTest, AConditionIsAnsweredFromTheColumnsOfTheMembers) {
  SetSpec(
      absl::StrCat("select { where { all { feature: 'd/cls' greater: 9 } "
                   "all { feature: 'p/cls' less: 26 } } } ",
                   kSpec));
  EXPECT_THAT(Feed(Start(Files("depths"))->address()).err, HasSubstr("systole index"));
  for (const std::string name : {"photos", "depths"}) {
    const Finished indexed = RunSystole({"index", Files(name), "--columns", "cls"});
    ASSERT_EQ(indexed.exit_code, 0) << indexed.err;
  }
  // 16 records meet the condition: 2 epochs of 2 steps, on 4 cores.
  EXPECT_THAT(Digests(Start(Files("depths"))->address()), SizeIs(2 * 2 * 4));
}

}  // namespace
}  // namespace systole
