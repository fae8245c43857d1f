#include "client/emulator/message_file/message_file.h"

#include <memory>
#include <string>

#include "core/storage/byte_sink.h"
#include "core/storage/memory_source.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "systole/v1/checkpoint.pb.h"
#include "tests/status_matchers.h"

namespace systole::emulator {
namespace {

using testing::HasSubstr;

constexpr FileFormat kFormat = {.name = "systole test", .noun = "test", .version = 3};

v1::CheckpointTensor TensorOf(size_t bytes) {
  v1::CheckpointTensor message;
  message.set_data(std::string(bytes, 'x'));
  return message;
}

TEST(MessageFileTest, MessagesAreReadBackInOrder) {
  std::string bytes;
  MessageFileWriter writer =
      *MessageFileWriter::Create(std::make_unique<StringSink>(&bytes), kFormat, "test");
  EXPECT_THAT(writer.Write(TensorOf(1)), IsOk());
  EXPECT_THAT(writer.Write(TensorOf(0)), IsOk());
  EXPECT_THAT(writer.Write(TensorOf(1 << 20)), IsOk());
  ASSERT_THAT(writer.Close(), IsOk());
  const MemorySource source(bytes);
  absl::StatusOr<MessageFileReader> reader = MessageFileReader::Open(source, kFormat);
  ASSERT_THAT(reader, IsOk());
  v1::CheckpointTensor message;
  for (const size_t size : {1, 0, 1 << 20}) {
    EXPECT_THAT(reader->Next("a tensor", message), IsOk());
    EXPECT_EQ(message.data().size(), size);
  }
  EXPECT_THAT(reader->ExpectEnd(), IsOk());
  EXPECT_THAT(reader->Next("a tensor", message),
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr("ends after 4 records, where a tensor should be")));
}

// A message that no reader would accept is not written.
TEST(MessageFileTest, AMessageAboveTheLimitIsNotWritten) {
  std::string bytes;
  MessageFileWriter writer =
      *MessageFileWriter::Create(std::make_unique<StringSink>(&bytes), kFormat, "test");
  const size_t header = bytes.size();
  EXPECT_THAT(writer.Write(TensorOf(static_cast<size_t>(kMaxMessageBytes))),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("at most 1114112")));
  EXPECT_EQ(bytes.size(), header);
}

TEST(MessageFileTest, ExpectEndReportsAnUnreadMessage) {
  std::string bytes;
  MessageFileWriter writer =
      *MessageFileWriter::Create(std::make_unique<StringSink>(&bytes), kFormat, "test");
  EXPECT_THAT(writer.Write(TensorOf(1)), IsOk());
  ASSERT_THAT(writer.Close(), IsOk());
  const MemorySource source(bytes);
  EXPECT_THAT(MessageFileReader::Open(source, kFormat)->ExpectEnd(),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("last record, number 0")));
}

}  // namespace
}  // namespace systole::emulator
