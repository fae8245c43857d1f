// WebDataset archives through the real programs: inspected, indexed, verified, served.
#include <string>

#include "absl/strings/str_cat.h"
#include "core/example/example_builder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/record/tfrecord/shard_builder.h"
#include "tests/core/record/webdataset/archive_builder.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/status_matchers.h"
#include "tests/system/served_feed.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kSamples = 32;

void WriteShards(const TempFolder& folder) {
  ArchiveBuilder archive;
  ShardBuilder records;
  for (int i = 0; i < kSamples; ++i) {
    const std::string raw = absl::StrCat("0123456789abcdef", 10 + i);
    archive.Add(absl::StrCat(i, ".raw"), raw).Add(absl::StrCat(i, ".cls"), absl::StrCat(i));
    records.Add(ExampleBuilder().AddBytes("raw", raw).AddInt64s("cls", {i}).Serialize());
  }
  folder.Write("a.tar", archive.Build());
  records.WriteTo(folder / "a.tfrecord");
}

TEST(WebDatasetTest, AServedArchiveGivesTheBytesOfTheSameDataInTfRecord) {
  const TempFolder folder;
  WriteShards(folder);
  const auto server =
      ServerProcess::Start({"--dataset", absl::StrCat("tar=", folder / "a.tar"), "--dataset",
                            absl::StrCat("tfrecord=", folder / "a.tfrecord")});
  ASSERT_THAT(server, IsOk());
  std::string digests[2];
  for (const char* dataset : {"tar", "tfrecord"}) {
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
    // Leaves out the line with --resume, because it contains the dataset's fingerprint.
    for (const std::string& line : Lines(fed.out)) {
      if (line.find("systole2:") == std::string::npos) {
        absl::StrAppend(&digests[dataset == std::string("tar") ? 0 : 1], line, "\n");
      }
    }
  }
  EXPECT_EQ(Lines(digests[0]).size(), 4u * 4u);
  EXPECT_EQ(SortedByStepAndCore(digests[0]), SortedByStepAndCore(digests[1]));
}

TEST(WebDatasetTest, InspectIndexAndVerifyAcceptTarArchives) {
  const TempFolder folder;
  WriteShards(folder);
  const std::string path = folder / "a.tar";
  const Finished inspected = RunSystole({"inspect", path});
  EXPECT_EQ(inspected.exit_code, 0) << inspected.err;
  EXPECT_THAT(inspected.out, AllOf(HasSubstr("32 records"), HasSubstr("cls          int64"),
                                   HasSubstr("raw          bytes"), Not(HasSubstr("are no"))));
  EXPECT_THAT(RunSystole({"inspect", path, "--record", "7"}).out,
              AllOf(HasSubstr("record 7 at byte offset 14336"), HasSubstr("__key__"),
                    HasSubstr("\"0123456789abcdef17\"")));
  EXPECT_EQ(RunSystole({"verify", path}).exit_code, 0);
  EXPECT_THAT(folder.List(), Not(testing::Contains("a.tar.idx")));

  const Finished indexed = RunSystole({"index", path});
  EXPECT_EQ(indexed.exit_code, 0) << indexed.err;
  EXPECT_THAT(indexed.out, HasSubstr("a.tar  32 records"));
  EXPECT_THAT(folder.List(), testing::Contains("a.tar.idx"));
}

TEST(WebDatasetTest, VerifyNamesWhatIsDamaged) {
  const TempFolder folder;
  WriteShards(folder);
  std::string bytes = ReadWholeFile(folder / "a.tar");
  bytes[5 * 2048] ^= 1;             // The header of sample 5's first file.
  bytes[9 * 2048 + 3 * 512] = 'x';  // The number of sample 9.
  const Finished verified = RunSystole({"verify", folder.Write("a.tar", bytes)});
  EXPECT_NE(verified.exit_code, 0);
  const std::string all = verified.out + verified.err;
  EXPECT_THAT(all, AllOf(HasSubstr("record 4"), HasSubstr("record 5"),
                         HasSubstr("the sum of the tar header is"), HasSubstr("record 9"),
                         HasSubstr("file \"9.cls\" holds \"x\"")));
}

}  // namespace
}  // namespace systole
