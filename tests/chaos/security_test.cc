// Peers that must not be let in, and credentials that change, while feeds run over TLS with tokens.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "gtest/gtest.h"
#include "systole/v1/service.grpc.pb.h"
#include "tests/chaos/chaos_feed.h"
#include "tests/folders.h"
#include "tests/wait_until.h"

namespace systole {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Args = std::vector<std::string>;

constexpr char kEndless[] = "100000000";

void RunShell(const std::string& command) {
  ASSERT_EQ(std::system(("set -e; " + command + " 2>/dev/null").c_str()), 0) << command;
}

class SecurityTest : public ChaosTest {
 protected:
  void SetUp() override {
    ChaosTest::SetUp();
    MakeCertificates("tls");
    // A key, and an expired certificate that the authority in `tls` has signed.
    std::filesystem::create_directory(folder_ / "expired");
    RunShell(absl::StrReplaceAll(
        "cd FOLDER; openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 "
        "-out expired/pair.key; chmod 600 expired/pair.key; "
        "printf 'subjectAltName=DNS:client,DNS:localhost,IP:127.0.0.1' > expired/names; "
        "openssl req -new -key expired/pair.key -subj /CN=expired | "
        "openssl x509 -req -CA tls/ca.pem -CAkey tls/ca.key -days -1 -set_serial 7 "
        "-extfile expired/names -out expired/pair.pem",
        {{"FOLDER", folder_.path()}}));
  }

  // Makes certificates in the subfolder `name` of folder_. The authority in this subfolder signs
  // them. If the subfolder has no authority, makes a new authority there.
  void MakeCertificates(const std::string& name) const {
    RunShell(absl::StrCat(SourceFolder(), "/deploy/make_certificates.sh ", folder_ / name));
  }

  // Adds a server that requires from each client a certificate and the token of "first" or
  // "second".
  void AddSecureServer() {
    for (const char* name : {"first", "second"}) NewToken(name);
    const std::string config = folder_.Write(
        "config.textproto",
        absl::StrCat(
            "access { token_file: '", folder_ / "tokens", "'\n",
            "identities { name: 'first' token_names: 'first' may { read: 'raw' } }\n",
            "identities { name: 'second' token_names: 'second' may { read: 'raw' } } }\n"));
    AddServer({"--config", config, "--tls-certificate", folder_ / "tls/server.pem", "--tls-key",
               folder_ / "tls/server.key", "--tls-client-ca", folder_ / "tls/ca.pem"});
  }
  void NewToken(const std::string& name) {
    const Finished drawn = RunSystole({"token", "--name", name, "--file", folder_ / "tokens"});
    ASSERT_EQ(drawn.exit_code, 0) << drawn.err;
    const std::string path = folder_.Write(name + ".token", drawn.out);
    std::filesystem::permissions(path, std::filesystem::perms::owner_read);
  }

  // The flags of a client that has all credentials.
  Args Credentials(const std::string& token, const std::string& authority = "tls") const {
    return {"--tls",
            "--tls-ca",
            folder_ / authority + "/ca.pem",
            "--tls-certificate",
            folder_ / "tls/client.pem",
            "--tls-key",
            folder_ / "tls/client.key",
            "--token-file",
            folder_ / token + ".token"};
  }
  // `args`, in which the value after `flag` is replaced by `value`.
  static Args With(Args args, const std::string& flag, const std::string& value) {
    *(std::find(args.begin(), args.end(), flag) + 1) = value;
    return args;
  }

  // Expects that a feed with these flags fails and prints nothing to stdout.
  void ExpectShutOut(const std::string& servers, const Args& more) {
    Args args = {"feed", "--server",          servers, "--spec", spec_path_, "--digest", "--steps",
                 "3",    "--connect-timeout", "1"};
    args.insert(args.end(), more.begin(), more.end());
    const Finished finished = RunSystole(args);
    EXPECT_NE(finished.exit_code, 0) << testing::PrintToString(more);
    EXPECT_EQ(finished.out, "");
    EXPECT_NE(finished.err, "");
  }
};

TEST_F(SecurityTest, StrangersAreShutOutAndDoNotDisturbARunningFeed) {
  AddSecureServer();
  proxy(0).Set({.bytes_per_second = 40 << 20});
  MakeCertificates("others");
  folder_.Write("wrong.token", "systole-token-that-nobody-drew\n");
  std::filesystem::permissions(folder_ / "wrong.token", std::filesystem::perms::owner_read);
  // A token of the same name, made for another server.
  const Finished foreign =
      RunSystole({"token", "--name", "first", "--file", folder_ / "other_tokens"});
  folder_.Write("foreign.token", foreign.out);
  std::filesystem::permissions(folder_ / "foreign.token", std::filesystem::perms::owner_read);
  const Args good = Credentials("first");
  const std::vector<Args> strangers = {
      {},                                             // Plain text.
      {"--tls", "--tls-ca", folder_ / "tls/ca.pem"},  // No client certificate.
      Args(good.begin(), good.end() - 2),             // No token.
      With(good, "--token-file", folder_ / "wrong.token"),
      With(good, "--token-file", folder_ / "foreign.token"),
      // A certificate of an authority that the server does not know.
      With(With(good, "--tls-certificate", folder_ / "others/client.pem"), "--tls-key",
           folder_ / "others/client.key"),
      // The server's certificate is of an authority that the client does not know.
      Credentials("first", "others"),
      With(With(good, "--tls-certificate", folder_ / "expired/pair.pem"), "--tls-key",
           folder_ / "expired/pair.key"),
  };
  const auto feed = StartFeed(Times(100, 800), good);
  for (int i = 0; i < Times(8, 24); ++i) {
    SCOPED_TRACE(i);
    // First each stranger is tried once. After that each try takes a random stranger.
    const size_t which =
        static_cast<size_t>(i) < strangers.size() ? static_cast<size_t>(i) : Draw(strangers.size());
    ExpectShutOut(address(0), strangers[which]);
  }
  ExpectUndisturbed(*feed, Times(100, 800));
  // The server logged no secret.
  const std::string secret = Lines(ReadWholeFile(folder_ / "first.token"))[0];
  EXPECT_THAT(server(0).err(), Not(HasSubstr(secret)));
}

TEST_F(SecurityTest, ClientsRefuseServersWithoutTlsOrWithAnExpiredCertificate) {
  // The server speaks plain text, but the client wants TLS.
  AddServer();
  ExpectShutOut(address(0), {"--tls", "--tls-ca", folder_ / "tls/ca.pem"});
  // The server's certificate has expired. Our own server would not start with it.
  grpc::ServerBuilder builder;
  grpc::SslServerCredentialsOptions options;
  options.pem_key_cert_pairs.push_back({.private_key = ReadWholeFile(folder_ / "expired/pair.key"),
                                        .cert_chain = ReadWholeFile(folder_ / "expired/pair.pem")});
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::SslServerCredentials(options), &port);
  v1::Systole::Service unimplemented;
  builder.RegisterService(&unimplemented);
  const std::unique_ptr<grpc::Server> expired = builder.BuildAndStart();
  ASSERT_NE(expired, nullptr);
  ExpectShutOut(absl::StrCat("127.0.0.1:", port), {"--tls", "--tls-ca", folder_ / "tls/ca.pem"});
  expired->Shutdown();
  // A client has the server in plain text and a trusted server in its list. The trusted server
  // serves the feed.
  AddSecureServer();
  const auto feed = StartFeed(20, Credentials("first"));
  ExpectUndisturbed(*feed, 20);
}

TEST_F(SecurityTest, RemovingATokenEndsItsFeedButNotTheFeedOfAnotherToken) {
  AddSecureServer();
  proxy(0).Set({.bytes_per_second = 40 << 20});
  const int steps = Times(100, 400);
  const auto goes_on = StartFeed(steps, Credentials("second"));
  Args args = {SystoleProgram(), "feed",    "--server", Servers(), "--spec",
               spec_path_,       "--steps", kEndless,   "--digest"};
  const Args good = Credentials("first");
  args.insert(args.end(), good.begin(), good.end());
  Process ends(args, {.stdout_pipe_bytes = 4096});
  for (uint64_t lines = 1 + Draw(200); lines > 0; --lines) ASSERT_NE(ends.ReadLine(), "");
  std::string kept;
  for (const std::string& line : Lines(ReadWholeFile(folder_ / "tokens"))) {
    if (line.find("first") == std::string::npos) absl::StrAppend(&kept, line, "\n");
  }
  const std::string draft = folder_.Write("tokens.draft", kept);
  std::filesystem::permissions(
      draft, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  std::filesystem::rename(draft, folder_ / "tokens");
  const Finished finished = ends.Wait();
  EXPECT_NE(finished.exit_code, 0);
  EXPECT_THAT(finished.err, HasSubstr("this server does not know the token, or it has expired"));
  ExpectUndisturbed(*goes_on, steps);
  // When the server has read a new token of "first" from the file, "first" is let in again.
  NewToken("first");
  Args asks = {"datasets", "--server", address(0)};
  asks.insert(asks.end(), good.begin(), good.end());
  ASSERT_TRUE(WaitUntil([&] { return RunSystole(asks).exit_code == 0; }));
  const auto again = StartFeed(5, good);
  ExpectUndisturbed(*again, 5);
}

TEST_F(SecurityTest, ServerCertificatesCanBeReplacedWithoutDisturbingAFeed) {
  AddSecureServer();
  proxy(0).Set({.bytes_per_second = 40 << 20});
  const int steps = Times(100, 500);
  // The feed connects before the server's authority is replaced, and runs to the end of the test.
  std::string printed;
  const auto feed = FeedInMidStream(steps, printed, Credentials("first"));
  // Each time, the certificate is of a new authority. A client that trusts only this authority
  // succeeds only if the server shows the new certificate.
  for (int replaced = 0; replaced < Times(3, 20); ++replaced) {
    const std::string next = absl::StrCat("tls-", replaced);
    MakeCertificates(next);
    for (const char* file : {"server.key", "server.pem"}) {
      std::filesystem::rename(absl::StrCat(folder_ / next, "/", file),
                              absl::StrCat(folder_ / "tls/", file));
    }
    Args args = {"feed", "--server",         address(0),          "--spec", spec_path_, "--steps",
                 "2",    "--digest=example", "--connect-timeout", "300"};
    const Args good = Credentials("second", next);
    args.insert(args.end(), good.begin(), good.end());
    const Finished other = RunSystole(args);
    EXPECT_EQ(other.exit_code, 0) << other.err;
    ExpectUndisturbed(other.out, 2);
    if (HasFailure()) break;
    // An invalid certificate changes nothing.
    if (Draw(2) == 0) {
      std::filesystem::copy_file(folder_ / "expired/pair.pem", folder_ / "tls/server.pem",
                                 std::filesystem::copy_options::overwrite_existing);
      EXPECT_EQ(RunSystole(args).exit_code, 0);
    }
  }
  EXPECT_TRUE(feed->IsRunning());
  ExpectUndisturbed(*feed, steps, printed);
  EXPECT_EQ(proxy(0).connections(), 1);  // The feed never lost its connection.
}

}  // namespace
}  // namespace systole
