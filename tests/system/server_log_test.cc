// Tests that the log of a server has the expected messages, and that no client can forge a line in
// it.
#include <signal.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "google/protobuf/struct.pb.h"
#include "google/protobuf/util/json_util.h"
#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "systole/v1/service.grpc.pb.h"
#include "tests/core/record/tfrecord/shard_builder.h"
#include "tests/raw_http2.h"
#include "tests/status_matchers.h"
#include "tests/system/served_feed.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ContainsRegex;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::StartsWith;

class ServerLogTest : public testing::Test {
 protected:
  void SetUp() override { folder_.Write("raw.tfrecord", RawShard(0, 64, 784)); }

  std::unique_ptr<ServerProcess> Serve(std::vector<std::string> more = {}) const {
    more.insert(more.end(), {"--dataset", absl::StrCat("raw=", folder_ / "raw.tfrecord")});
    absl::StatusOr<std::unique_ptr<ServerProcess>> server = ServerProcess::Start(more);
    EXPECT_THAT(server, IsOk());
    return server.ok() ? *std::move(server) : nullptr;
  }
  Finished Feed(const ServerProcess& server, const std::string& spec) const {
    return RunSystole({"feed", "--server", server.address(), "--spec",
                       folder_.Write("spec.textproto", spec), "--digest"});
  }
  // Stops the server, so that its log is complete, and returns the log's lines.
  static std::vector<std::string> LinesOf(ServerProcess& server) {
    server.process().Signal(SIGTERM);
    return Lines(server.process().Wait().err);
  }
  // Expects that each line begins with a time and a level, as the lines of the server do.
  static void ExpectOwnLines(const std::vector<std::string>& lines) {
    EXPECT_THAT(lines,
                Each(MatchesRegex("\\[[-0-9]+ [:.0-9]+\\] \\[systole-server\\] \\[[a-z]+\\] .*")));
  }

  const TempFolder folder_;
};

TEST_F(ServerLogTest, StreamsAreLoggedWhenTheyOpenAndEnd) {
  const auto server = Serve();
  ASSERT_NE(server, nullptr);
  ASSERT_EQ(Feed(*server, RawSpec(784, 3)).exit_code, 0);
  const std::vector<std::string> lines = LinesOf(*server);
  ExpectOwnLines(lines);
  EXPECT_THAT(lines, Contains(ContainsRegex("stream 1 of feed [0-9a-f]+ opened: dataset 'raw', "
                                            "cores 0 to 7, .* for ipv4:127.0.0.1:[0-9]+")));
  EXPECT_THAT(lines, Contains(ContainsRegex("stream 1 of feed [0-9a-f]+ ended: [0-9]+ steps in "
                                            "[.0-9]+ s, [.0-9]+/s, [.0-9]+ MB/s: ")));
}

TEST_F(ServerLogTest, LogLevelWarnOmitsInfoLinesAndInvalidLevelsAreRefused) {
  const auto server = Serve({"--log-level", "warn"});
  ASSERT_NE(server, nullptr);
  ASSERT_EQ(Feed(*server, RawSpec(784, 1)).exit_code, 0);
  EXPECT_EQ(LinesOf(*server), std::vector<std::string>());
  const Finished wrong = Process({ServerProgram(), "--log-level", "loud"}).Wait();
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("debug"));
}

TEST_F(ServerLogTest, LineEndsInRefusedSpecsAreEscapedInTheLog) {
  const auto server = Serve();
  ASSERT_NE(server, nullptr);
  const Finished feed =
      Feed(*server, absl::StrReplaceAll(RawSpec(784, 1), {{"\"raw\"", "\"x\\n[error] forged\""}}));
  EXPECT_NE(feed.exit_code, 0);
  const std::vector<std::string> lines = LinesOf(*server);
  ExpectOwnLines(lines);
  EXPECT_THAT(lines,
              Contains(AllOf(HasSubstr("ResolveFeed for ipv4:127.0.0.1:"),
                             HasSubstr("refused: NOT_FOUND: no dataset 'x\\n[error] forged'"))));
}

TEST_F(ServerLogTest, EachMaskedRecordIsLoggedOnce) {
  folder_.Write("raw.tfrecord", WithFlippedBit(RawShard(0, 64, 784), 8 * (5 * 800 + 100)));
  const auto server = Serve();
  ASSERT_NE(server, nullptr);
  ASSERT_EQ(Feed(*server, RawSpec(784, 4) + "on_corrupt: MASK").exit_code, 0);
  int told = 0;
  for (const std::string& line : LinesOf(*server)) {
    if (!absl::StrContains(line, "is masked")) continue;
    ++told;
    EXPECT_THAT(line, AllOf(HasSubstr("[warning]"), HasSubstr("dataset 'raw': record 5 is masked"),
                            HasSubstr("raw.tfrecord"), HasSubstr("CRC of the payload")));
  }
  EXPECT_EQ(told, 1);
}

TEST_F(ServerLogTest, RequestHeadersCannotForgeLogLines) {
  const auto server = Serve({"--log-level", "debug"});
  ASSERT_NE(server, nullptr);
  const std::string forged = "1S\n[2026-01-01 00:00:00.000] [systole-server] [error] forged";
  for (const char* name : {"grpc-timeout", "user-agent", "grpc-encoding", "x-any", "content-type",
                           "grpc-accept-encoding", "te", ":authority"}) {
    RawHttp2 peer((*server).address());
    peer.Request("/systole.v1.Systole/ServerStatus", {{name, forged}});
    peer.Settle();
  }
  RawHttp2((*server).address()).Request("/no\nsuch method", {});
  const std::vector<std::string> lines = LinesOf(*server);
  ExpectOwnLines(lines);
  EXPECT_THAT(lines, Each(Not(StartsWith("[2026-01-01"))));
}

TEST_F(ServerLogTest, ThousandsOfBadRequestsWriteAFewLines) {
  const auto server = Serve({"--log-level", "debug"});
  ASSERT_NE(server, nullptr);
  const auto stub = v1::Systole::NewStub(
      grpc::CreateChannel(server->address(), grpc::InsecureChannelCredentials()));
  for (int i = 0; i < 2000; ++i) {
    grpc::ClientContext context;
    v1::ResolveFeedRequest request;
    request.mutable_spec()->set_dataset(absl::StrCat(std::string(3000, '\n'), i));
    v1::ResolveFeedResponse response;
    EXPECT_EQ(stub->ResolveFeed(&context, request, &response).error_code(),
              grpc::StatusCode::NOT_FOUND);
    if (i % 20 != 0) continue;
    RawHttp2 peer(server->address());
    peer.Request("/systole.v1.Systole/ServerStatus", {{"grpc-timeout", std::string(100, '\n')}});
    peer.Settle();
  }
  server->process().Signal(SIGTERM);
  const std::string log = server->process().Wait().err;
  ExpectOwnLines(Lines(log));
  EXPECT_LT(Lines(log).size(), 200u);
  EXPECT_LT(log.size(), 200'000u);
  EXPECT_THAT(log, ContainsRegex("[0-9]+ more requests refused within"));
}

// The lines that contain all of `parts`.
std::vector<std::string> LinesWith(const std::vector<std::string>& lines,
                                   const std::vector<std::string>& parts) {
  std::vector<std::string> found;
  for (const std::string& line : lines) {
    if (absl::c_all_of(parts,
                       [&](const std::string& part) { return absl::StrContains(line, part); })) {
      found.push_back(line);
    }
  }
  return found;
}

TEST_F(ServerLogTest, JsonLogLinesAreObjectsWithTheirCauseAndContext) {
  folder_.Write("raw.tfrecord", WithFlippedBit(RawShard(0, 64, 784), 8 * (5 * 800 + 100)));
  const auto server = Serve({"--log-format", "json", "--log-level", "debug"});
  ASSERT_NE(server, nullptr);
  ASSERT_EQ(Feed(*server, RawSpec(784, 4) + "on_corrupt: MASK").exit_code, 0);
  ASSERT_NE(
      Feed(*server, absl::StrReplaceAll(RawSpec(784, 1), {{"\"raw\"", "\"x\\n{\""}})).exit_code, 0);
  const std::vector<std::string> lines = LinesOf(*server);
  for (const std::string& line : lines) {
    // A JSON parser must accept the line.
    google::protobuf::Struct object;
    EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(line, &object).ok()) << line;
    for (const char* field : {"time", "level", "cause", "message"}) {
      EXPECT_TRUE(object.fields().contains(field)) << field << " in " << line;
    }
    EXPECT_THAT(line,
                MatchesRegex(R"(\{"time":"[-0-9]+T[:0-9]+\.[0-9]{3}Z","level":"[a-z]+",.*\})"));
  }
  const std::string feed = R"("feed":"[0-9a-f]{16}","client":"ipv4:127.0.0.1:[0-9]+")";
  EXPECT_THAT(LinesWith(lines, {R"("cause":"stream_opened")"}),
              Contains(ContainsRegex(feed + R"(,"dataset":"raw","step":0\})")));
  EXPECT_THAT(LinesWith(lines, {R"("cause":"stream_ended")"}), Contains(ContainsRegex(feed)));
  EXPECT_THAT(LinesWith(lines, {R"("cause":"damage")", "is masked"}),
              ElementsAre(HasSubstr(R"("dataset":"raw","shard":"raw.tfrecord","record":5})")));
  EXPECT_THAT(LinesWith(lines, {R"("cause":"refused")", "ResolveFeed"}),
              Contains(ContainsRegex(R"("client":"ipv4:127.0.0.1:[0-9]+","dataset":"x\\\\n\{")")));
  EXPECT_THAT(LinesWith(lines, {R"("cause":"program")", "drained"}), Not(IsEmpty()));
}

TEST_F(ServerLogTest, AFatalStartErrorIsLoggedAsAJsonObjectToo) {
  const Finished failed = Process({ServerProgram(), "--log-format", "json", "--dataset",
                                   absl::StrCat("raw=", folder_ / "none-*")})
                              .Wait();
  EXPECT_NE(failed.exit_code, 0);
  const std::vector<std::string> lines = Lines(failed.err);
  EXPECT_THAT(lines, Not(IsEmpty()));
  EXPECT_THAT(lines, Each(AllOf(StartsWith(R"({"time":")"), HasSubstr(R"("level":"error")"))));
}

// A server gets SIGHUP when its terminal is closed. A server without a config file then drains.
TEST_F(ServerLogTest, AHangUpDrainsAServerWithoutAConfigFile) {
  const auto server = Serve();
  ASSERT_NE(server, nullptr);
  server->process().Signal(SIGHUP);
  const Finished ended = server->process().Wait();
  EXPECT_EQ(ended.exit_code, 0);
  EXPECT_THAT(ended.err,
              AllOf(HasSubstr("Hangup: draining for at most 10s"), HasSubstr("drained")));
}

TEST_F(ServerLogTest, AFatalErrorIsReportedInExactlyOneLine) {
  const auto server = Serve();
  ASSERT_NE(server, nullptr);
  const Finished second =
      Process({ServerProgram(), "--listen", server->address(), "--dataset",
               absl::StrCat("raw=", folder_ / "raw.tfrecord"), "--log-level", "error"})
          .Wait();
  EXPECT_EQ(second.exit_code, 4);
  ExpectOwnLines(Lines(second.err));
  EXPECT_EQ(Lines(second.err).size(), 1u) << second.err;
  const Finished feed = RunSystole({"feed", "--server", "127.0.0.1:1", "--connect-timeout", "0.5",
                                    "--spec", folder_.Write("s.textproto", RawSpec(784, 1))});
  EXPECT_EQ(feed.exit_code, 4);
  EXPECT_EQ(Lines(feed.err).size(), 1u) << feed.err;
}

TEST_F(ServerLogTest, HelpShowsTheExitCodes) {
  for (const Finished& help :
       {Process({ServerProgram(), "--help"}).Wait(), RunSystole({"--help"})}) {
    EXPECT_EQ(help.exit_code, 0);
    EXPECT_THAT(help.out, HasSubstr("Exit codes: 0 ok, 1 damage found, 2 usage or spec, 3 not "
                                    "found, 4 unavailable, 5 internal."));
  }
}

}  // namespace
}  // namespace systole
