// Servers send what nobody has asked for. The tests check how much memory the client's process
// takes.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "grpcpp/security/server_credentials.h"
#include "gtest/gtest.h"
#include "tests/client/feed/fake_server.h"
#include "tests/client/feed/flooding_server.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/folders.h"
#include "tests/sanitizers.h"
#include "tests/system/served_feed.h"

namespace systole {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kMiB = int64_t{1} << 20;
// The bound (client/servers/README.md) is the sum of:
//   * the bytes that nobody asked for
//   * the bytes that a server may send ahead on a stream, and twice as many while gRPC reads them
//   * the bytes that come between one count of the client and its next count
//   * the memory of the program itself
// Without the client's limits, the program would use several times as much memory.
constexpr int64_t kMostBytes = (kAddressSanitizer ? 768 : 192) * kMiB;
constexpr int64_t kFloodBytes = 1024 * kMiB;
constexpr char kCutOff[] = "16 MiB more than was asked for";

class SystemHostileServerTest : public testing::Test {
 protected:
  Finished Feed(const std::string& address, std::vector<std::string> more = {}) const {
    std::vector<std::string> args = {"feed", "--server",         address,  "--spec",
                                     spec_,  "--steps",          "3",      "--connect-timeout",
                                     "300",  "--prefetch-bytes", "1048576"};
    args.insert(args.end(), more.begin(), more.end());
    return RunSystole(args);
  }

  const TempFolder folder_;
  const std::string spec_ = folder_.Write("spec.textproto", SpecOf(FakeFeed()).DebugString());
};

TEST_F(SystemHostileServerTest, FloodsOfFramesTakeLittleMemory) {
  for (const AnswerFlood& flood : AllAnswerFloods()) {
    SCOPED_TRACE(flood.name);
    const FloodingServer server(flood, kFloodBytes, /*floods=*/1000);
    const Finished status =
        RunSystole({"status", "--server", server.address(), "--connect-timeout", "300"});
    EXPECT_NE(status.exit_code, 0);
    EXPECT_LT(status.peak_bytes, kMostBytes);
  }
}

TEST_F(SystemHostileServerTest, AFeedFloodedAgainAndAgainEndsAndTakesLittleMemory) {
  const FloodingServer server(AllAnswerFloods().front(), kFloodBytes, /*floods=*/1000);
  const Finished feed = Feed(server.address());
  EXPECT_THAT(feed.err, HasSubstr(kCutOff));
  EXPECT_LT(feed.peak_bytes, kMostBytes);
}

TEST_F(SystemHostileServerTest, AGiantMessageIsCutOffOnTheWay) {
  const GiantServer server(kFloodBytes, {});
  const Finished feed = Feed(server.address());
  EXPECT_THAT(feed.err, HasSubstr(kCutOff));
  EXPECT_LT(feed.peak_bytes, kMostBytes);
}

TEST_F(SystemHostileServerTest, AGiantMessageIsCutOffOnTheWayOverTls) {
  const std::string tls = folder_ / "tls";
  const std::string command =
      absl::StrCat(SourceFolder(), "/deploy/make_certificates.sh ", tls, " 2>/dev/null");
  ASSERT_EQ(std::system(command.c_str()), 0);
  const auto pem = [&tls](const char* name) { return ReadWholeFile(absl::StrCat(tls, "/", name)); };
  grpc::SslServerCredentialsOptions certificate;
  certificate.pem_key_cert_pairs.push_back({pem("server.key"), pem("server.pem")});
  const GiantServer server(kFloodBytes, {.credentials = grpc::SslServerCredentials(certificate)});
  const Finished feed = Feed(server.address(), {"--tls", "--tls-ca", absl::StrCat(tls, "/ca.pem")});
  EXPECT_THAT(feed.err, HasSubstr(kCutOff));
  EXPECT_LT(feed.peak_bytes, kMostBytes);
}

TEST_F(SystemHostileServerTest, ACompressedMessageIsNotInflated) {
  const GiantServer server(kFloodBytes, {.compressed = true});
  const Finished feed = Feed(server.address());
  EXPECT_THAT(feed.err, HasSubstr("Compression algorithm 'gzip' is disabled"));
  EXPECT_LT(feed.peak_bytes, kMostBytes);
}

TEST_F(SystemHostileServerTest, AGiantChunkOfAFeedThatHasBegunIsCutOffOnTheWay) {
  const FakeServer server({.spoil =
                               [](int, int, FakeChunk& piece) {
                                 if (piece.header.step == 1) piece.data.resize(256 * kMiB);
                               },
                           .paced = true});
  const Finished feed = Feed(server.address());
  EXPECT_THAT(feed.err, HasSubstr(kCutOff));
  EXPECT_LT(feed.peak_bytes, kMostBytes);
}

}  // namespace
}  // namespace systole
