// Tests feeds of the records that meet a condition, with the real programs. `systole index
// --columns` writes columns: files with the values of a feature in all records of a shard. Feeds
// find the records that meet a condition in these columns.
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/local/local_feed.h"
#include "client/step/step.h"
#include "core/column/shard_columns.h"
#include "core/dataset/dataset.h"
#include "core/dataset/record_lists.h"
#include "core/example/example_builder.h"
#include "core/textproto/message_text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "systole/v1/feed.pb.h"
#include "tests/core/record/tfrecord/shard_builder.h"
#include "tests/status_matchers.h"
#include "tests/system/served_feed.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr int kRecords = 300;
constexpr int kShards = 3;

// Record i has the label i % 10. It also has a width if i % 6 is not 0.
std::string Shard(int shard) {
  ShardBuilder builder;
  for (int i = shard * kRecords / kShards; i < (shard + 1) * kRecords / kShards; ++i) {
    ExampleBuilder example;
    example.AddInt64s("label", {i % 10});
    if (i % 6 != 0) example.AddFloats("width", {static_cast<float>(i)});
    builder.Add(example.Serialize());
  }
  return builder.Build();
}

std::string Spec(const std::string& where) {
  return absl::StrCat("dataset: 'd' seed: 3 epochs: 1 shuffle { mode: GLOBAL } global_batch: 8 ",
                      "num_cores: 2 tail: PAD on_corrupt: MASK select { where { ", where,
                      " } } outputs { name: 'id' feature: 'record_id' } ",
                      "outputs { name: 'label' feature: 'label' }");
}

bool IsColumn(const std::string& name) {
  return std::filesystem::path(name).extension() == ".column";
}

class WhereTest : public testing::Test {
 protected:
  void SetUp() override {
    for (int i = 0; i < kShards; ++i) folder_.Write(absl::StrCat("d-", i, ".tfrecord"), Shard(i));
    folder_.Write("spec.textproto", Spec("feature: 'label' not_in: [3]"));
  }

  std::string glob() const { return folder_ / "d-*.tfrecord"; }

  std::unique_ptr<ServerProcess> Serve(std::vector<std::string> more = {}) const {
    more.insert(more.begin(), {"--dataset", absl::StrCat("d=", glob())});
    absl::StatusOr<std::unique_ptr<ServerProcess>> server = ServerProcess::Start(more);
    EXPECT_THAT(server, IsOk());
    return *std::move(server);
  }

  Finished Feed(const std::string& servers, std::vector<std::string> more) const {
    more.insert(more.begin(), {"feed", "--server", servers, "--spec", folder_ / "spec.textproto"});
    return RunSystole(more);
  }

  const TempFolder folder_;
};

TEST_F(WhereTest, AFeedHasTheRecordsThatMeetTheConditionFromAnyServersAndSteps) {
  const Finished indexed = RunSystole({"index", glob(), "--columns", "label,width"});
  ASSERT_EQ(indexed.exit_code, 0) << indexed.err;
  EXPECT_THAT(indexed.out, AllOf(HasSubstr("column label: in 300 records"),
                                 HasSubstr("column width: in 250 records")));
  const std::unique_ptr<ServerProcess> first = Serve({"--threads", "1"});
  const std::unique_ptr<ServerProcess> second = Serve({"--threads", "3"});
  const std::string both = absl::StrCat(first->address(), ",", second->address());
  const Finished printed = Feed(first->address(), {"--print", "id"});
  ASSERT_EQ(printed.exit_code, 0) << printed.err;
  std::multiset<int> ids;
  for (const std::string& line : Lines(printed.out)) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ');
    for (size_t i = 2; i < words.size(); ++i) {
      int id = -1;
      if (absl::SimpleAtoi(words[i], &id)) ids.insert(id);
    }
  }
  for (int i = 0; i < kRecords; ++i) EXPECT_EQ(ids.count(i), i % 10 == 3 ? 0u : 1u) << i;
  const Finished one = Feed(first->address(), {"--digest"});
  ASSERT_EQ(one.exit_code, 0) << one.err;
  const std::vector<std::string> wanted = Lines(SortedByStepAndCore(one.out));
  EXPECT_EQ(Lines(SortedByStepAndCore(Feed(both, {"--digest"}).out)), wanted);
  const Finished later = Feed(both, {"--digest", "--first-step", "20"});
  EXPECT_EQ(Lines(SortedByStepAndCore(later.out)),
            std::vector<std::string>(wanted.begin() + 20 * 2, wanted.end()));
}

TEST_F(WhereTest, ALocalFeedWritesTheColumnsAndEqualsTheServedFeed) {
  v1::FeedSpec spec;
  ASSERT_THAT(ParseTextproto(ReadWholeFile(folder_ / "spec.textproto"), "spec", spec), IsOk());
  const absl::StatusOr<std::shared_ptr<Dataset>> dataset = Dataset::Open("d", {glob()});
  ASSERT_THAT(dataset, IsOk());
  const absl::StatusOr<std::unique_ptr<LocalFeed>> feed = LocalFeed::Create(spec, *dataset, {});
  ASSERT_THAT(feed, IsOk());
  std::vector<std::string> local;
  while (true) {
    const absl::StatusOr<std::optional<Step>> step = (*feed)->Next();
    ASSERT_THAT(step, IsOk());
    if (!step->has_value()) break;
    for (int core = 0; core < 2; ++core) {
      local.push_back(absl::StrCat((*step)->number(), " ", core, " ", StepDigest(**step, core)));
    }
  }
  EXPECT_THAT(folder_.List(),
              Contains(AllOf(StartsWith("d-2.tfrecord.idx.label-"), EndsWith(".column"))));
  const Finished served = Feed(Serve()->address(), {"--digest"});
  EXPECT_EQ(served.exit_code, 0) << served.err;
  EXPECT_EQ(Lines(SortedByStepAndCore(served.out)), local);
}

TEST_F(WhereTest, MissingColumnsNameTheIndexCommandAndNeedNoServerRestart) {
  const std::unique_ptr<ServerProcess> server = Serve();
  const Finished refused = Feed(server->address(), {"--digest"});
  EXPECT_NE(refused.exit_code, 0);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("`systole index --columns label`"),
                                 HasSubstr("select[0].where"), Not(HasSubstr(folder_.path()))));
  ASSERT_EQ(RunSystole({"index", glob(), "--columns", "label"}).exit_code, 0);
  EXPECT_EQ(Feed(server->address(), {"--digest"}).exit_code, 0);
}

TEST_F(WhereTest, AServerWritesTheColumnsThatItsConfigNames) {
  const TempFolder indexes;
  const std::string config = folder_.Write(
      "server.textproto", absl::StrCat("datasets { name: 'd' shards: '", glob(),
                                       "' columns: 'label' } index_dir: '", indexes.path(), "'"));
  absl::StatusOr<std::unique_ptr<ServerProcess>> server =
      ServerProcess::Start({"--config", config});
  ASSERT_THAT(server, IsOk());
  const Finished fed = Feed((*server)->address(), {"--digest"});
  EXPECT_EQ(fed.exit_code, 0) << fed.err;
  int kept = 0;
  for (const std::string& name : indexes.List()) {
    kept += IsColumn(name) ? 1 : 0;
  }
  EXPECT_EQ(kept, kShards);
}

TEST_F(WhereTest, ARecordDamagedAfterIndexingIsMaskedUntilAReindexDropsIt) {
  ASSERT_EQ(RunSystole({"index", glob(), "--columns", "label"}).exit_code, 0);
  const Finished whole = Feed(Serve()->address(), {"--digest"});
  std::string bytes = Shard(1);
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  folder_.Write("d-1.tfrecord", bytes);
  const std::unique_ptr<ServerProcess> server = Serve();
  const Finished damaged = Feed(server->address(), {"--digest"});
  ASSERT_EQ(damaged.exit_code, 0) << damaged.err;
  EXPECT_THAT(damaged.err, HasSubstr("masked"));
  // Only one slice differs: the slice with the damaged record.
  const std::vector<std::string> before = Lines(SortedByStepAndCore(whole.out));
  const std::vector<std::string> after = Lines(SortedByStepAndCore(damaged.out));
  ASSERT_EQ(before.size(), after.size());
  int differ = 0;
  for (size_t i = 0; i < before.size(); ++i) differ += before[i] == after[i] ? 0 : 1;
  EXPECT_EQ(differ, 1);
  // `systole index` makes the columns anew, without the damaged record. So no feed reads it.
  const Finished noted = RunSystole({"index", glob(), "--columns", "label", "--rebuild"});
  EXPECT_NE(noted.exit_code, 0);
  EXPECT_THAT(noted.err, HasSubstr("1 record is damaged"));
  const Finished without = Feed(Serve()->address(), {"--digest"});
  EXPECT_EQ(without.exit_code, 0) << without.err;
  EXPECT_THAT(without.err, Not(HasSubstr("masked")));
}

TEST_F(WhereTest, ColumnsThatAreDamagedAreRefusedAndMadeAnew) {
  ASSERT_EQ(RunSystole({"index", glob(), "--columns", "label"}).exit_code, 0);
  std::string column = ReadWholeFile(ColumnPath(folder_ / "d-0.tfrecord.idx", "label"));
  column.back() = static_cast<char>(column.back() ^ 1);
  folder_.Write(ColumnPath("d-0.tfrecord.idx", "label"), column);
  const std::unique_ptr<ServerProcess> server = Serve();
  EXPECT_THAT(Feed(server->address(), {"--digest"}).err,
              AllOf(HasSubstr("d-0.tfrecord"), HasSubstr("is damaged"), HasSubstr("--columns"),
                    Not(HasSubstr(folder_.path()))));
  EXPECT_THAT(RunSystole({"inspect", glob()}).out,
              AllOf(HasSubstr("label-"), HasSubstr("hash of its numbers does not match"),
                    HasSubstr("missing in 1 shards")));
  const Finished again = RunSystole({"index", glob(), "--columns", "label"});
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_THAT(again.err, HasSubstr("not used"));
  EXPECT_EQ(Feed(server->address(), {"--digest"}).exit_code, 0);
}

TEST_F(WhereTest, AMisspeltFeatureIsRefusedAndNoColumnFileIsWritten) {
  const auto wanted =
      AllOf(HasSubstr("no record has the feature 'lable'"), HasSubstr("did you mean 'label'?"));
  const Finished indexed = RunSystole({"index", glob(), "--columns", "lable"});
  EXPECT_NE(indexed.exit_code, 0);
  EXPECT_THAT(indexed.err, wanted);
  const std::string config =
      folder_.Write("server.textproto",
                    absl::StrCat("datasets { name: 'd' shards: '", glob(), "' columns: 'lable' }"));
  EXPECT_THAT(ServerProcess::Start({"--config", config}).status().ToString(), wanted);
  const absl::StatusOr<std::shared_ptr<Dataset>> dataset = Dataset::Open("d", {glob()});
  ASSERT_THAT(dataset, IsOk());
  v1::FeedSpec spec;
  ASSERT_THAT(ParseTextproto(Spec("feature: 'lable' present: false"), "spec", spec), IsOk());
  EXPECT_THAT(LocalFeed::Create(spec, *dataset, {}),
              StatusIs(absl::StatusCode::kInvalidArgument, wanted));
  EXPECT_THAT(folder_.List(), Each(Not(EndsWith(".column"))));
}

TEST_F(WhereTest, ResumingWithKeptRecordListsReadsNoColumns) {
  const absl::StatusOr<std::shared_ptr<Dataset>> dataset = Dataset::Open("d", {glob()});
  ASSERT_THAT(dataset, IsOk());
  v1::FeedSpec spec;
  ASSERT_THAT(ParseTextproto(Spec("feature: 'label' not_in: [3]"), "spec", spec), IsOk());
  const LocalFeedOptions options = {.lists = std::make_shared<RecordLists>()};
  const absl::StatusOr<std::unique_ptr<LocalFeed>> feed =
      LocalFeed::Create(spec, *dataset, options);
  ASSERT_THAT(feed, IsOk());
  for (const std::string& name : folder_.List()) {
    if (IsColumn(name)) std::filesystem::remove(folder_ / name);
  }
  // The lists in `options` are enough. If Resume() used columns, it would write their files again.
  EXPECT_THAT(LocalFeed::Resume(spec, *dataset, (*feed)->TokenAt(5), options), IsOk());
  EXPECT_THAT(folder_.List(), Each(Not(EndsWith(".column"))));
  EXPECT_THAT(LocalFeed::Resume(spec, *dataset, (*feed)->TokenAt(5), {}), IsOk());
  EXPECT_THAT(folder_.List(), Contains(EndsWith(".column")));
}

TEST_F(WhereTest, InspectShowsTheColumns) {
  EXPECT_THAT(RunSystole({"inspect", glob()}).out, Not(HasSubstr("columns")));
  const TempFolder indexes;
  ASSERT_EQ(RunSystole({"index", glob(), "--columns", "label"}).exit_code, 0);
  ASSERT_EQ(RunSystole({"index", folder_ / "d-0.tfrecord", "--columns", "width"}).exit_code, 0);
  ASSERT_EQ(
      RunSystole({"index", glob(), "--columns", "width", "--index-dir", indexes.path()}).exit_code,
      0);
  EXPECT_THAT(RunSystole({"inspect", glob()}).out,
              AllOf(HasSubstr("columns, for `where`:"),
                    HasSubstr("  label        int64   in 300 records\n"),
                    HasSubstr("  width        float   in 83 records  missing in 2 shards\n")));
  EXPECT_THAT(
      RunSystole({"inspect", glob(), "--json"}).out,
      HasSubstr(R"("columns":[{"feature":"label","kinds":["int64"],"lists":false,"shards":3,)"
                R"("records":300,"damaged":0},{"feature":"width","kinds":["float"],)"
                R"("lists":false,"shards":1,"records":83,"damaged":0}],"unusable_columns":[])"));
  EXPECT_THAT(RunSystole({"inspect", glob(), "--index-dir", indexes.path()}).out,
              AllOf(HasSubstr("  width        float   in 250 records\n"),
                    Not(HasSubstr("in 300 records"))));
}

TEST_F(WhereTest, TrainersWithDifferentConditionsCanStartAtOnce) {
  ASSERT_EQ(RunSystole({"index", glob(), "--columns", "label,width"}).exit_code, 0);
  const std::unique_ptr<ServerProcess> server = Serve();
  constexpr int kTrainers = 4;
  std::vector<Finished> fed(kTrainers);
  std::vector<std::thread> trainers;
  for (int i = 0; i < kTrainers; ++i) {
    const std::string spec =
        folder_.Write(absl::StrCat("spec-", i), Spec(absl::StrCat("feature: 'label' in: ", i)));
    trainers.emplace_back([&, i, spec] {
      fed[static_cast<size_t>(i)] =
          RunSystole({"feed", "--server", server->address(), "--spec", spec, "--print", "label"});
    });
  }
  for (std::thread& trainer : trainers) trainer.join();
  for (int i = 0; i < kTrainers; ++i) {
    const Finished& one = fed[static_cast<size_t>(i)];
    EXPECT_EQ(one.exit_code, 0) << one.err;
    EXPECT_THAT(one.err, Not(HasSubstr("again")));
    EXPECT_THAT(one.out, HasSubstr(absl::StrCat(" ", i, " ", i)));
  }
}

}  // namespace
}  // namespace systole
