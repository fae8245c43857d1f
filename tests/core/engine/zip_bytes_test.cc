// Compares the bytes that a feed of a zip fetches from a server with what EpochBytesOf() says.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/engine/step_engine.h"
#include "core/example/example_builder.h"
#include "core/fetch/block_reader_stats.h"
#include "core/http/http_headers.h"
#include "core/plan/epoch_bytes.h"
#include "core/plan/feed_plan.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/dataset/test_dataset.h"
#include "tests/core/engine/plan_of_members.h"
#include "tests/core/http/stub_objects.h"
#include "tests/core/record/tfrecord/shard_builder.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/sanitizers.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

constexpr int kRecords = 60;
constexpr int64_t kMib = int64_t{1} << 20;

// Random shards. A record has up to about 300 KB.
std::vector<std::string> DrawShards(std::mt19937& draw) {
  std::vector<std::string> shards;
  for (int made = 0; made < kRecords;) {
    const int records = std::min(kRecords - made, 1 + static_cast<int>(draw() % 40));
    ShardBuilder builder;
    for (int i = made; i < made + records; ++i) {
      builder.Add(ExampleBuilder()
                      .AddBytes("raw", std::string(draw() % 300'000, 'x'))
                      .AddInt64s("label", {i})
                      .Serialize());
    }
    shards.push_back(builder.Build());
    made += records;
  }
  return shards;
}

class ZipBytesTest : public testing::Test {
 protected:
  // A dataset of kRecords records on the server, or on this machine.
  std::shared_ptr<Dataset> Draw(std::mt19937& draw, const std::string& kind) {
    const std::string name = absl::StrCat("d", datasets_++);
    if (kind == "near") return OpenTestDataset(DrawShards(draw), name);
    std::vector<std::string> urls;
    if (kind == "images") {
      for (int i = 0; i < kRecords; ++i) {
        urls.push_back(objects_.Put(absl::StrCat("/", name, "/a/", 100 + i, ".jpg"), TestJpeg(i)));
      }
    } else {
      for (const std::string& shard : DrawShards(draw)) {
        urls.push_back(objects_.Put(absl::StrCat("/", name, "-", urls.size(), ".tfrecord"), shard));
      }
    }
    absl::StatusOr<std::shared_ptr<Dataset>> dataset =
        Dataset::Open(name, urls, {.index_dir = indexes_.path()});
    EXPECT_THAT(dataset, IsOk());
    return *std::move(dataset);
  }

  // The bytes of all ranges that the server has been asked for so far.
  int64_t Asked() {
    int64_t bytes = 0;
    for (const StubRequest& request : objects_.server().requests()) {
      const absl::string_view range = FindHeader(request.headers, "range");
      if (request.method != "GET" || range.empty()) continue;
      const std::pair<std::string, std::string> ends =
          absl::StrSplit(range.substr(range.find('=') + 1), '-');
      int64_t first = 0;
      int64_t last = 0;
      EXPECT_TRUE(absl::SimpleAtoi(ends.first, &first) && absl::SimpleAtoi(ends.second, &last));
      bytes += last - first + 1;
    }
    return bytes;
  }

  // The bytes that a feed of the plan fetches, with an engine of its own. On a busy machine a read
  // may be slow, and then the server is asked a second time. Such bytes count once.
  int64_t Fetch(const std::shared_ptr<const FeedPlan>& plan, int64_t read_budget_bytes) {
    const int64_t before = Asked();
    StepEngine engine({.threads = 2, .read_budget_bytes = read_budget_bytes});
    const auto stream = engine.Open(plan, {.count = 1000, .core_end = 1});
    EXPECT_THAT(stream, IsOk());
    while (true) {
      const StepStream::Result slice = (*stream)->Next();
      EXPECT_THAT(slice, IsOk());
      if (!slice.ok() || !slice->has_value()) break;
    }
    const BlockReaderStats reads = engine.GetStats().reads;
    const int64_t asked = Asked() - before;
    EXPECT_GE(asked, reads.bytes_read);
    if (reads.reads_hedged == 0) {
      EXPECT_EQ(asked, reads.bytes_read);
    }
    return reads.bytes_read;
  }

  StubObjects objects_;
  const TempFolder indexes_;
  int datasets_ = 0;
};

TEST_F(ZipBytesTest, EpochBytesPredictsTheBytesThatARandomZipFetches) {
  std::mt19937 draw(7);
  int exact = 0;
  constexpr int kZips = kSanitized ? 8 : 40;
  for (int zip = 0; zip < kZips; ++zip) {
    Datasets datasets;
    std::string spec;
    std::string kinds;
    const int members = 2 + static_cast<int>(draw() % 2);
    for (int i = 0; i < members; ++i) {
      const std::string kind =
          std::vector<std::string>{"near", "far", "far", "images", "again"}[draw() % 5];
      std::string name = absl::StrCat("d", datasets_);
      if (i > 0 && kind == "again") {
        name = absl::StrCat("d", datasets_ - 1);
      } else {
        datasets[name] = Draw(draw, i == 0 ? "far" : kind);
      }
      absl::StrAppend(&kinds, i == 0 ? "far" : kind, " ");
      absl::StrAppend(&spec, "zip { dataset: '", name, "' prefix: '", i, "/' } ");
    }
    const std::string order = std::vector<std::string>{
        "", "shuffle { mode: GLOBAL }",
        "shuffle { mode: WINDOW block_records: 7 window_records: 14 }"}[draw() % 3];
    const int64_t budget = draw() % 2 == 0 ? 256 * kMib : 40 * kMib;
    SCOPED_TRACE(absl::StrCat(zip, ": ", kinds, order, " budget ", budget));
    const auto plan =
        PlanOf(absl::StrCat(spec, order, " seed: ", zip, " global_batch: 8 epochs: 1 tail: PAD ",
                            "outputs { name: 'label' feature: '0/label' dtype: INT64 }"),
               datasets);
    ASSERT_THAT(plan, IsOk());
    const EpochBytes epoch = EpochBytesOf(**plan, {.memory_bytes = budget});
    const int64_t fetched = Fetch(*plan, budget);
    EXPECT_EQ(epoch.set_bytes, static_cast<int64_t>((*plan)->dataset().far_bytes()));
    if (epoch.exact) {
      ++exact;
      EXPECT_EQ(epoch.first_bytes, fetched);
    } else {
      EXPECT_NEAR(static_cast<double>(epoch.first_bytes), static_cast<double>(fetched),
                  0.3 * static_cast<double>(fetched));
    }
  }
  EXPECT_GT(exact, kZips / 2);
}

}  // namespace
}  // namespace systole
