// Tests the file of a checkpoint. The reader must return what was written, and must refuse all
// other files.
#include "client/emulator/training/checkpoint_file.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/record/tfrecord/record_reader.h"
#include "core/record/tfrecord/record_writer.h"
#include "core/storage/byte_sink.h"
#include "core/storage/memory_source.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "systole/v1/checkpoint.pb.h"
#include "systole/v1/message_file.pb.h"
#include "tests/status_matchers.h"

namespace systole::emulator {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

// A small checkpoint with every field filled.
Checkpoint FullCheckpoint() {
  const EpochReport epoch = {.steps = 3,
                             .training = {.examples = 24, .loss = 1.25, .accuracy = 0.5},
                             .validation = Score{.examples = 8, .loss = 1.5, .accuracy = 0.375},
                             .duration = absl::Nanoseconds(1234567891),
                             .compute = absl::Milliseconds(900),
                             .bytes_received = 4096,
                             .infeed_stall = {absl::Milliseconds(1), absl::Milliseconds(2)}};
  Checkpoint checkpoint = {.model = "toy",
                           .model_fingerprint = 0xfedcba9876543210u,
                           .seed = 7,
                           .numerics = Numerics::kFast,
                           .global_batch = 8,
                           .steps_per_epoch = 3,
                           .feed_token = "systole2:x"};
  checkpoint.trainer = {.steps = 5,
                        .tensors = {{"a/weights", {1, 3}, {0.5f, -1.0f, 0x1p-140f}},
                                    {"a/weights/velocity", {1, 3}, {1, 2, 3}}}};
  checkpoint.loop.epochs = {epoch};
  checkpoint.loop.current = {.steps = 2, .infeed_stall = {absl::Milliseconds(3)}};
  checkpoint.loop.sums = {.examples = 16, .correct = 9, .loss = 21.5};
  checkpoint.loop.step_in_epoch = 2;
  checkpoint.loop.training_time = absl::Seconds(3);
  checkpoint.loop.first_step_wait = absl::Milliseconds(250);
  return checkpoint;
}

std::string BytesOf(const Checkpoint& checkpoint) {
  std::string bytes;
  EXPECT_THAT(WriteCheckpoint(checkpoint, "test", std::make_unique<StringSink>(&bytes)), IsOk());
  return bytes;
}

absl::StatusOr<Checkpoint> Read(const std::string& bytes) {
  return ReadCheckpoint(MemorySource(bytes, "a.ckpt"));
}

// The messages of the file, in order: one each for header, run and epoch, then the tensors.
std::vector<std::string> MessagesOf(const std::string& bytes) {
  const MemorySource source(bytes);
  RecordReader reader = *RecordReader::Create(source);
  std::vector<std::string> messages;
  while (true) {
    const auto next = reader.Next();
    EXPECT_THAT(next.status(), IsOk());
    if (!next.ok() || !next->has_value()) return messages;
    messages.emplace_back(**next);
  }
}

// A file of these messages, with valid checksums.
std::string FileOf(const std::vector<std::string>& messages) {
  std::string bytes;
  RecordWriter writer(std::make_unique<StringSink>(&bytes));
  for (const std::string& message : messages) EXPECT_THAT(writer.Write(message), IsOk());
  EXPECT_THAT(writer.Close(), IsOk());
  return bytes;
}

// A file of `messages`, in which message `index` is changed.
template <typename Message>
std::string With(std::vector<std::string> messages, size_t index,
                 const std::function<void(Message&)>& change) {
  Message message;
  EXPECT_TRUE(message.ParseFromString(messages[index]));
  change(message);
  messages[index] = message.SerializeAsString();
  return FileOf(messages);
}

TEST(CheckpointFileTest, EveryFieldIsReadBack) {
  const Checkpoint want = FullCheckpoint();
  const std::string bytes = BytesOf(want);
  const absl::StatusOr<Checkpoint> read = Read(bytes);
  ASSERT_THAT(read, IsOk());
  EXPECT_EQ(read->model, want.model);
  EXPECT_EQ(read->model_fingerprint, want.model_fingerprint);
  EXPECT_EQ(read->seed, want.seed);
  EXPECT_EQ(read->numerics, want.numerics);
  EXPECT_EQ(read->global_batch, want.global_batch);
  EXPECT_EQ(read->steps_per_epoch, want.steps_per_epoch);
  EXPECT_EQ(read->feed_token, want.feed_token);
  EXPECT_EQ(read->trainer, want.trainer);
  ASSERT_EQ(read->loop.epochs.size(), 1u);
  EXPECT_EQ(read->loop.epochs[0].validation->accuracy, 0.375);
  EXPECT_EQ(read->loop.epochs[0].duration, absl::Nanoseconds(1234567891));
  EXPECT_EQ(read->loop.epochs[0].infeed_stall, want.loop.epochs[0].infeed_stall);
  EXPECT_EQ(read->loop.current.steps, 2);
  EXPECT_FALSE(read->loop.current.validation.has_value());
  EXPECT_EQ(read->loop.sums.correct, 9);
  EXPECT_EQ(read->loop.sums.loss, 21.5);
  EXPECT_EQ(read->loop.step_in_epoch, 2);
  EXPECT_EQ(read->loop.first_step_wait, absl::Milliseconds(250));
  EXPECT_EQ(BytesOf(*read), bytes);  // Compares the other fields, too.
}

// After a change of the global batch, the number of steps done does not say which step of the epoch
// is next. Only then does the file have step_in_epoch.
TEST(CheckpointFileTest, TheStepInTheEpochIsWrittenIfTheBatchHasChanged) {
  const auto is_written = [](const Checkpoint& checkpoint) {
    v1::Checkpoint message;
    EXPECT_TRUE(message.ParseFromString(MessagesOf(BytesOf(checkpoint))[1]));
    return message.has_step_in_epoch();
  };
  Checkpoint checkpoint = FullCheckpoint();
  EXPECT_FALSE(is_written(checkpoint));
  checkpoint.loop.step_in_epoch = 1;  // As after a change in this epoch.
  EXPECT_TRUE(is_written(checkpoint));
  EXPECT_EQ(Read(BytesOf(checkpoint))->loop.step_in_epoch, 1);
  checkpoint = FullCheckpoint();
  checkpoint.trainer.steps = 9;  // As after a change in an earlier epoch.
  EXPECT_TRUE(is_written(checkpoint));
  const absl::StatusOr<Checkpoint> read = Read(BytesOf(checkpoint));
  ASSERT_THAT(read, IsOk());
  EXPECT_EQ(read->trainer.steps, 9);
  EXPECT_EQ(read->loop.step_in_epoch, 2);
}

// Reads the file only with a reader of TFRecords and protobuf, as programs in other languages do.
TEST(CheckpointFileTest, TheFileIsTfRecordsOfTheMessagesThatTheProtoSays) {
  const std::vector<std::string> messages = MessagesOf(BytesOf(FullCheckpoint()));
  ASSERT_EQ(messages.size(), 5u);
  v1::FileHeader header;
  ASSERT_TRUE(header.ParseFromString(messages[0]));
  EXPECT_EQ(header.format(), "systole checkpoint");
  EXPECT_EQ(header.version(), 1u);
  EXPECT_EQ(header.written_by(), "test");
  v1::CheckpointTensor tensor;
  ASSERT_TRUE(tensor.ParseFromString(messages[3]));
  EXPECT_EQ(tensor.name(), "a/weights");
  EXPECT_THAT(tensor.shape(), ElementsAre(1, 3));
  EXPECT_EQ(tensor.dtype(), v1::FLOAT32);
  // The numbers 0.5, -1 and a subnormal are 0x3f000000, 0xbf800000, 0x00000200, with the least
  // significant byte first.
  EXPECT_EQ(tensor.data(), std::string("\0\0\0\x3f\0\0\x80\xbf\0\x02\0\0", 12));
}

TEST(CheckpointFileTest, ATensorOfManyPiecesIsReadBackWhole) {
  constexpr int64_t kPiece = 262144;  // Values in a full piece of a tensor.
  for (const int64_t elements : {kPiece - 1, kPiece, kPiece + 1, 3 * kPiece + 5}) {
    SCOPED_TRACE(elements);
    Checkpoint want = FullCheckpoint();
    StateTensor& tensor = want.trainer.tensors[0];
    tensor.shape = {elements, 1};
    tensor.values.resize(static_cast<size_t>(elements));
    for (int64_t i = 0; i < elements; ++i) tensor.values[i] = static_cast<float>(i % 65537);
    const std::string bytes = BytesOf(want);
    EXPECT_EQ(MessagesOf(bytes).size(), 4u + (elements + kPiece - 1) / kPiece);
    const absl::StatusOr<Checkpoint> read = Read(bytes);
    ASSERT_THAT(read, IsOk());
    EXPECT_EQ(read->trainer, want.trainer);
  }
}

TEST(CheckpointFileTest, EveryTruncationIsRefused) {
  const std::string bytes = BytesOf(FullCheckpoint());
  const size_t header_end = 16 + MessagesOf(bytes)[0].size();
  for (size_t size = 0; size < bytes.size(); ++size) {
    const auto code =
        size < header_end ? absl::StatusCode::kInvalidArgument : absl::StatusCode::kDataLoss;
    ASSERT_THAT(Read(bytes.substr(0, size)), StatusIs(code, HasSubstr("cut short"))) << size;
  }
  EXPECT_THAT(Read(bytes + "x"), StatusIs(absl::StatusCode::kDataLoss, testing::_));
  EXPECT_THAT(Read(bytes + bytes), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("added to")));
}

TEST(CheckpointFileTest, EveryFlippedBitIsRefused) {
  const std::string bytes = BytesOf(FullCheckpoint());
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string damaged = bytes;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ 1 << bit % 8);
    ASSERT_FALSE(Read(damaged).ok()) << bit;
  }
}

TEST(CheckpointFileTest, FilesOfAnotherFormatOrVersionAreRefused) {
  const auto is_bad = [](const auto&... parts) {
    return StatusIs(absl::StatusCode::kInvalidArgument, AllOf(HasSubstr(parts)...));
  };
  EXPECT_THAT(Read("\x7f"
                   "ELF, or what you will"),
              is_bad("no checkpoint: "));
  EXPECT_THAT(Read(FileOf({"an example"})), is_bad("no checkpoint: ", "not its header"));
  const std::vector<std::string> messages = MessagesOf(BytesOf(FullCheckpoint()));
  EXPECT_THAT(Read(With<v1::FileHeader>(messages, 0,
                                        [](auto& m) {
                                          m.set_version(2);
                                          m.set_written_by("0.2.0\x1b[2J");
                                        })),
              is_bad("a checkpoint of version 2, written by Systole '0.2.0\\033[2J'; this Systole "
                     "reads version 1"));
  EXPECT_THAT(
      Read(With<v1::FileHeader>(messages, 0, [](auto& m) { m.set_format("systole arrivals"); })),
      is_bad("a file of the format 'systole arrivals', want 'systole checkpoint'"));
}

// The checksums of these files are valid, but one field is not.
TEST(CheckpointFileTest, AnInvalidFieldIsRefusedByName) {
  const std::vector<std::string> messages = MessagesOf(BytesOf(FullCheckpoint()));
  const auto run = [&](const std::string& field, const std::function<void(v1::Checkpoint&)>& set) {
    EXPECT_THAT(Read(With<v1::Checkpoint>(messages, 1, set)),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr(field + " is impossible")));
  };
  run("numerics", [](auto& m) { m.set_numerics("soup"); });
  run("global_batch", [](auto& m) { m.set_global_batch(0); });
  run("steps_per_epoch", [](auto& m) { m.set_steps_per_epoch(0); });
  run("num_epochs", [](auto& m) { m.set_steps_per_epoch(4); });
  run("num_epochs", [](auto& m) { m.set_num_epochs(2); });
  run("steps", [](auto& m) { m.set_steps(-1); });
  run("current_epoch.steps", [](auto& m) { m.set_steps(1); });
  run("current_epoch.steps", [](auto& m) { m.mutable_current_epoch()->set_steps(-1); });
  run("current_epoch.steps", [](auto& m) { m.mutable_current_epoch()->set_steps(4); });
  run("step_in_epoch", [](auto& m) { m.set_step_in_epoch(-1); });
  run("step_in_epoch", [](auto& m) { m.set_step_in_epoch(4); });
  run("num_epochs", [](auto& m) {
    m.set_step_in_epoch(1);
    m.set_num_epochs(-1);
  });
  run("current_epoch.steps", [](auto& m) {
    m.set_step_in_epoch(1);
    m.mutable_current_epoch()->set_steps(6);
  });
  run("training_ns", [](auto& m) { m.set_training_ns(-1); });
  run("first_step_wait_ns", [](auto& m) { m.set_first_step_wait_ns(-1); });
  run("num_tensors", [](auto& m) { m.set_num_tensors(-1); });
  run("duration_ns", [](auto& m) { m.mutable_current_epoch()->set_duration_ns(-1); });
  const auto epoch = [&](const std::string& field,
                         const std::function<void(v1::CheckpointEpoch&)>& set) {
    EXPECT_THAT(Read(With<v1::CheckpointEpoch>(messages, 2, set)),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr(field + " is impossible")));
  };
  epoch("compute_ns", [](auto& m) { m.set_compute_ns(-1); });
  epoch("infeed_stall_ns", [](auto& m) { m.set_infeed_stall_ns(1, -1); });
  const auto tensor = [&](const std::string& what,
                          const std::function<void(v1::CheckpointTensor&)>& set) {
    EXPECT_THAT(Read(With<v1::CheckpointTensor>(messages, 3, set)),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr(what)));
  };
  tensor("the shape of tensor 'a/weights'", [](auto& m) { m.clear_shape(); });
  tensor("the shape", [](auto& m) { m.set_shape(0, -1); });
  tensor("the shape", [](auto& m) { m.set_shape(0, int64_t{1} << 62); });
  tensor("the shape", [](auto& m) { m.mutable_shape()->Resize(9, 1); });
  // The file is too short for this shape.
  tensor("the shape", [](auto& m) { m.set_shape(0, 1000); });
  // The file is long enough for this shape, but the first piece is too short.
  tensor("the piece at element 0", [](auto& m) { m.set_shape(0, 5); });
  tensor("the piece at element 0", [](auto& m) { m.set_dtype(v1::BFLOAT16); });
  tensor("the piece at element 0", [](auto& m) { m.set_first_element(1); });
  tensor("the piece at element 0", [](auto& m) { m.mutable_data()->pop_back(); });
  EXPECT_THAT(Read(FileOf({messages[0], messages[1], messages[2], messages[3]})),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("where a tensor should be")));
}

TEST(CheckpointFileTest, ARecordOverTheSizeLimitIsRefused) {
  const std::vector<std::string> messages = MessagesOf(BytesOf(FullCheckpoint()));
  EXPECT_THAT(Read(FileOf({messages[0], std::string(2 << 20, '\0')})),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("more than the 1114112 bytes")));
}

}  // namespace
}  // namespace systole::emulator
