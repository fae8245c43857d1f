// Tests the reflection service over a real connection, under both of its names: v1 and v1alpha.
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/access_token/token_file.h"
#include "core/concurrency/mutex.h"
#include "gmock/gmock.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/descriptor.pb.h"
#include "google/protobuf/dynamic_message.h"
#include "google/protobuf/text_format.h"
#include "grpc/reflection/v1/reflection.pb.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/generic/generic_stub.h"
#include "gtest/gtest.h"
#include "server/server.h"
#include "systole/v1/service.grpc.pb.h"
#include "tests/core/dataset/test_dataset.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/server/listen_on.h"
#include "tests/server/rpc/test_catalogue.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using google::protobuf::FileDescriptorProto;
using grpc::reflection::v1::ServerReflectionRequest;
using grpc::reflection::v1::ServerReflectionResponse;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

constexpr char kV1[] = "grpc.reflection.v1";
constexpr char kAlpha[] = "grpc.reflection.v1alpha";

// One call of the reflection service.
class Call {
 public:
  Call(const std::shared_ptr<grpc::Channel>& channel, const std::string& package,
       const std::string& token = "")
      : stub_(channel) {
    if (!token.empty()) context_.AddMetadata("authorization", absl::StrCat("Bearer ", token));
    call_ = stub_.PrepareCall(
        &context_, absl::StrCat("/", package, ".ServerReflection/ServerReflectionInfo"), &queue_);
    call_->StartCall(nullptr);
    Wait();
  }
  ~Call() {
    context_.TryCancel();
    queue_.Shutdown();
    void* tag = nullptr;
    bool ok = false;
    while (queue_.Next(&tag, &ok)) {
    }
  }

  // Sends `request`. Returns the server's answer, or nullopt if the call is over.
  std::optional<ServerReflectionResponse> Ask(const ServerReflectionRequest& request) {
    call_->Write(request, nullptr);
    if (!Wait()) return std::nullopt;
    ServerReflectionResponse response;
    call_->Read(&response, nullptr);
    if (!Wait()) return std::nullopt;
    return response;
  }
  // Returns the call's status. REQUIRES: the call is over, or ends without another message.
  grpc::Status End() {
    ServerReflectionResponse response;
    call_->Read(&response, nullptr);
    EXPECT_FALSE(Wait());
    grpc::Status status;
    call_->Finish(&status, nullptr);
    Wait();
    return status;
  }

 private:
  // Waits until the operation that was begun last has ended. Returns whether it succeeded.
  bool Wait() {
    void* tag = nullptr;
    bool ok = false;
    return queue_.Next(&tag, &ok) && ok;
  }

  grpc::TemplatedGenericStub<ServerReflectionRequest, ServerReflectionResponse> stub_;
  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::ClientAsyncReaderWriter<ServerReflectionRequest, ServerReflectionResponse>>
      call_;
};

ServerReflectionRequest Request(const std::string& text) {
  ServerReflectionRequest request;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &request));
  return request;
}

// The parameter is the package of the reflection service that the test calls.
class ReflectionTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { Start(""); }

  // `access` is the config's block `access` as text. "" means no block.
  void Start(const std::string& access) {
    channel_ = nullptr;
    server_ = nullptr;
    folder_.Write("a.tfrecord", TestShards({12})[0]);
    FeedServiceOptions service;
    service.events = &events_;
    absl::StatusOr<std::shared_ptr<AccessControl>> access_control =
        TestAccess(access, folder_ / "tokens");
    ASSERT_THAT(access_control, IsOk());
    service.access = *std::move(access_control);
    absl::StatusOr<Catalogue> catalogue = OpenTestCatalogue(folder_ / "a.tfrecord");
    ASSERT_THAT(catalogue, IsOk());
    absl::StatusOr<std::unique_ptr<Server>> server =
        Server::Start(*std::move(catalogue), ListenOn("127.0.0.1:0"), service);
    ASSERT_THAT(server, IsOk());
    server_ = *std::move(server);
    channel_ = grpc::CreateChannel(server_->address(), grpc::InsecureChannelCredentials());
  }

  // Makes a call with one request, and returns the answer.
  ServerReflectionResponse Ask(const std::string& request) {
    const std::optional<ServerReflectionResponse> response =
        Call(channel_, GetParam()).Ask(Request(request));
    EXPECT_TRUE(response.has_value());
    return response.value_or(ServerReflectionResponse());
  }
  std::string Log() {
    MutexLock lock(mu_);
    return log_;
  }

  TempFolder folder_;
  Mutex mu_;
  std::string log_ ABSL_GUARDED_BY(mu_);
  EventLog events_{[this](LogLevel, const std::string& line) {
    MutexLock lock(mu_);
    absl::StrAppend(&log_, line, "\n");
  }};
  std::unique_ptr<Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
};

// Builds the answer's files in `pool`, as a tool does that uses reflection.
void BuildPool(const ServerReflectionResponse& response, google::protobuf::DescriptorPool& pool) {
  const auto& files = response.file_descriptor_response().file_descriptor_proto();
  for (auto bytes = files.rbegin(); bytes != files.rend(); ++bytes) {
    FileDescriptorProto file;
    ASSERT_TRUE(file.ParseFromString(*bytes));
    ASSERT_NE(pool.BuildFile(file), nullptr) << file.name();
  }
}

TEST_P(ReflectionTest, ListsAllServices) {
  std::vector<std::string> names;
  const ServerReflectionResponse list = Ask("list_services: '*'");
  for (const auto& service : list.list_services_response().service()) {
    names.push_back(service.name());
  }
  EXPECT_THAT(names, UnorderedElementsAre("systole.v1.Systole", "grpc.health.v1.Health",
                                          "grpc.reflection.v1.ServerReflection",
                                          "grpc.reflection.v1alpha.ServerReflection"));
}

TEST_P(ReflectionTest, EveryServiceCanBeBuiltFromReflectedDescriptors) {
  for (const char* service :
       {"systole.v1.Systole", "grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection",
        "grpc.reflection.v1alpha.ServerReflection"}) {
    google::protobuf::DescriptorPool pool;
    BuildPool(Ask(absl::StrCat("file_containing_symbol: '", service, "'")), pool);
    const google::protobuf::ServiceDescriptor* found = pool.FindServiceByName(service);
    ASSERT_NE(found, nullptr) << service;
    EXPECT_GT(found->method_count(), 0);
    EXPECT_EQ(found->file()->package(), found->method(0)->input_type()->file()->package());
  }
}

TEST_P(ReflectionTest, HealthCheckCanBeCalledWithReflectedDescriptors) {
  google::protobuf::DescriptorPool pool;
  BuildPool(Ask("file_containing_symbol: 'grpc.health.v1.Health.Check'"), pool);
  const google::protobuf::MethodDescriptor* check =
      pool.FindMethodByName("grpc.health.v1.Health.Check");
  ASSERT_NE(check, nullptr);
  google::protobuf::DynamicMessageFactory factory;
  const std::unique_ptr<google::protobuf::Message> request(
      factory.GetPrototype(check->input_type())->New());
  const std::unique_ptr<google::protobuf::Message> response(
      factory.GetPrototype(check->output_type())->New());
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString("service: 'systole.v1.Systole'",
                                                            request.get()));
  const grpc::Slice slice(request->SerializeAsString());
  grpc::ClientContext context;
  grpc::CompletionQueue queue;
  grpc::GenericStub stub(channel_);
  const auto call = stub.PrepareUnaryCall(&context, "/grpc.health.v1.Health/Check",
                                          grpc::ByteBuffer(&slice, 1), &queue);
  call->StartCall();
  grpc::ByteBuffer answer;
  grpc::Status status;
  call->Finish(&answer, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  ASSERT_TRUE(queue.Next(&tag, &ok) && ok);
  grpc::Slice bytes;
  ASSERT_TRUE(answer.DumpToSingleSlice(&bytes).ok());
  ASSERT_TRUE(response->ParseFromArray(bytes.begin(), static_cast<int>(bytes.size())));
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response->ShortDebugString(), "status: SERVING");
}

TEST_P(ReflectionTest, AProtoFileIsFoundByNameAndBySymbol) {
  const auto name_of = [](const ServerReflectionResponse& response) {
    FileDescriptorProto file;
    EXPECT_GT(response.file_descriptor_response().file_descriptor_proto_size(), 0);
    if (response.file_descriptor_response().file_descriptor_proto_size() == 0) return file.name();
    EXPECT_TRUE(file.ParseFromString(response.file_descriptor_response().file_descriptor_proto(0)));
    return file.name();
  };
  EXPECT_EQ(name_of(Ask("file_by_filename: 'systole/v1/feed.proto'")), "systole/v1/feed.proto");
  EXPECT_EQ(name_of(Ask("file_containing_symbol: 'systole.v1.FeedSpec.global_batch'")),
            "systole/v1/feed.proto");
  EXPECT_EQ(Ask("all_extension_numbers_of_type: 'systole.v1.FeedSpec'")
                .all_extension_numbers_response()
                .base_type_name(),
            "systole.v1.FeedSpec");
}

TEST_P(ReflectionTest, EachResponseInACallEchoesItsRequest) {
  Call call(channel_, GetParam());
  for (int i = 0; i < 3; ++i) {
    const ServerReflectionRequest request =
        Request(absl::StrCat("host: 'h", i, "' list_services: 'all'"));
    const std::optional<ServerReflectionResponse> response = call.Ask(request);
    ASSERT_TRUE(response.has_value());
    EXPECT_EQ(response->original_request().SerializeAsString(), request.SerializeAsString());
    EXPECT_EQ(response->valid_host(), absl::StrCat("h", i));
  }
}

// ---- Error paths ----

TEST_P(ReflectionTest, UnknownNamesAndEmptyRequestsAreErrorsThatDoNotEndTheCall) {
  Call call(channel_, GetParam());
  for (const char* request :
       {"file_by_filename: 'no/such\\n.proto'", "file_containing_symbol: 'no.Such'",
        // The server's program contains this message, but no service uses it.
        "file_containing_symbol: 'systole.v1.ServerConfig'",
        "file_containing_extension { containing_type: 'systole.v1.FeedSpec' extension_number: 7 }",
        "file_containing_extension { containing_type: 'no.Such' extension_number: 7 }",
        "all_extension_numbers_of_type: 'no.Such'"}) {
    const std::optional<ServerReflectionResponse> response = call.Ask(Request(request));
    ASSERT_TRUE(response.has_value()) << request;
    EXPECT_EQ(response->error_response().error_code(), grpc::StatusCode::NOT_FOUND) << request;
    EXPECT_THAT(response->error_response().error_message(), HasSubstr("list_services"));
  }
  const std::optional<ServerReflectionResponse> nothing = call.Ask(ServerReflectionRequest());
  ASSERT_TRUE(nothing.has_value());
  EXPECT_EQ(nothing->error_response().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_TRUE(call.Ask(Request("list_services: ''"))->has_list_services_response());
}

TEST_P(ReflectionTest, RequestsPerCallAreLimited) {
  Call call(channel_, GetParam());
  for (int i = 0; i < kMaxReflectionRequests; ++i) {
    ASSERT_TRUE(call.Ask(Request("file_by_filename: 'x'")).has_value()) << i;
  }
  EXPECT_FALSE(call.Ask(Request("file_by_filename: 'x'")).has_value());
  EXPECT_EQ(call.End().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
}

TEST_P(ReflectionTest, ConcurrentCallsAreLimited) {
  // gRPC holds back calls beyond the limit of a connection. The test uses two connections, so that
  // the last call reaches the server and is refused.
  const std::shared_ptr<grpc::Channel> second = [this] {
    grpc::ChannelArguments own_connection;
    own_connection.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return grpc::CreateCustomChannel(server_->address(), grpc::InsecureChannelCredentials(),
                                     own_connection);
  }();
  std::vector<std::unique_ptr<Call>> calls;
  for (int i = 0; i < kMaxReflectionCalls; ++i) {
    calls.push_back(std::make_unique<Call>(i % 2 == 0 ? channel_ : second, GetParam()));
    ASSERT_TRUE(calls.back()->Ask(Request("list_services: ''")).has_value());
  }
  Call more(channel_, GetParam());
  EXPECT_FALSE(more.Ask(Request("list_services: ''")).has_value());
  EXPECT_EQ(more.End().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
}

TEST_P(ReflectionTest, CallsNeedReflectionPermissionAndEndWhenTheTokenIsRemoved) {
  const std::string tokens = folder_ / "tokens";
  const std::string may = *AddToken(tokens, "may", std::nullopt);
  const std::string other = *AddToken(tokens, "other", std::nullopt);
  Start(
      "token_file: 'x' identities { name: 'tool' token_names: 'may' may { reflection: true } } "
      "identities { name: 'trainer' token_names: 'other' may { read: 'test' } }");
  const ServerReflectionRequest list = Request("list_services: ''");
  Call permitted(channel_, GetParam(), may);
  EXPECT_TRUE(permitted.Ask(list).has_value());
  EXPECT_EQ(Call(channel_, GetParam(), other).End().error_code(),
            grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(Call(channel_, GetParam()).End().error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(Call(channel_, GetParam(), "wrong").End().error_code(),
            grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_THAT(Log(), AllOf(HasSubstr("ServerReflectionInfo for "),
                           HasSubstr("identity 'trainer' may not call ServerReflectionInfo")));

  // When the token of a call is removed from the file, the server ends the call.
  server_->Tick();
  EXPECT_TRUE(permitted.Ask(list).has_value());
  folder_.Write("tokens", TokenLine({.name = "other", .hash = HashOfToken(other)}));
  server_->Tick();
  EXPECT_FALSE(permitted.Ask(list).has_value());
  EXPECT_EQ(permitted.End().error_code(), grpc::StatusCode::UNAUTHENTICATED);
}

TEST_P(ReflectionTest, AnIdleCallDoesNotDelayADrain) {
  Call call(channel_, GetParam());
  ASSERT_TRUE(call.Ask(Request("list_services: ''")).has_value());
  EXPECT_TRUE(server_->Drain(absl::Minutes(5)));
  EXPECT_EQ(call.End().error_code(), grpc::StatusCode::UNAVAILABLE);
}

INSTANTIATE_TEST_SUITE_P(Names, ReflectionTest, testing::Values(kV1, kAlpha),
                         [](const testing::TestParamInfo<const char*>& info) {
                           return info.param == std::string(kV1) ? "V1" : "V1Alpha";
                         });

}  // namespace
}  // namespace systole
