// A server that serves TLS, called by plain gRPC clients.
#include <chrono>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/access_token/token_file.h"
#include "gmock/gmock.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/server_builder.h"
#include "gtest/gtest.h"
#include "server/access/access_control.h"
#include "server/listener/tls_credentials.h"
#include "server/server.h"
#include "systole/v1/service.grpc.pb.h"
#include "tests/core/dataset/test_dataset.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/folders.h"
#include "tests/server/listen_on.h"
#include "tests/server/rpc/test_catalogue.h"
#include "tests/status_matchers.h"
#include "tests/wait_until.h"

namespace systole {
namespace {

class TlsServerTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_.Write("a.tfrecord", TestShards({12})[0]);
    MakeCertificates(certificates_.path());
  }
  static void MakeCertificates(const std::string& folder) {
    const std::string command =
        absl::StrCat(SourceFolder(), "/deploy/make_certificates.sh ", folder, " 2>/dev/null");
    ASSERT_EQ(std::system(command.c_str()), 0);
  }
  void Serve(const std::string& listen, bool verify_clients,
             const FeedServiceOptions& service = {}) {
    absl::StatusOr<Catalogue> catalogue = OpenTestCatalogue(folder_ / "a.tfrecord");
    ASSERT_THAT(catalogue, IsOk());
    v1::ServerConfig config = ListenOn(listen);
    config.mutable_tls()->set_certificate(certificates_ / "server.pem");
    config.mutable_tls()->set_key(certificates_ / "server.key");
    if (verify_clients) config.mutable_tls()->set_client_ca(certificates_ / "ca.pem");
    absl::StatusOr<std::unique_ptr<Server>> server =
        Server::Start(*std::move(catalogue), config, service);
    ASSERT_THAT(server, IsOk());
    server_ = *std::move(server);
  }
  // The credentials of a client that trusts the CA in `folder`. With `identity` the client also has
  // a certificate.
  static std::shared_ptr<grpc::ChannelCredentials> Holding(const TempFolder& folder,
                                                           bool identity) {
    grpc::SslCredentialsOptions options = {.pem_root_certs = ReadWholeFile(folder / "ca.pem")};
    if (identity) {
      options.pem_private_key = ReadWholeFile(folder / "client.key");
      options.pem_cert_chain = ReadWholeFile(folder / "client.pem");
    }
    return grpc::SslCredentials(options);
  }
  // Each stub has a connection of its own.
  std::unique_ptr<v1::Systole::Stub> Dial(
      const std::shared_ptr<grpc::ChannelCredentials>& credentials) const {
    grpc::ChannelArguments own_connection;
    own_connection.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return v1::Systole::NewStub(
        grpc::CreateCustomChannel(server_->address(), credentials, own_connection));
  }
  static grpc::Status Ask(v1::Systole::Stub& stub) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kLongestWait);
    v1::ListDatasetsResponse list;
    return stub.ListDatasets(&context, {}, &list);
  }

  const TempFolder folder_;
  const TempFolder certificates_;
  std::unique_ptr<Server> server_;
};

TEST_F(TlsServerTest, AClientThatTrustsTheAuthorityIsServed) {
  Serve("127.0.0.1:0", /*verify_clients=*/false);
  const grpc::Status status = Ask(*Dial(Holding(certificates_, /*identity=*/false)));
  EXPECT_TRUE(status.ok()) << status.error_message();
}

// The clock stands still, so no connection earns an allowance by waiting.
TEST_F(TlsServerTest, ATlsConnectionOfRefusedCallsIsCountedAsSendingTooMuch) {
  const std::string tokens = folder_ / "tokens";
  ASSERT_THAT(AddToken(tokens, "a", std::nullopt), IsOk());
  const absl::StatusOr<std::shared_ptr<AccessControl>> access = TestAccess(
      "token_file: 'TOKENS' identities { name: 'a' token_names: 'a' may { read: 'test' } }",
      tokens);
  ASSERT_THAT(access, IsOk());
  Serve("127.0.0.1:0", /*verify_clients=*/false,
        {.access = *access, .clock = [] { return absl::ZeroDuration(); }});
  // A call without a token is refused, so it earns no allowance for the bytes of the connection.
  const auto stub = Dial(Holding(certificates_, /*identity=*/false));
  for (int i = 0; i < 300 && server_->connections().sent_too_much == 0; ++i) {
    EXPECT_FALSE(Ask(*stub).ok());
  }
  EXPECT_TRUE(WaitUntil([&] { return server_->connections().sent_too_much == 1; }));
}

TEST_F(TlsServerTest, TlsWorksOnAUnixSocketAndOnAllInterfacesOfTheHost) {
  grpc::ChannelArguments name;
  name.SetSslTargetNameOverride("localhost");
  const auto ask_at = [&](const std::string& address) {
    const auto stub = v1::Systole::NewStub(
        grpc::CreateCustomChannel(address, Holding(certificates_, /*identity=*/true), name));
    return Ask(*stub);
  };
  Serve("unix:" + (folder_ / "s"), /*verify_clients=*/false);
  grpc::Status status = ask_at(server_->address());
  EXPECT_TRUE(status.ok()) << status.error_message();
  Serve("0.0.0.0:0", /*verify_clients=*/true);
  // Every address 127.x.y.z is this host's. A server on 127.0.0.1 answers only there.
  status = ask_at(absl::StrCat("127.0.0.2:", server_->port()));
  EXPECT_TRUE(status.ok()) << status.error_message();
}

TEST_F(TlsServerTest, ClientsOfAnotherAuthorityAndWithoutTlsAreNotServed) {
  Serve("127.0.0.1:0", /*verify_clients=*/false);
  const TempFolder others;
  MakeCertificates(others.path());
  EXPECT_EQ(Ask(*Dial(Holding(others, /*identity=*/false))).error_code(),
            grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(Ask(*Dial(grpc::InsecureChannelCredentials())).error_code(),
            grpc::StatusCode::UNAVAILABLE);
}

TEST_F(TlsServerTest, AClientMustShowItsCertificateIfTheServerVerifies) {
  Serve("127.0.0.1:0", /*verify_clients=*/true);
  EXPECT_FALSE(Ask(*Dial(Holding(certificates_, /*identity=*/false))).ok());
  const grpc::Status status = Ask(*Dial(Holding(certificates_, /*identity=*/true)));
  EXPECT_TRUE(status.ok()) << status.error_message();
}

TEST_F(TlsServerTest, NewConnectionsUseReplacedCertificatesAndOldOnesContinue) {
  Serve("127.0.0.1:0", /*verify_clients=*/false);
  const auto before = Dial(Holding(certificates_, /*identity=*/false));
  ASSERT_TRUE(Ask(*before).ok());
  // Another authority signed the new certificate, so only clients that trust this authority can
  // connect.
  const TempFolder others;
  MakeCertificates(others.path());
  for (const std::string name : {"server.key", "server.pem"}) {
    certificates_.Write(name, ReadWholeFile(others / name));
  }
  EXPECT_TRUE(Ask(*Dial(Holding(others, /*identity=*/false))).ok());
  EXPECT_FALSE(Ask(*Dial(Holding(certificates_, /*identity=*/false))).ok());
  EXPECT_TRUE(Ask(*before).ok());
  // An invalid certificate changes nothing.
  certificates_.Write("server.pem", "half a fi");
  EXPECT_TRUE(Ask(*Dial(Holding(others, /*identity=*/false))).ok());
}

// Answers with the names that the caller has proved.
class NamingService final : public v1::Systole::Service {
 public:
  grpc::Status ListDatasets(grpc::ServerContext* context, const v1::ListDatasetsRequest*,
                            v1::ListDatasetsResponse* response) override {
    for (const std::string& name : AuthenticatedNames(*context->auth_context())) {
      response->add_datasets()->set_name(name);
    }
    return grpc::Status::OK;
  }
};

// The names that a server with `tls` sees of a client with `credentials`.
std::vector<std::string> NamesSeen(const TlsOptions& tls,
                                   const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
  absl::StatusOr<std::unique_ptr<TlsFiles>> files = TlsFiles::Open(tls, nullptr);
  EXPECT_THAT(files, IsOk());
  const std::shared_ptr<grpc::ServerCredentials> own = TlsCredentialsOver(*std::move(files));
  NamingService service;
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", own, &port);
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  const auto stub =
      v1::Systole::NewStub(grpc::CreateChannel(absl::StrCat("127.0.0.1:", port), credentials));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kLongestWait);
  v1::ListDatasetsResponse list;
  const grpc::Status status = stub->ListDatasets(&context, {}, &list);
  EXPECT_TRUE(status.ok()) << status.error_message();
  std::vector<std::string> names;
  for (const auto& dataset : list.datasets()) names.push_back(dataset.name());
  return names;
}

TEST_F(TlsServerTest, ACertificateProvesItsAlternativeNames) {
  TlsOptions tls = {.certificate = certificates_ / "server.pem",
                    .key = certificates_ / "server.key",
                    .client_ca = certificates_ / "ca.pem"};
  EXPECT_THAT(NamesSeen(tls, Holding(certificates_, /*identity=*/true)),
              testing::ElementsAre("client"));
  tls.client_ca = "";
  EXPECT_THAT(NamesSeen(tls, Holding(certificates_, /*identity=*/true)), testing::IsEmpty());
}

}  // namespace
}  // namespace systole
