// Shards on a web server through the real programs: inspected, verified, served.
#include <string>

#include "absl/strings/str_cat.h"
#include "core/example/example_builder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/http/stub_objects.h"
#include "tests/core/record/tfrecord/shard_builder.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/status_matchers.h"
#include "tests/system/served_feed.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string Shard(int records) {
  ShardBuilder builder;
  for (int i = 0; i < records; ++i) {
    builder.Add(ExampleBuilder()
                    .AddBytes("raw", absl::StrCat("0123456789abcdef", 10 + i))
                    .AddInt64s("cls", {i})
                    .Serialize());
  }
  return builder.Build();
}

TEST(WebTest, AFeedFromTheWebHasTheBytesOfTheSameFeedFromFiles) {
  const TempFolder folder;
  StubObjects objects;
  const std::string shard = Shard(32);
  const auto server = ServerProcess::Start(
      {"--dataset", absl::StrCat("web=", objects.Put("/dir/a.tfrecord", shard)), "--dataset",
       absl::StrCat("files=", folder.Write("a.tfrecord", shard))});
  ASSERT_THAT(server, IsOk());
  std::string digests[2];
  for (const char* dataset : {"web", "files"}) {
    const std::string spec = folder.Write(
        "spec.textproto",
        absl::StrCat("dataset: '", dataset,
                     "' seed: 3 epochs: 1 shuffle { mode: GLOBAL } global_batch: 8 num_cores: 4 "
                     "outputs { name: 'raw' feature: 'raw' transforms { decode_raw {} } "
                     "  dtype: UINT8 shape: 18 } "
                     "outputs { name: 'label' feature: 'cls' dtype: INT64 }"));
    const Finished fed =
        RunSystole({"feed", "--server", (*server)->address(), "--spec", spec, "--digest"});
    EXPECT_EQ(fed.exit_code, 0) << fed.err;
    // Leaves out the line with --resume, which contains the spec's name of the dataset.
    for (const std::string& line : Lines(fed.out)) {
      if (line.find("systole1:") == std::string::npos) {
        absl::StrAppend(&digests[dataset == std::string("web") ? 0 : 1], line, "\n");
      }
    }
  }
  EXPECT_EQ(Lines(digests[0]).size(), 4u * 4u);
  EXPECT_EQ(SortedByStepAndCore(digests[0]), SortedByStepAndCore(digests[1]));
}

TEST(WebTest, InspectAndVerifyReadAnObjectByItsAddress) {
  StubObjects objects;
  const std::string name = objects.Put("/dir/a.tfrecord", Shard(7)) + "?sig=secret";
  const Finished inspected = RunSystole({"inspect", name});
  EXPECT_EQ(inspected.exit_code, 0) << inspected.err;
  EXPECT_THAT(inspected.out, AllOf(HasSubstr("7 records"), HasSubstr("cls")));
  EXPECT_EQ(RunSystole({"verify", name}).exit_code, 0);
}

TEST(WebTest, WhatCannotBeReadIsToldWithTheRemedy) {
  StubObjects objects;
  const Finished missing = RunSystole({"inspect", objects.server().Url("/none.tfrecord?secret")});
  EXPECT_NE(missing.exit_code, 0);
  EXPECT_THAT(missing.err, AllOf(HasSubstr("no such object"), Not(HasSubstr("secret"))));
  const Finished glob = RunSystole({"inspect", objects.server().Url("/a-*.tfrecord")});
  EXPECT_NE(glob.exit_code, 0);
  EXPECT_THAT(glob.err, HasSubstr("name each object"));
}

}  // namespace
}  // namespace systole
