// A FeedClient whose server shares memory wrongly. The feed must go on with a stream that sends the
// bytes instead.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/feed/feed_client.h"
#include "core/memory/sealed_memory.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/slots/not_shared.h"
#include "proto/slots/slot_messages.h"
#include "proto/slots/slot_socket.h"
#include "tests/client/feed/drained_feed.h"
#include "tests/client/feed/fake_server.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

// A server on a Unix socket. Beside it is a slot socket, on which the test itself plays the server.
class FeedClientSlotsTest : public testing::Test {
 protected:
  FeedClientSlotsTest() {
    absl::StatusOr<SlotListener> listener = SlotListener::Listen(folder_ / "s.slots");
    EXPECT_THAT(listener, IsOk());
    listener_.emplace(*std::move(listener));
  }

  // A feed whose first stream changes its fourth chunk, which is the first of core 1. The changed
  // chunk says that the slice of core 1 is in slot 1. Before that, `offer` may send messages on the
  // slot socket.
  FakeFeed FeedWith(std::function<void(const SlotSocket&)> offer) {
    FakeFeed feed;
    feed.chunk_bytes = 1 << 20;
    feed.spoil = [this, offer = std::move(offer)](int stream, int chunk, FakeChunk& piece) {
      if (stream != 0 || chunk != 3) return;
      absl::StatusOr<std::optional<SlotSocket>> accepted = listener_->Accept();
      ASSERT_TRUE(accepted.ok() && accepted->has_value());
      connection_.emplace(**std::move(accepted));
      offer(*connection_);
      piece.header.slot = 1;
      piece.header.slot_bytes = SliceBytes();
      piece.header.crc32c = 0;
      piece.data.clear();
    };
    return feed;
  }

  // `label` has 3 x 4 x 8 bytes, `valid` 4 and `x` 400, each on a 64-byte boundary.
  static int64_t SliceBytes() { return 128 + 64 + 448; }

  std::string address() const { return "unix:" + (folder_ / "s"); }

  // Expects that the whole feed arrives, that the second stream asks for no shared memory, and that
  // none was used.
  void ExpectAllAsBytes(const FakeFeed& feed) {
    const FakeServer server(feed, address());
    const auto client = MustCreate(feed, Quick({server.address()}));
    ASSERT_NE(client, nullptr);
    EXPECT_EQ(client->layout().slice_bytes(), SliceBytes());
    ExpectAllSteps(Drain(*client), 0, 20);
    ASSERT_EQ(server.requests().size(), 2u);
    EXPECT_THAT(server.requests()[0].slot_session(), Not(IsEmpty()));
    EXPECT_THAT(server.requests()[1].slot_session(), IsEmpty());
    EXPECT_EQ(client->stats().streams_lost, 1);
    EXPECT_EQ(client->stats().shared_payload_bytes, 0);
    // The first chunks came by the stream, because no slot was offered yet.
    EXPECT_EQ(client->stats().not_shared,
              absl::StrCat(NotSharedText(v1::NO_REASON), " [server ", address(), "]"));
  }

  const TempFolder folder_;
  std::optional<SlotListener> listener_;
  std::optional<SlotSocket> connection_;
};

TEST_F(FeedClientSlotsTest, MemoryWithoutSealsIsRefusedAndTheFeedGoesOnAsBytes) {
  ExpectAllAsBytes(FeedWith([](const SlotSocket& socket) {
    const OwnedFd fd(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    ASSERT_EQ(ftruncate(fd.get(), SliceBytes()), 0);
    ASSERT_THAT(socket.Send(EncodeSlotOffer({1, SliceBytes()}), fd.get()), IsOk());
  }));
}

TEST_F(FeedClientSlotsTest, ASlotThatWasNeverOfferedIsRefusedAndTheFeedGoesOnAsBytes) {
  ExpectAllAsBytes(FeedWith([](const SlotSocket&) {}));
}

TEST_F(FeedClientSlotsTest, SharedMemoryIsRetriedAfterTheServerClosesTheSlotSocket) {
  // A server that is replaced hangs up in this way. The server after it may share memory properly.
  const FakeFeed feed = FeedWith([](const SlotSocket& socket) { socket.Shutdown(); });
  const FakeServer server(feed, address());
  const auto client = MustCreate(feed, Quick({server.address()}));
  ASSERT_NE(client, nullptr);
  ExpectAllSteps(Drain(*client), 0, 20);
  ASSERT_EQ(server.requests().size(), 2u);
  EXPECT_THAT(server.requests()[1].slot_session(), Not(IsEmpty()));
  EXPECT_NE(server.requests()[0].slot_session(), server.requests()[1].slot_session());
}

TEST_F(FeedClientSlotsTest, OneStepMayArrivePartlyInASlotAndPartlyInChunks) {
  const FakeFeed feed = FeedWith([](const SlotSocket& socket) {
    absl::StatusOr<SealedMemory> memory = SealedMemory::Create(SliceBytes());
    ASSERT_THAT(memory, IsOk());
    int64_t at = 0;
    const int64_t kTensorBytes[] = {96, 4, 400};
    for (int tensor = 0; tensor < 3; ++tensor) {
      for (int64_t i = 0; i < kTensorBytes[tensor]; ++i) {
        memory->data()[at + i] = FakeByte(/*step=*/0, /*core=*/1, tensor, i);
      }
      at += (kTensorBytes[tensor] + 63) / 64 * 64;
    }
    ASSERT_THAT(socket.Send(EncodeSlotOffer({1, SliceBytes()}), memory->fd()), IsOk());
  });
  // The slice is in the slot, but FakeServer would send its bytes as chunks, too. So the first
  // stream leaves these chunks out.
  FakeFeed stopping = feed;
  stopping.spoil = [spoil = feed.spoil](int stream, int chunk, FakeChunk& piece) {
    spoil(stream, chunk, piece);
    if (stream == 0 && (chunk == 4 || chunk == 5)) piece.skip = true;
  };
  const FakeServer server(stopping, address());
  const auto client = MustCreate(stopping, Quick({server.address()}));
  ASSERT_NE(client, nullptr);
  ExpectAllSteps(Drain(*client), 0, 20);
  EXPECT_EQ(server.requests().size(), 1u);
  EXPECT_EQ(client->stats().shared_payload_bytes, 500);
  EXPECT_EQ(client->stats().payload_bytes, 20 * 2 * 500);
}

TEST_F(FeedClientSlotsTest, NoSharedMemoryIsRequestedIfShareMemoryIsOff) {
  const FakeFeed feed;
  const FakeServer server(feed, address());
  FeedClientOptions options = Quick({server.address()});
  options.share_memory = false;
  const auto client = MustCreate(feed, options);
  ASSERT_NE(client, nullptr);
  ExpectAllSteps(Drain(*client), 0, 20);
  EXPECT_THAT(server.requests()[0].slot_session(), IsEmpty());
  EXPECT_THAT(listener_->Accept(), IsOkAndHolds(testing::Eq(std::nullopt)));
}

TEST_F(FeedClientSlotsTest, AServerThatDoesNotShareIsAskedForBytes) {
  listener_.reset();
  const FakeFeed feed;
  const FakeServer server(feed, address());
  const auto client = MustCreate(feed, Quick({server.address()}));
  ASSERT_NE(client, nullptr);
  ExpectAllSteps(Drain(*client), 0, 20);
  EXPECT_THAT(server.requests()[0].slot_session(), IsEmpty());
  EXPECT_THAT(client->stats().not_shared, StartsWith("no server shares memory at '"));
}

TEST_F(FeedClientSlotsTest, StatsReportTheServersFirstReasonForNotSharing) {
  FakeFeed feed;
  feed.spoil = [](int, int chunk, FakeChunk& piece) {
    if (chunk == 0) piece.header.not_shared = v1::NO_SLOT_LEFT;
    if (chunk == 3) piece.header.not_shared = v1::NO_BUDGET_LEFT;  // The first reason stays.
  };
  const FakeServer server(feed, address());
  const auto client = MustCreate(feed, Quick({server.address()}));
  ASSERT_NE(client, nullptr);
  ExpectAllSteps(Drain(*client), 0, 20);
  EXPECT_THAT(client->stats().not_shared, StartsWith(NotSharedText(v1::NO_SLOT_LEFT)));
}

TEST_F(FeedClientSlotsTest, StatsSayToShortenATooLongUnixSocketPath) {
  const std::string folder = folder_ / std::string(102 - (folder_ / "").size(), 'x');
  const FakeFeed feed;
  const FakeServer server(feed, "unix:" + folder);
  const auto client = MustCreate(feed, Quick({"unix:" + folder}));
  ASSERT_NE(client, nullptr);
  ExpectAllSteps(Drain(*client), 0, 20);
  EXPECT_THAT(client->stats().not_shared, HasSubstr("choose a shorter --listen unix:PATH"));
}

TEST_F(FeedClientSlotsTest, OverTcpNoReasonForNotSharingIsReported) {
  const FakeFeed feed;
  const FakeServer server(feed);
  const auto client = MustCreate(feed, Quick({server.address()}));
  ASSERT_NE(client, nullptr);
  ExpectAllSteps(Drain(*client), 0, 20);
  EXPECT_EQ(client->stats().not_shared, "");
}

TEST_F(FeedClientSlotsTest, ASlotThatNobodyAskedForEndsTheFeedAndNamesTheServer) {
  FakeFeed feed;
  feed.spoil = [](int, int chunk, FakeChunk& piece) {
    if (chunk != 0) return;
    piece.header.slot = 1;
    piece.header.slot_bytes = SliceBytes();
    piece.data.clear();
  };
  const FakeServer server(feed);  // The server listens on TCP.
  const auto client = MustCreate(feed, Quick({server.address()}));
  ASSERT_NE(client, nullptr);
  EXPECT_THAT(Drain(*client).end,
              StatusIs(absl::StatusCode::kInternal, HasSubstr(server.address())));
}

}  // namespace
}  // namespace systole
