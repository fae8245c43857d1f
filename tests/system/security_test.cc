// Tests TLS, certificates and tokens with the real programs: who gets a feed, who does not, and
// with which message.
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/folders.h"
#include "tests/status_matchers.h"
#include "tests/system/served_feed.h"

namespace systole {
namespace {

using ::testing::HasSubstr;

constexpr int kRecordBytes = 16 << 10;
constexpr int kSteps = 10;

class SecurityTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_.Write("raw-0.tfrecord", RawShard(0, 64, kRecordBytes));
    spec_ = folder_.Write("spec.textproto", RawSpec(kRecordBytes, /*epochs=*/0));
  }

  static void MakeCertificates(const std::string& folder) {
    const std::string command =
        absl::StrCat(SourceFolder(), "/deploy/make_certificates.sh ", folder, " 2>/dev/null");
    ASSERT_EQ(std::system(command.c_str()), 0);
  }

  std::string CertificatePath(const std::string& name) const { return folder_ / "tls/" + name; }

  absl::StatusOr<std::unique_ptr<ServerProcess>> Serve(std::vector<std::string> args = {}) {
    args.insert(args.end(), {"--dataset", absl::StrCat("raw=", folder_ / "raw-*.tfrecord")});
    return ServerProcess::Start(args);
  }
  absl::StatusOr<std::unique_ptr<ServerProcess>> ServeTls(bool verify_clients,
                                                          std::vector<std::string> args = {}) {
    MakeCertificates(folder_ / "tls");
    args.insert(args.end(), {"--tls-certificate", CertificatePath("server.pem"), "--tls-key",
                             CertificatePath("server.key")});
    if (verify_clients) args.insert(args.end(), {"--tls-client-ca", CertificatePath("ca.pem")});
    return Serve(args);
  }
  // The flags with which a client shows its certificate to the server of ServeTls(true).
  std::vector<std::string> ShowsItsCertificate() const {
    return {"--tls",
            "--tls-ca",
            CertificatePath("ca.pem"),
            "--tls-certificate",
            CertificatePath("client.pem"),
            "--tls-key",
            CertificatePath("client.key")};
  }
  // Writes a config file with the dataset and `more`.
  std::string WriteConfig(const std::string& more) const {
    return folder_.Write("config.textproto",
                         absl::StrCat("datasets { name: 'raw' shards: '",
                                      folder_ / "raw-*.tfrecord", "' }\n", more));
  }
  // Starts a server on which the identity "trainer" may read the dataset. The server's token file
  // is `tokens_`.
  absl::StatusOr<std::unique_ptr<ServerProcess>> ServeToTokens() {
    tokens_ = folder_ / "tokens";
    NewToken("trainer");
    return ServerProcess::Start(
        {"--config",
         WriteConfig(absl::StrCat("access {\n  token_file: '", tokens_,
                                  "'\n  identities { name: 'trainer' token_names: 'trainer' "
                                  "may { read: 'raw' status: true } }\n}\n"))});
  }
  // Makes a token of `name` that the server accepts. Returns the path of a file with the token.
  std::string NewToken(const std::string& name) {
    const Finished drawn = RunSystole({"token", "--name", name, "--file", tokens_});
    EXPECT_EQ(drawn.exit_code, 0) << drawn.err;
    const std::string path = folder_.Write(name + ".token", drawn.out);
    EXPECT_EQ(std::system(("chmod 600 " + path).c_str()), 0);
    return path;
  }

  Finished Feed(const ServerProcess& server, const std::vector<std::string>& more,
                const ProcessOptions& options = {}, const std::string& connect_timeout = "300",
                int steps = kSteps) const {
    std::vector<std::string> args = {
        "feed",    "--server",          server.address(),    "--spec",       spec_, "--digest",
        "--steps", absl::StrCat(steps), "--connect-timeout", connect_timeout};
    args.insert(args.end(), more.begin(), more.end());
    return RunSystole(args, options);
  }
  // Runs a feed that fails at the handshake, and retries for three seconds.
  Finished VainFeed(const ServerProcess& server, const std::vector<std::string>& more) const {
    return Feed(server, more, {}, /*connect_timeout=*/"3");
  }
  std::string PlainDigest(int steps = kSteps) {
    const absl::StatusOr<std::unique_ptr<ServerProcess>> server = Serve();
    EXPECT_THAT(server, IsOk());
    return server.ok() ? Feed(**server, {}, {}, /*connect_timeout=*/"300", steps).out : "";
  }

  const TempFolder folder_;
  std::string spec_;
  std::string tokens_;
};

TEST_F(SecurityTest, AFeedOverTlsEqualsTheFeedInPlainText) {
  const auto server = ServeTls(/*verify_clients=*/false);
  ASSERT_THAT(server, IsOk());
  const Finished finished = Feed(**server, {"--tls", "--tls-ca", CertificatePath("ca.pem")});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_EQ(finished.out, PlainDigest());
  // Other commands connect in the same way.
  for (const char* command : {"datasets", "status"}) {
    const Finished asked = RunSystole({command, "--server", (*server)->address(), "--tls",
                                       "--tls-ca", CertificatePath("ca.pem")});
    EXPECT_EQ(asked.exit_code, 0) << asked.err;
    EXPECT_THAT(asked.out, HasSubstr("raw"));
  }
}

TEST_F(SecurityTest, AClientRefusesAServersUntrustedOrMisnamedCertificate) {
  const auto server = ServeTls(/*verify_clients=*/false);
  ASSERT_THAT(server, IsOk());
  MakeCertificates(folder_ / "others");
  for (const std::vector<std::string>& trusts :
       {std::vector<std::string>{"--tls"},  // Trusts only what the system trusts.
        std::vector<std::string>{"--tls", "--tls-ca", folder_ / "others/ca.pem"},
        std::vector<std::string>{"--tls", "--tls-ca", CertificatePath("ca.pem"),
                                 "--tls-server-name", "elsewhere.example.com"}}) {
    const Finished finished = VainFeed(**server, trusts);
    EXPECT_NE(finished.exit_code, 0);
    EXPECT_EQ(finished.out, "");
    EXPECT_THAT(finished.err, HasSubstr((*server)->address()));
  }
}

TEST_F(SecurityTest, AClientWithoutTheRequiredCertificateIsNotServed) {
  const auto server = ServeTls(/*verify_clients=*/true);
  ASSERT_THAT(server, IsOk());
  const std::vector<std::string> trusts = {"--tls", "--tls-ca", CertificatePath("ca.pem")};
  EXPECT_NE(VainFeed(**server, trusts).exit_code, 0);
  const Finished finished = Feed(**server, ShowsItsCertificate());
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_EQ(finished.out, PlainDigest());
}

TEST_F(SecurityTest, TheConfigFileSetsTheTlsFilesAndFlagsOverrideThem) {
  MakeCertificates(folder_ / "tls");
  const std::string tls = absl::StrCat("certificate: '", CertificatePath("server.pem"), "' key: '",
                                       CertificatePath("server.key"), "'");
  const std::string config =
      WriteConfig(absl::StrCat("tls { ", tls, " client_ca: '", CertificatePath("ca.pem"), "' }\n"));
  const auto server = ServerProcess::Start({"--config", config});
  ASSERT_THAT(server, IsOk());
  const Finished finished = Feed(**server, ShowsItsCertificate());
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_NE(VainFeed(**server, {"--tls", "--tls-ca", CertificatePath("ca.pem")}).exit_code, 0);
  EXPECT_NE(VainFeed(**server, {}).exit_code, 0);

  // A flag replaces one setting of the config file. The other TLS settings of the file stay.
  EXPECT_THAT(
      ServerProcess::Start({"--config", config, "--tls-key", CertificatePath("ca.pem")}).status(),
      StatusIs(absl::StatusCode::kUnavailable, HasSubstr("ca.pem")));
  EXPECT_THAT(ServerProcess::Start({"--config", WriteConfig("tls {}")}).status(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("`tls` in the config file")));
}

TEST_F(SecurityTest, OnlyTls12AndTls13AreSpoken) {
  const auto server = ServeTls(/*verify_clients=*/false);
  ASSERT_THAT(server, IsOk());
  // With SECLEVEL=0 openssl(1) itself would speak the old versions. So if the handshake fails, the
  // server has refused the version.
  const auto shakes_hands = [&](const std::string& version) {
    return std::system(absl::StrCat("openssl s_client -connect ", (*server)->address(), " -",
                                    version, " -alpn h2 -cipher DEFAULT@SECLEVEL=0 -CAfile ",
                                    CertificatePath("ca.pem"),
                                    " -verify_return_error </dev/null >/dev/null 2>&1")
                           .c_str()) == 0;
  };
  EXPECT_TRUE(shakes_hands("tls1_3"));
  EXPECT_TRUE(shakes_hands("tls1_2"));
  EXPECT_FALSE(shakes_hands("tls1_1"));
  EXPECT_FALSE(shakes_hands("tls1"));
}

TEST_F(SecurityTest, AFeedContinuesAfterTheCaAndAllCertificatesAreReplaced) {
  auto server = ServeTls(/*verify_clients=*/true);
  ASSERT_THAT(server, IsOk());
  const std::string address = (*server)->address();
  std::vector<std::string> args = {
      SystoleProgram(), "feed", "--server", address, "--spec", spec_, "--digest", "--steps", "400"};
  for (const std::string& word : ShowsItsCertificate()) args.push_back(word);
  Process feed(args, {.stdout_pipe_bytes = 4096});
  const std::string line = feed.ReadLine();
  ASSERT_NE(line, "");
  MakeCertificates(folder_ / "others");
  server->reset();
  ASSERT_EQ(std::system(absl::StrCat("rm -r ", folder_ / "tls", " && mv ", folder_ / "others", " ",
                                     folder_ / "tls")
                            .c_str()),
            0);
  server = ServeTls(/*verify_clients=*/true, {"--listen", address});
  ASSERT_THAT(server, IsOk());
  const Finished finished = feed.Wait();
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_EQ(line + finished.out, PlainDigest(400));
}

TEST_F(SecurityTest, NeitherSideFallsBackToPlainText) {
  const auto tls = ServeTls(/*verify_clients=*/false);
  ASSERT_THAT(tls, IsOk());
  EXPECT_NE(VainFeed(**tls, {}).exit_code, 0);
  const auto plain = Serve();
  ASSERT_THAT(plain, IsOk());
  const Finished finished = VainFeed(**plain, {"--tls", "--tls-ca", CertificatePath("ca.pem")});
  EXPECT_NE(finished.exit_code, 0);
  EXPECT_EQ(finished.out, "");
  const Finished asked =
      RunSystole({"datasets", "--server", (*plain)->address(), "--tls", "--connect-timeout", "5"});
  EXPECT_NE(asked.exit_code, 0);
  EXPECT_THAT(asked.err, HasSubstr("certificate"));
}

TEST_F(SecurityTest, AStreamContinuesWhenTheServersCertificateIsReplaced) {
  const auto server = ServeTls(/*verify_clients=*/false);
  ASSERT_THAT(server, IsOk());
  std::vector<std::string> args = {SystoleProgram(),
                                   "feed",
                                   "--server",
                                   (*server)->address(),
                                   "--spec",
                                   spec_,
                                   "--digest",
                                   "--steps",
                                   "400",
                                   "--tls",
                                   "--tls-ca",
                                   CertificatePath("ca.pem")};
  Process feed(args, {.stdout_pipe_bytes = 4096});
  const std::string line = feed.ReadLine();
  ASSERT_NE(line, "");
  // Another authority signed the new certificate. The feed does not trust this authority, so it
  // could not connect again.
  MakeCertificates(folder_ / "others");
  for (const std::string name : {"server.key", "server.pem"}) {
    folder_.Write("tls/" + name, ReadWholeFile(folder_ / "others/" + name));
  }
  const Finished other = Feed(**server, {"--tls", "--tls-ca", folder_ / "others/ca.pem"});
  EXPECT_EQ(other.exit_code, 0) << other.err;
  EXPECT_NE(VainFeed(**server, {"--tls", "--tls-ca", CertificatePath("ca.pem")}).exit_code, 0);
  const Finished finished = feed.Wait();
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_EQ(line + finished.out, PlainDigest(400));
}

TEST_F(SecurityTest, AFeedNeedsATokenFromAFileOrTheEnvironment) {
  const auto server = ServeToTokens();
  ASSERT_THAT(server, IsOk());
  const Finished without = Feed(**server, {});
  EXPECT_NE(without.exit_code, 0);
  EXPECT_THAT(without.err, HasSubstr("--token-file"));
  const std::string token = folder_ / "trainer.token";
  const Finished with = Feed(**server, {"--token-file", token});
  EXPECT_EQ(with.exit_code, 0) << with.err;
  EXPECT_EQ(with.out, PlainDigest());
  EXPECT_EQ(
      Feed(**server, {}, {.environment = {absl::StrCat("SYSTOLE_TOKEN_FILE=", token)}}).exit_code,
      0);
  std::string secret = ReadWholeFile(token);
  secret = secret.substr(0, secret.find('\n'));
  EXPECT_EQ(Feed(**server, {}, {.environment = {absl::StrCat("SYSTOLE_TOKEN=", secret)}}).exit_code,
            0);
  // Neither program logged the secret.
  EXPECT_EQ((*server)->process().err().find(secret), std::string::npos);
  EXPECT_EQ(with.err.find(secret), std::string::npos);
}

TEST_F(SecurityTest, RevokingATokenEndsItsRunningFeed) {
  const auto server = ServeToTokens();
  ASSERT_THAT(server, IsOk());
  Process feed({SystoleProgram(), "feed", "--server", (*server)->address(), "--spec", spec_,
                "--digest", "--steps", "100000000", "--token-file", folder_ / "trainer.token"},
               {.stdout_pipe_bytes = 4096});
  ASSERT_NE(feed.ReadLine(), "");
  NewToken("somebody");
  // The lines of the token file, except the trainer's line.
  std::string kept;
  for (const std::string& line : Lines(ReadWholeFile(tokens_))) {
    if (line.find("trainer") == std::string::npos) kept += line + "\n";
  }
  const std::string draft = folder_.Write("draft", kept);
  ASSERT_EQ(std::system(absl::StrCat("chmod 600 ", draft, " && mv ", draft, " ", tokens_).c_str()),
            0);
  const Finished finished = feed.Wait();
  EXPECT_NE(finished.exit_code, 0);
  EXPECT_THAT(finished.err, HasSubstr("this server does not know the token, or it has expired"));
}

TEST_F(SecurityTest, TokensThatCouldLeakAndInvalidTlsFlagsAreRefused) {
  tokens_ = folder_ / "tokens";
  const std::string token = NewToken("trainer");
  const auto run = [&](const std::vector<std::string>& more) {
    std::vector<std::string> args = {"feed", "--spec", spec_, "--steps", "1"};
    args.insert(args.end(), more.begin(), more.end());
    return RunSystole(args);
  };
  // A token must not go to another machine in plain text. No server answers at this address, so the
  // refusal comes from the client.
  Finished finished = run({"--server", "192.0.2.1:8470", "--token-file", token});
  EXPECT_NE(finished.exit_code, 0);
  EXPECT_THAT(finished.err, HasSubstr("in plain text"));
  // From now on, other users of the machine can read the token file.
  ASSERT_EQ(std::system(("chmod 644 " + token).c_str()), 0);
  finished = run({"--server", "127.0.0.1:1", "--token-file", token});
  EXPECT_NE(finished.exit_code, 0);
  EXPECT_THAT(finished.err, HasSubstr("chmod 600"));
  // TLS flags are refused if one is missing, or if a file cannot be used.
  finished = run({"--server", "127.0.0.1:1", "--tls-ca", token});
  EXPECT_THAT(finished.err, HasSubstr("add --tls"));
  finished = run({"--server", "127.0.0.1:1", "--tls", "--tls-key", token});
  EXPECT_THAT(finished.err, HasSubstr("go together"));
  finished = run({"--server", "127.0.0.1:1", "--tls", "--tls-ca", spec_});
  EXPECT_THAT(finished.err, HasSubstr("is not a PEM file"));
  finished = run({"--server", "127.0.0.1:1", "--tls", "--tls-ca", folder_ / "none.pem"});
  EXPECT_THAT(finished.err, HasSubstr("none.pem"));
  finished = run({"--server", "dns:///localhost:1,127.0.0.1:1", "--tls"});
  EXPECT_THAT(finished.err, HasSubstr("--tls-server-name"));
}

}  // namespace
}  // namespace systole
