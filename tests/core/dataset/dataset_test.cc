#include "core/dataset/dataset.h"

#include <memory>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/record/tfrecord/shard_builder.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::HasSubstr;

TEST(DatasetTest, OpeningEndsBeforeTheNextShardWhenInterrupted) {
  const TempFolder folder;
  for (const char* name : {"0.tfrecord", "1.tfrecord", "2.tfrecord"}) {
    folder.Write(name, ShardBuilder().Add("payload").Build());
  }
  int asked = 0;
  const absl::StatusOr<std::shared_ptr<Dataset>> dataset =
      Dataset::Open("photos", {folder / "*.tfrecord"}, {}, {}, [&asked] { return ++asked == 2; });
  EXPECT_THAT(dataset, StatusIs(absl::StatusCode::kCancelled, HasSubstr("'photos'")));
  EXPECT_EQ(asked, 2);
}

}  // namespace
}  // namespace systole
