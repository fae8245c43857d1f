// Tests the memory that all plans share for look-ups of records. A plan holds its share until its
// look-up has ended, even while the storage hangs.
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/dataset/record_lists.h"
#include "core/plan/feed_plan.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/dataset/test_dataset.h"
#include "tests/core/http/stub_objects.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/status_matchers.h"
#include "tests/wait_until.h"

namespace systole {
namespace {

TEST(WhereMemoryTest, APlanHoldsItsShareUntilItsLookUpHasEnded) {
  const TempFolder folder;
  const std::string glob = folder.Write("a.tfrecord", TestShards({40})[0]);
  ASSERT_THAT((*Dataset::Open("near", {glob}))->NoteColumns({"label"}), IsOk());
  std::atomic<bool> released = false;
  std::atomic<int> hung = 0;
  StubObjects objects;
  for (const std::string& name : folder.List()) {
    objects.Put(absl::StrCat("/d/", name), ReadWholeFile(folder / name));
  }
  const absl::StatusOr<std::shared_ptr<Dataset>> far =
      Dataset::Open("far", {objects.server().Url("/d/a.tfrecord")});
  ASSERT_THAT(far, IsOk());
  objects.SetFault([&](const StubRequest& request) -> std::optional<StubAnswer> {
    if (absl::StrContains(request.target, ".column")) {
      ++hung;
      EXPECT_TRUE(WaitUntil([&] { return released.load(); }));
    }
    return std::nullopt;
  });
  const auto lists = std::make_shared<RecordLists>();
  std::thread look_up([&] {
    EXPECT_THAT(FeedPlan::Create(SpecFromText("dataset: 'far' global_batch: 1 outputs { name: "
                                              "'label' feature: 'label' } select { where { "
                                              "feature: 'label' less: 3 } }"),
                                 *far, lists),
                IsOk());
  });
  EXPECT_TRUE(WaitUntil([&] { return hung > 0; }));
  EXPECT_EQ(lists->memory().left_bytes(), LookUpMemory::kBytes - kLookUpBytes);
  released = true;
  look_up.join();
  EXPECT_EQ(lists->memory().left_bytes(), LookUpMemory::kBytes);
}

}  // namespace
}  // namespace systole
