// Peers that send what nobody should: random bytes, senseless requests, and names of files in place
// of names of datasets. The server refuses them and still serves the other peers.
#include <sys/socket.h>

#include <memory>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/descriptor/owned_fd.h"
#include "gmock/gmock.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "systole/v1/service.grpc.pb.h"
#include "tests/chaos/chaos_feed.h"
#include "tests/loopback_socket.h"

namespace systole {
namespace {

class PeersTest : public ChaosTest {
 protected:
  void SetUp() override {
    ChaosTest::SetUp();
    AddServer();
    stub_ = v1::Systole::NewStub(
        grpc::CreateChannel(proxy(0).address(), grpc::InsecureChannelCredentials()));
    random_.seed(ChaosSeed());
  }
  // Checks that the server still runs and serves the same bytes as before the test.
  void TearDown() override {
    EXPECT_TRUE(server(0).IsRunning());
    const auto feed = StartFeed(10);
    ExpectUndisturbed(*feed, 10);
    ChaosTest::TearDown();
  }

  std::string Noise(size_t size) {
    std::string bytes(size, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random_());
    return bytes;
  }

  // A spec that is right if the server has the dataset.
  static v1::FeedSpec SpecOf(const std::string& dataset) {
    v1::FeedSpec spec;
    spec.set_dataset(dataset);
    spec.set_global_batch(8);
    spec.set_num_cores(1);
    v1::Output& output = *spec.add_outputs();
    output.set_name("bytes");
    output.set_feature("record");
    output.add_transforms()->mutable_decode_raw();
    output.set_dtype(v1::UINT8);
    output.add_shape(kChaosRecordBytes);
    return spec;
  }

  grpc::Status Resolve(const v1::FeedSpec& spec) {
    v1::ResolveFeedRequest request;
    *request.mutable_spec() = spec;
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(600));
    v1::ResolveFeedResponse response;
    return stub_->ResolveFeed(&context, request, &response);
  }

  grpc::Status Describe(const std::string& dataset) {
    v1::DescribeDatasetRequest request;
    request.set_dataset(dataset);
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(600));
    v1::DescribeDatasetResponse response;
    return stub_->DescribeDataset(&context, request, &response);
  }

  // Sets some fields of `message` to random values, valid or not.
  void Scramble(google::protobuf::Message& message, int depth);
  std::string SomeText();
  int64_t SomeNumber();

  std::unique_ptr<v1::Systole::Stub> stub_;
  std::mt19937_64 random_;
};

std::string PeersTest::SomeText() {
  static const char* const kTexts[] = {"",     "raw",  "record",  "image", "../../etc/passwd",
                                       "/etc", "a\nb", "\x1b[2J", "%s%n",  "record_id"};
  const uint64_t which = random_() % 12;
  if (which == 10) return Noise(random_() % 300);
  if (which == 11) return std::string(random_() % 5000, 'x');
  return kTexts[which];
}

int64_t PeersTest::SomeNumber() {
  static constexpr int64_t kNumbers[] = {0,  1,   2,       8,       64,        1000,
                                         -1, 255, 1 << 16, 1 << 30, INT64_MAX, INT64_MIN};
  return random_() % 4 == 0 ? static_cast<int64_t>(random_()) : kNumbers[random_() % 12];
}

void PeersTest::Scramble(google::protobuf::Message& message, int depth) {
  using google::protobuf::FieldDescriptor;
  const google::protobuf::Descriptor& type = *message.GetDescriptor();
  const google::protobuf::Reflection& fields = *message.GetReflection();
  if (type.field_count() == 0) return;
  for (uint64_t left = random_() % 5; left > 0; --left) {
    const FieldDescriptor* const field =
        type.field(static_cast<int>(random_() % static_cast<uint64_t>(type.field_count())));
    const bool list = field->is_repeated();
    if (field->is_map()) continue;
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_MESSAGE:
        if (depth > 0) {
          Scramble(
              list ? *fields.AddMessage(&message, field) : *fields.MutableMessage(&message, field),
              depth - 1);
        }
        break;
      case FieldDescriptor::CPPTYPE_STRING: {
        std::string text = SomeText();
        // protobuf would refuse to send a string that is not UTF-8.
        if (field->type() == FieldDescriptor::TYPE_STRING) {
          for (char& byte : text) byte = static_cast<char>(byte & 0x7f);
        }
        list ? fields.AddString(&message, field, text) : fields.SetString(&message, field, text);
        break;
      }
      case FieldDescriptor::CPPTYPE_ENUM: {
        const int value = static_cast<int>(SomeNumber() % 300);
        list ? fields.AddEnumValue(&message, field, value)
             : fields.SetEnumValue(&message, field, value);
        break;
      }
      case FieldDescriptor::CPPTYPE_BOOL: {
        const bool value = random_() % 2 == 0;
        list ? fields.AddBool(&message, field, value) : fields.SetBool(&message, field, value);
        break;
      }
      case FieldDescriptor::CPPTYPE_INT32: {
        const auto value = static_cast<int32_t>(SomeNumber());
        list ? fields.AddInt32(&message, field, value) : fields.SetInt32(&message, field, value);
        break;
      }
      case FieldDescriptor::CPPTYPE_UINT32: {
        const auto value = static_cast<uint32_t>(SomeNumber());
        list ? fields.AddUInt32(&message, field, value) : fields.SetUInt32(&message, field, value);
        break;
      }
      case FieldDescriptor::CPPTYPE_INT64:
        list ? fields.AddInt64(&message, field, SomeNumber())
             : fields.SetInt64(&message, field, SomeNumber());
        break;
      case FieldDescriptor::CPPTYPE_UINT64: {
        const auto value = static_cast<uint64_t>(SomeNumber());
        list ? fields.AddUInt64(&message, field, value) : fields.SetUInt64(&message, field, value);
        break;
      }
      case FieldDescriptor::CPPTYPE_FLOAT: {
        const auto value = static_cast<float>(SomeNumber()) / 7;
        list ? fields.AddFloat(&message, field, value) : fields.SetFloat(&message, field, value);
        break;
      }
      case FieldDescriptor::CPPTYPE_DOUBLE: {
        const double value = random_() % 8 == 0 ? 0.0 / 0.0 : static_cast<double>(SomeNumber()) / 7;
        list ? fields.AddDouble(&message, field, value) : fields.SetDouble(&message, field, value);
        break;
      }
    }
  }
}

TEST_F(PeersTest, RandomSpecsAreAcceptedOrRefusedWithAOneLineError) {
  int accepted = 0;
  for (int i = 0; i < Times(2000, 10'000); ++i) {
    v1::FeedSpec spec;
    // Half of the specs are nearly right, so that the later checks of a spec are tested too.
    if (i % 2 == 0) {
      spec = SpecOf("raw");
      Scramble(*spec.mutable_outputs(0), 3);
    }
    Scramble(spec, 4);
    const grpc::Status status = Resolve(spec);
    if (status.ok()) ++accepted;
    ASSERT_THAT(status.error_code(),
                testing::AnyOf(grpc::OK, grpc::INVALID_ARGUMENT, grpc::NOT_FOUND,
                               grpc::RESOURCE_EXHAUSTED, grpc::FAILED_PRECONDITION))
        << status.error_message() << "\n"
        << spec.DebugString();
    // The error is one line, however many lines the spec has.
    ASSERT_EQ(status.error_message().find('\n'), std::string::npos);
    ASSERT_EQ(status.error_message().find('\x1b'), std::string::npos);
  }
  EXPECT_GT(accepted, 0);
}

TEST_F(PeersTest, RandomBytesDoNotDisturbTheServer) {
  for (int i = 0; i < Times(100, 1000); ++i) {
    const OwnedFd socket = ConnectOnLoopback(PortOf(proxy(0).address()));
    ASSERT_TRUE(socket.ok());
    // Every other peer begins with the connection preface of an HTTP/2 client.
    std::string bytes = Noise(random_() % 20'000);
    if (i % 2 == 0) bytes = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes;
    ::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
}

TEST_F(PeersTest, OversizedRequestsAndMetadataAreRefused) {
  v1::FeedSpec spec;
  spec.set_dataset(std::string(200 << 10, 'x'));
  EXPECT_EQ(Resolve(spec).error_code(), grpc::RESOURCE_EXHAUSTED);
  // A request as large as this is cut off before it has arrived whole.
  spec.set_dataset(std::string(10 << 20, 'x'));
  EXPECT_EQ(Resolve(spec).error_code(), grpc::UNAVAILABLE);
  grpc::ClientContext context;
  for (int i = 0; i < 20; ++i) {
    context.AddMetadata(absl::StrCat("x-", i), std::string(8000, 'x'));
  }
  v1::ServerStatusResponse response;
  EXPECT_FALSE(stub_->ServerStatus(&context, {}, &response).ok());
}

TEST_F(PeersTest, FilePathsAndNamesWithANulAreNotAcceptedAsDatasetNames) {
  EXPECT_TRUE(Resolve(SpecOf("raw")).ok());
  EXPECT_TRUE(Describe("raw").ok());
  using std::string_literals::operator""s;  // A string of this kind may contain a NUL.
  for (const std::string& name :
       {"../raw"s, "/etc/passwd"s, "raw/../raw"s, "raw-0.tfrecord"s, "raw\0x"s}) {
    for (const grpc::Status& status : {Resolve(SpecOf(name)), Describe(name)}) {
      EXPECT_EQ(status.error_code(), grpc::NOT_FOUND) << name << ": " << status.error_message();
      EXPECT_EQ(status.error_message().find("root"), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace systole
