// Tests the file of a recording. The reader must return what was written, and must refuse all other
// files.
#include "client/emulator/timing/arrivals_file.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/batch/slice_layout.h"
#include "core/record/tfrecord/record_reader.h"
#include "core/record/tfrecord/record_writer.h"
#include "core/storage/byte_sink.h"
#include "core/storage/memory_source.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "systole/v1/arrivals.pb.h"
#include "systole/v1/message_file.pb.h"
#include "tests/status_matchers.h"

namespace systole::emulator {
namespace {

using testing::HasSubstr;

Arrivals ThreeStepsOfTwoCores() {
  return {.origin = {.dataset = "photos",
                     .spec = "\xff.textproto",  // Not UTF-8, but valid as a file's name.
                     .spec_fingerprint = 0xfedcba9876543210u,
                     .servers = "a:1, b:2",
                     .content_version = "1",
                     .date = "2026-11-22T05:03:10Z"},
          .tensors = {{"image", DType::kBfloat16, 3, {24, 24, 3, 16}},
                      {"label", DType::kInt64, 0, {16}}},
          .first_step = 7,
          .num_cores = 2,
          .ns = {0, 5, 100, 100, 100, 250}};
}

std::string BytesOf(const Arrivals& arrivals) {
  std::string bytes;
  EXPECT_THAT(WriteArrivals(arrivals, "test", std::make_unique<StringSink>(&bytes)), IsOk());
  return bytes;
}

absl::StatusOr<Arrivals> Read(const std::string& bytes) {
  return ReadArrivals(MemorySource(bytes, "a.arrivals"));
}

TEST(ArrivalsFileTest, ReadsWhatItWrites) {
  Arrivals arrivals = ThreeStepsOfTwoCores();
  EXPECT_THAT(Read(BytesOf(arrivals)), IsOkAndHolds(arrivals));
  arrivals.recorded_by = RecordedBy::kPaced;
  arrivals.ns.clear();
  EXPECT_THAT(Read(BytesOf(arrivals)), IsOkAndHolds(arrivals));
}

// The largest slice that a feed can have holds the tensors of 64 outputs, whose names have the
// greatest length, and the tensor `valid`.
TEST(ArrivalsFileTest, TheLargestSliceOfAFeedIsReadBack) {
  Arrivals arrivals = ThreeStepsOfTwoCores();
  arrivals.tensors = {{kValidTensor, DType::kUint8, 0, {16}}};
  std::vector<SliceTensor> slice = {
      {.spec = {.name = kValidTensor, .dtype = DType::kUint8, .shape = {16}}}};
  for (int i = 0; i < 64; ++i) {
    const std::string name = absl::StrCat(1000 + i, std::string(124, 'n'));
    arrivals.tensors.push_back({name, DType::kFloat32, 0, {16, 1, 1, 1, 1, 1, 1, 2}});
    slice.push_back(
        {.spec = {.name = name, .dtype = DType::kFloat32, .shape = {16, 1, 1, 1, 1, 1, 1, 2}}});
  }
  EXPECT_THAT(SliceLayout::Create(slice), IsOk());
  EXPECT_THAT(Read(BytesOf(arrivals)), IsOkAndHolds(arrivals));
}

// The first recording has one tensor more than a feed's slice can have. The second has a negative
// time.
TEST(ArrivalsFileTest, InvalidArrivalsAreNotWritten) {
  std::string bytes;
  const auto write = [&bytes](const Arrivals& arrivals) {
    return WriteArrivals(arrivals, "test", std::make_unique<StringSink>(&bytes));
  };
  Arrivals many = ThreeStepsOfTwoCores();
  many.tensors.resize(1);
  for (int i = 0; i < 65; ++i) {
    many.tensors.push_back({absl::StrCat("t", i), DType::kInt64, 0, {16}});
  }
  EXPECT_THAT(write(many),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("66 tensors, want 1 to 65")));
  Arrivals falling = ThreeStepsOfTwoCores();
  falling.ns[2] = -1;
  EXPECT_THAT(write(falling), StatusIs(absl::StatusCode::kInvalidArgument, testing::_));
  EXPECT_EQ(bytes, "");
}

TEST(ArrivalsFileTest, TimesOfManyRecordsAreReadBackInOrder) {
  constexpr int64_t kTimes = 65536;  // Arrival times in a full record (arrivals.proto).
  for (const int64_t steps : {kTimes / 3, kTimes / 3 + 1, kTimes}) {
    Arrivals arrivals = ThreeStepsOfTwoCores();
    arrivals.num_cores = 3;
    arrivals.ns.resize(static_cast<size_t>(3 * steps));
    for (size_t i = 0; i < arrivals.ns.size(); ++i) arrivals.ns[i] = static_cast<int64_t>(i) * 977;
    EXPECT_THAT(Read(BytesOf(arrivals)), IsOkAndHolds(arrivals));
  }
}

TEST(ArrivalsFileTest, EveryTruncationAndFlippedBitIsRefused) {
  const std::string bytes = BytesOf(ThreeStepsOfTwoCores());
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_THAT(Read(bytes.substr(0, size)).status().message(), HasSubstr("cut short")) << size;
  }
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string damaged = bytes;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ 1 << bit % 8);
    ASSERT_FALSE(Read(damaged).ok()) << bit;
  }
  EXPECT_THAT(Read(bytes + bytes), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("added to")));
}

TEST(ArrivalsFileTest, AFileOfAnotherFormatIsRefused) {
  const auto is_bad = [](const std::string& message) {
    return StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(message));
  };
  EXPECT_THAT(Read("what you will, and long enough"), is_bad("no recording of arrivals: "));
}

// A file with valid checksums. Its second record is `arrivals`, and its third record has `times`
// arrival times.
std::string FileOf(const v1::Arrivals& arrivals, int times) {
  v1::FileHeader header;
  header.set_format("systole arrivals");
  header.set_version(1);
  v1::ArrivalTimes message;
  for (int i = 0; i < times; ++i) message.add_ns(100 + i);
  std::string bytes;
  RecordWriter writer(std::make_unique<StringSink>(&bytes));
  EXPECT_THAT(writer.Write(header.SerializeAsString()), IsOk());
  EXPECT_THAT(writer.Write(arrivals.SerializeAsString()), IsOk());
  EXPECT_THAT(writer.Write(message.SerializeAsString()), IsOk());
  EXPECT_THAT(writer.Close(), IsOk());
  return bytes;
}

// The checksums of these files are valid, but one field is not. The reader must find this before it
// allocates memory of a size that depends on the field.
TEST(ArrivalsFileTest, AnInvalidFieldIsRefusedByName) {
  v1::Arrivals good;
  good.set_recorded_by(v1::Arrivals::DRAIN);
  good.set_num_cores(2);
  good.set_steps(3);
  v1::ArrivalTensor& tensor = *good.add_tensors();
  tensor.set_name("label");
  tensor.set_dtype(v1::INT64);
  tensor.add_shape(16);
  ASSERT_THAT(Read(FileOf(good, 6)), IsOk());
  const auto refused = [&good](absl::StatusCode code, const std::string& message,
                               const std::function<void(v1::Arrivals&)>& spoil) {
    v1::Arrivals bad = good;
    spoil(bad);
    EXPECT_THAT(Read(FileOf(bad, 6)), StatusIs(code, HasSubstr(message)));
  };
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  refused(kInvalid, "recorded_by is 0, want DRAIN or PACED",
          [](auto& a) { a.clear_recorded_by(); });
  refused(kInvalid, "dtype is 0", [](auto& a) { a.mutable_tensors(0)->clear_dtype(); });
  refused(kInvalid, "dtype is 7",
          [](auto& a) { a.mutable_tensors(0)->set_dtype(static_cast<v1::DataType>(7)); });
  refused(kInvalid, "0 tensors", [](auto& a) { a.clear_tensors(); });
  refused(kInvalid, "num_cores is -1", [](auto& a) { a.set_num_cores(-1); });
  refused(kInvalid, "steps is -1", [](auto& a) { a.set_steps(-1); });
  refused(kInvalid, "steps is 33554433 of 2 cores",
          [](auto& a) { a.set_steps(kMaxArrivalTimes / 2 + 1); });
  refused(absl::StatusCode::kDataLoss, "a record of 6 times, want 8",
          [](auto& a) { a.set_steps(4); });
  refused(absl::StatusCode::kDataLoss, "a record of 6 times, want 65536",
          [](auto& a) { a.set_steps(kMaxArrivalTimes / 2); });
  refused(absl::StatusCode::kDataLoss, "added to", [](auto& a) { a.set_steps(0); });
}

}  // namespace
}  // namespace systole::emulator
