#include "core/record/tfrecord/record_writer.h"

#include <memory>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/record/tfrecord/shard_builder.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A sink with room for `bytes_left` bytes.
class FullSink final : public ByteSink {
 public:
  explicit FullSink(size_t bytes_left) : bytes_left_(bytes_left) {}
  absl::Status Append(absl::string_view bytes) override {
    if (bytes.size() > bytes_left_) return absl::ResourceExhaustedError("sink is full");
    bytes_left_ -= bytes.size();
    return absl::OkStatus();
  }
  absl::Status Close() override { return absl::DataLossError("cannot close"); }
  absl::string_view name() const override { return "full"; }

 private:
  size_t bytes_left_;
};

TEST(RecordWriterTest, WritesTheFramingByteForByte) {
  std::string out;
  RecordWriter writer(std::make_unique<StringSink>(&out));
  EXPECT_THAT(writer.Write(""), IsOk());
  EXPECT_THAT(writer.Write("abc"), IsOk());
  EXPECT_THAT(writer.Close(), IsOk());
  constexpr unsigned char kWanted[] = {
      0,    0,    0,    0,    0, 0, 0, 0, 0x29, 0x03, 0x98, 0x07,                 //
      0xd8, 0xea, 0x82, 0xa2,                                                     //
      3,    0,    0,    0,    0, 0, 0, 0, 0xb0, 0x99, 0x49, 0x0e, 'a', 'b', 'c',  //
      0x6e, 0x57, 0xf1, 0x21};
  EXPECT_EQ(out, std::string(reinterpret_cast<const char*>(kWanted), sizeof(kWanted)));
  EXPECT_EQ(writer.num_records(), 2);
  EXPECT_EQ(writer.bytes_written(), sizeof(kWanted));
}

TEST(RecordWriterTest, FileAppearsOnlyAtClose) {
  const TempFolder folder;
  {
    absl::StatusOr<RecordWriter> writer = RecordWriter::Create(folder / "a.tfrecord");
    ASSERT_THAT(writer, IsOk());
    EXPECT_THAT(writer->Write("abc"), IsOk());
    EXPECT_FALSE(std::filesystem::exists(folder / "a.tfrecord"));
    EXPECT_THAT(writer->Close(), IsOk());
  }
  EXPECT_EQ(ReadWholeFile(folder / "a.tfrecord"), ShardBuilder().Add("abc").Build());
  EXPECT_THAT(folder.List(), ElementsAre("a.tfrecord"));
}

TEST(RecordWriterTest, WriterDroppedWithoutCloseLeavesNothing) {
  const TempFolder folder;
  {
    absl::StatusOr<RecordWriter> writer = RecordWriter::Create(folder / "a.tfrecord");
    ASSERT_THAT(writer, IsOk());
    EXPECT_THAT(writer->Write("abc"), IsOk());
  }
  EXPECT_THAT(folder.List(), IsEmpty());
}

TEST(RecordWriterTest, ShardWithoutRecordsIsAnEmptyFile) {
  const TempFolder folder;
  absl::StatusOr<RecordWriter> writer = RecordWriter::Create(folder / "a.tfrecord");
  ASSERT_THAT(writer, IsOk());
  EXPECT_THAT(writer->Close(), IsOk());
  EXPECT_EQ(ReadWholeFile(folder / "a.tfrecord"), "");
}

TEST(RecordWriterTest, UseAfterCloseIsFailedPrecondition) {
  std::string out;
  RecordWriter writer(std::make_unique<StringSink>(&out));
  EXPECT_THAT(writer.Close(), IsOk());
  const auto refused =
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("is closed already"));
  EXPECT_THAT(writer.Write("abc"), refused);
  EXPECT_THAT(writer.Close(), refused);
  EXPECT_EQ(out, "");
}

TEST(RecordWriterTest, FirstErrorSticksWhereverTheSinkFails) {
  for (const size_t room : {0u, 11u, 12u, 14u, 15u, 18u}) {  // One frame of "abc" is 19 bytes.
    RecordWriter writer(std::make_unique<FullSink>(room));
    const auto full = StatusIs(absl::StatusCode::kResourceExhausted, "sink is full");
    EXPECT_THAT(writer.Write("abc"), full) << room;
    EXPECT_THAT(writer.Write(""), full) << room;
    EXPECT_THAT(writer.Close(), full) << room;
    EXPECT_EQ(writer.num_records(), 0);
  }
}

TEST(RecordWriterTest, FailedCloseIsPassedOnAndSticks) {
  RecordWriter writer(std::make_unique<FullSink>(100));
  EXPECT_THAT(writer.Write("abc"), IsOk());
  EXPECT_THAT(writer.Close(), StatusIs(absl::StatusCode::kDataLoss, "cannot close"));
  EXPECT_THAT(writer.Close(), StatusIs(absl::StatusCode::kDataLoss, "cannot close"));
}

TEST(RecordWriterTest, FolderThatIsNotThereIsNotFound) {
  const TempFolder folder;
  EXPECT_THAT(RecordWriter::Create(folder / "none/a.tfrecord"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("none/a.tfrecord")));
}

}  // namespace
}  // namespace systole
