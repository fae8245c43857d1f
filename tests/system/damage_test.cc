// One bit is flipped in one record of one shard. `verify` names the record. A feed with
// `on_corrupt: FAIL` ends. A feed with `on_corrupt: MASK` goes on: the record's place is empty and
// everything else is unchanged.
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "systole/v1/service.grpc.pb.h"
#include "tests/core/record/tfrecord/shard_builder.h"
#include "tests/status_matchers.h"
#include "tests/system/served_feed.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int kRecords = 64;
constexpr int kVictim = 23;         // A record in the middle.
constexpr int kPayloadBytes = 300;  // Of every record.
constexpr int kFrameBytes = 12 + kPayloadBytes + 4;
constexpr int kVictimOffset = kVictim * kFrameBytes;

struct Flip {
  const char* name;
  int byte;  // The byte's offset in the victim's frame.
};

class DamageTest : public testing::TestWithParam<Flip> {
 protected:
  void SetUp() override {
    const std::string whole = RawShard(0, kRecords, kPayloadBytes);
    good_ = folder_.Write("good.tfrecord", whole);
    bad_ = folder_.Write("bad.tfrecord",
                         WithFlippedBit(whole, 8 * (kVictimOffset + GetParam().byte) + 2));
  }

  absl::StatusOr<std::unique_ptr<ServerProcess>> Serve(const std::string& shard) const {
    return ServerProcess::Start({"--dataset", absl::StrCat("raw=", shard)});
  }

  Finished Feed(const std::string& server, const std::string& extra) const {
    return RunSystole({"feed", "--server", server, "--spec",
                       folder_.Write("spec.textproto", RawSpec(kPayloadBytes, 1) + extra),
                       "--digest=example"});
  }

  const TempFolder folder_;
  std::string good_;
  std::string bad_;
};

TEST_P(DamageTest, VerifyNamesTheDamagedRecord) {
  EXPECT_EQ(RunSystole({"verify", "--framing-only", good_}).exit_code, 0);
  const Finished verify = RunSystole({"verify", "--framing-only", bad_});
  EXPECT_EQ(verify.exit_code, 1);
  EXPECT_THAT(verify.out,
              AllOf(HasSubstr("bad.tfrecord"), HasSubstr(absl::StrCat("record ", kVictim, " ")),
                    HasSubstr(absl::StrCat("offset ", kVictimOffset, ":"))));
  EXPECT_THAT(verify.out, HasSubstr(absl::StrCat(kRecords, " records")));
}

TEST_P(DamageTest, AFeedWithOnCorruptFailEndsAndNamesTheDamagedRecord) {
  const auto server = Serve(bad_);
  ASSERT_THAT(server, IsOk());
  const Finished feed = Feed((*server)->address(), "on_corrupt: FAIL");
  EXPECT_EQ(feed.exit_code, 1) << feed.err;
  EXPECT_THAT(feed.err,
              AllOf(HasSubstr("bad.tfrecord"), HasSubstr(absl::StrCat("record ", kVictim)),
                    HasSubstr(absl::StrCat(kVictimOffset))));
  // The error has only a base name, so clients learn nothing of the server's folders.
  EXPECT_EQ(feed.err.find(folder_.path()), std::string::npos);
}

TEST_P(DamageTest, AFeedWithOnCorruptMaskChangesTheVictimsExampleAndReportsIt) {
  const auto digests_of = [this](const std::string& shard) {
    const auto server = Serve(shard);
    EXPECT_THAT(server, IsOk());
    if (!server.ok()) return std::vector<std::string>();
    return Lines(Feed((*server)->address(), "on_corrupt: MASK").out);
  };
  const std::vector<std::string> intact = digests_of(good_);
  // With another record in the victim's place, the feed differs where the victim is.
  const std::vector<std::string> other = digests_of(folder_.Write(
      "other.tfrecord", RawShard(0, kVictim, kPayloadBytes) + RawShard(kRecords, 1, kPayloadBytes) +
                            RawShard(kVictim + 1, kRecords - kVictim - 1, kPayloadBytes)));
  const auto server = Serve(bad_);
  ASSERT_THAT(server, IsOk());
  const Finished feed = Feed((*server)->address(), "on_corrupt: MASK");
  EXPECT_EQ(feed.exit_code, 0) << feed.err;
  const std::vector<std::string> masked = Lines(feed.out);
  ASSERT_EQ(intact.size(), size_t{kRecords});
  ASSERT_EQ(masked.size(), size_t{kRecords});
  ASSERT_EQ(other.size(), size_t{kRecords});
  int changed = 0;
  for (int i = 0; i < kRecords; ++i) {
    EXPECT_EQ(intact[i] != masked[i], intact[i] != other[i]) << i;
    changed += intact[i] != masked[i] ? 1 : 0;
  }
  EXPECT_EQ(changed, 1);

  const auto stub = v1::Systole::NewStub(
      grpc::CreateChannel((*server)->address(), grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  v1::ServerStatusResponse status;
  ASSERT_TRUE(stub->ServerStatus(&context, {}, &status).ok());
  ASSERT_EQ(status.datasets_size(), 1);
  EXPECT_EQ(status.datasets(0).masked_examples(), 1);
  ASSERT_EQ(status.datasets(0).damaged_records_size(), 1);
  EXPECT_EQ(status.datasets(0).damaged_records(0).shard(), "bad.tfrecord");
  EXPECT_EQ(status.datasets(0).damaged_records(0).record(), kVictim);
  EXPECT_EQ(status.datasets(0).damaged_records(0).offset(), kVictimOffset);
}

INSTANTIATE_TEST_SUITE_P(Bits, DamageTest,
                         testing::Values(Flip{"Length", 0}, Flip{"LengthCrc", 9},
                                         Flip{"Payload", 12 + 150},
                                         Flip{"PayloadCrc", 12 + kPayloadBytes + 1}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace systole
