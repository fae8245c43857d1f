#include "server/slots/slot_server.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/concurrency/bounded_queue.h"
#include "core/memory/sealed_memory.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/slots/slot_messages.h"
#include "proto/slots/slot_socket.h"
#include "systole/v1/slots.pb.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/status_matchers.h"
#include "tests/wait_until.h"

namespace systole {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int64_t kBytes = 5000;

std::string Id(char c) { return std::string(kSlotSessionBytes, c); }

std::shared_ptr<const SealedMemory> Memory() {
  absl::StatusOr<SealedMemory> memory = SealedMemory::Create(kBytes);
  EXPECT_THAT(memory, IsOk());
  return std::make_shared<const SealedMemory>(*std::move(memory));
}

class SlotServerTest : public testing::Test {
 protected:
  void SetUp() override { Restart({}); }

  void Restart(const SlotServerOptions& options) {
    server_ = nullptr;
    absl::StatusOr<std::unique_ptr<SlotServer>> server = SlotServer::Listen(path(), options);
    ASSERT_THAT(server, IsOk());
    server_ = *std::move(server);
  }

  std::string path() const { return folder_ / "s.slots"; }

  SlotSocket Connect() const {
    absl::StatusOr<SlotSocket> socket = SlotSocket::Connect(path());
    EXPECT_THAT(socket, IsOk());
    return *std::move(socket);
  }
  SlotSocket ConnectAs(const std::string& session) const {
    SlotSocket socket = Connect();
    EXPECT_THAT(socket.Send(EncodeSlotHello(session)), IsOk());
    return socket;
  }
  std::shared_ptr<SlotSession> Claim(absl::string_view session) const {
    return server_->Claim(session).session;
  }
  // Why the server does not give `session` to a stream.
  v1::NotShared RefusalOf(absl::string_view session) const {
    const StreamSlots slots = server_->Claim(session);
    EXPECT_EQ(slots.session, nullptr);
    return slots.not_shared;
  }
  // The next offer that the client receives. REQUIRES: the server has already sent it.
  static SlotOffer OfferTo(const SlotSocket& client) {
    const auto packet = client.Receive();
    EXPECT_TRUE(packet.ok() && packet->has_value());
    EXPECT_TRUE((*packet)->passed.ok());
    EXPECT_THAT(SealedView::Map((*packet)->passed.get(), kBytes), IsOk());
    absl::StatusOr<SlotOffer> offer = ParseSlotOffer((*packet)->message);
    EXPECT_THAT(offer, IsOk());
    return *std::move(offer);
  }
  // Waits until the poller's thread has handled what the client did, and has dropped `owner`.
  static void WaitUntilDropped(const std::weak_ptr<const void>& owner) {
    EXPECT_TRUE(WaitUntil([&] { return owner.expired(); }));
  }
  // Takes the client's offers until the server has hung up on the client.
  static void WaitForHangUp(const SlotSocket& client) {
    EXPECT_TRUE(WaitUntil([&] { return !client.Receive().ok(); }));
  }

  const TempFolder folder_;
  std::unique_ptr<SlotServer> server_;
};

TEST(MaxSlotsForTest, SlotsAreAQuarterOfTheDescriptorsUpToAMaximum) {
  EXPECT_EQ(MaxSlotsFor(0), 0);
  EXPECT_EQ(MaxSlotsFor(1024), 256);
  EXPECT_EQ(MaxSlotsFor(1 << 20), 3072);
  EXPECT_EQ(MaxSlotsFor(std::numeric_limits<uint64_t>::max()), 3072);  // RLIM_INFINITY.
  EXPECT_LT(MaxSlotsFor(1 << 20), kMaxMappedSlots);
}

TEST_F(SlotServerTest, ClaimFindsSessionsOfClientsThatSaidHello) {
  const SlotSocket a = ConnectAs(Id('a'));
  const SlotSocket b = ConnectAs(Id('b'));
  EXPECT_NE(Claim(Id('b')), nullptr);
  EXPECT_NE(Claim(Id('a')), nullptr);
}

TEST_F(SlotServerTest, UnknownAndAlreadyClaimedSessionsAreRefused) {
  const SlotSocket client = ConnectAs(Id('a'));
  EXPECT_EQ(RefusalOf(Id('b')), v1::SESSION_UNKNOWN);
  EXPECT_EQ(RefusalOf(""), v1::SESSION_UNKNOWN);
  const auto session = Claim(Id('a'));
  EXPECT_NE(session, nullptr);
  EXPECT_EQ(Claim(Id('a')), nullptr);
  EXPECT_EQ(server_->sessions(), 1);
}

TEST_F(SlotServerTest, AConnectionWithoutAHelloMatchesNoSession) {
  const SlotSocket silent = Connect();
  EXPECT_EQ(Claim(""), nullptr);
  EXPECT_EQ(Claim(Id('\0')), nullptr);
  // The client that was silent may still say hello.
  EXPECT_THAT(silent.Send(EncodeSlotHello(Id('a'))), IsOk());
  EXPECT_NE(Claim(Id('a')), nullptr);
}

TEST_F(SlotServerTest, ClientsThatBreakTheProtocolBeforeAStreamAreDropped) {
  const SlotSocket garbage = Connect();
  EXPECT_THAT(garbage.Send("\xff"), IsOk());
  const SlotSocket twice = ConnectAs(Id('a'));
  EXPECT_THAT(twice.Send(EncodeSlotHello(Id('b'))), IsOk());
  const SlotSocket with_descriptor = Connect();
  EXPECT_THAT(with_descriptor.Send(EncodeSlotHello(Id('c')), STDERR_FILENO), IsOk());
  Claim(Id('x'));
  EXPECT_EQ(Claim(Id('a')), nullptr);  // Reads the second message of `twice`.
  EXPECT_EQ(Claim(Id('b')), nullptr);
  EXPECT_EQ(Claim(Id('c')), nullptr);
  for (const SlotSocket* client : {&garbage, &with_descriptor}) {
    EXPECT_THAT(client->Receive(), StatusIs(absl::StatusCode::kUnavailable, testing::_));
  }
}

TEST_F(SlotServerTest, SessionsOverTheLimitAreRefused) {
  Restart({.max_sessions = 1});
  const SlotSocket a = ConnectAs(Id('a'));
  const SlotSocket b = ConnectAs(Id('b'));
  auto first = Claim(Id('a'));
  EXPECT_NE(first, nullptr);
  EXPECT_EQ(RefusalOf(Id('b')), v1::NO_SESSION_LEFT);
  WaitForHangUp(b);
}

TEST_F(SlotServerTest, WithoutFreeDescriptorsAClaimFailsAndSucceedsLater) {
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  // The limit leaves one free descriptor. The socket of the client takes it, and the server finds
  // none.
  const int left = dup(STDIN_FILENO);
  ASSERT_GE(left, 0);
  close(left);
  const rlimit one = {.rlim_cur = static_cast<rlim_t>(left) + 1, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &one), 0);
  const SlotSocket client = ConnectAs(Id('a'));
  const v1::NotShared refusal = RefusalOf(Id('a'));
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(refusal, v1::NO_DESCRIPTOR_LEFT);
  EXPECT_NE(Claim(Id('a')), nullptr);
}

TEST_F(SlotServerTest, AFloodOfConnectionsDoesNotKeepOthersOut) {
  std::vector<SlotSocket> flood;
  for (int round = 0; round < 4; ++round) {
    for (int i = 0; i < 100; ++i) flood.push_back(Connect());
    Claim(Id('x'));
  }
  const SlotSocket client = ConnectAs(Id('a'));
  EXPECT_NE(Claim(Id('a')), nullptr);
}

TEST_F(SlotServerTest, ClosedConnectionsWithoutAHelloKeepNoClientOut) {
  // The socket's queue holds fewer than 1,000 connections, and Connect() fails while the queue is
  // full. None of these clients asks for a stream.
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(WaitUntil([&] { return SlotSocket::Connect(path()).ok(); })) << i;
  }
  const SlotSocket client = ConnectAs(Id('a'));
  EXPECT_NE(Claim(Id('a')), nullptr);
}

TEST_F(SlotServerTest, MemoryIsOfferedOnceAndLentAgainAfterItsReturn) {
  const SlotSocket client = ConnectAs(Id('a'));
  const auto session = Claim(Id('a'));
  ASSERT_NE(session, nullptr);
  const auto memory = Memory();
  auto owner = std::make_shared<int>();
  std::weak_ptr<const void> held = owner;
  ASSERT_EQ(session->Lend(memory, std::move(owner)), v1::NO_REASON);
  EXPECT_EQ(server_->lent_bytes(), kBytes);
  EXPECT_EQ(OfferTo(client).slot, memory->id());
  EXPECT_FALSE(held.expired());
  ASSERT_THAT(client.Send(EncodeSlotReturn(memory->id())), IsOk());
  WaitUntilDropped(held);
  EXPECT_EQ(server_->lent_bytes(), 0);
  ASSERT_EQ(session->Lend(memory, nullptr), v1::NO_REASON);
  // The server has already offered this memory to the client, so no new offer comes.
  EXPECT_THAT(client.Receive(), IsOkAndHolds(testing::Eq(std::nullopt)));
}

TEST_F(SlotServerTest, MemoryThatThePoolFreedIsRetiredWithTheNextOffer) {
  const SlotSocket client = ConnectAs(Id('a'));
  const auto session = Claim(Id('a'));
  ASSERT_NE(session, nullptr);
  auto gone = Memory();
  const uint64_t gone_id = gone->id();
  auto owner = std::make_shared<int>();
  std::weak_ptr<const void> held = owner;
  ASSERT_EQ(session->Lend(gone, std::move(owner)), v1::NO_REASON);
  EXPECT_THAT(OfferTo(client).retired, IsEmpty());
  ASSERT_THAT(client.Send(EncodeSlotReturn(gone_id)), IsOk());
  WaitUntilDropped(held);
  gone = nullptr;
  ASSERT_EQ(session->Lend(Memory(), nullptr), v1::NO_REASON);
  EXPECT_THAT(OfferTo(client).retired, ElementsAre(gone_id));
  ASSERT_EQ(session->Lend(Memory(), nullptr), v1::NO_REASON);
  // This offer retires only the memory of the previous offer, and not `gone` again.
  EXPECT_THAT(OfferTo(client).retired, testing::SizeIs(1));
}

TEST_F(SlotServerTest, MemoryThatThePoolFreedIsRetiredEvenWithoutANewOffer) {
  const SlotSocket client = ConnectAs(Id('a'));
  const auto session = Claim(Id('a'));
  ASSERT_NE(session, nullptr);
  const auto stays = Memory();
  auto gone = Memory();
  const uint64_t gone_id = gone->id();
  for (const auto& memory : {stays, gone}) {
    auto owner = std::make_shared<int>();
    const std::weak_ptr<const void> held = owner;
    ASSERT_EQ(session->Lend(memory, std::move(owner)), v1::NO_REASON);
    OfferTo(client);
    ASSERT_THAT(client.Send(EncodeSlotReturn(memory->id())), IsOk());
    WaitUntilDropped(held);
  }
  gone = nullptr;
  ASSERT_EQ(session->Lend(stays, nullptr), v1::NO_REASON);
  const auto packet = client.Receive();
  ASSERT_TRUE(packet.ok() && packet->has_value());
  EXPECT_FALSE((*packet)->passed.ok());
  EXPECT_THAT(ParseSlotOffer((*packet)->message),
              IsOkAndHolds(testing::Eq(SlotOffer{.retired = {gone_id}})));
  EXPECT_THAT(client.Receive(), IsOkAndHolds(testing::Eq(std::nullopt)));
}

TEST_F(SlotServerTest, AllLentMemoryIsReleasedWhenAClientDisconnects) {
  std::optional<SlotSocket> client(ConnectAs(Id('a')));
  const auto session = Claim(Id('a'));
  ASSERT_NE(session, nullptr);
  std::vector<std::weak_ptr<const void>> held;
  for (int i = 0; i < 3; ++i) {
    auto owner = std::make_shared<int>();
    held.push_back(owner);
    ASSERT_EQ(session->Lend(Memory(), std::move(owner)), v1::NO_REASON);
  }
  EXPECT_EQ(server_->lent_bytes(), 3 * kBytes);
  client.reset();
  for (const auto& each : held) WaitUntilDropped(each);
  EXPECT_TRUE(WaitUntil([&] { return server_->lent_bytes() == 0; }));
  EXPECT_EQ(session->Lend(Memory(), nullptr), v1::SESSION_OVER);
}

TEST_F(SlotServerTest, AClientsStallTimeCountsFromItsLastReturnedSlot) {
  std::atomic<int64_t> seconds = 0;
  Restart({.clock = [&seconds] { return absl::Seconds(seconds.load()); }});
  const SlotSocket client = ConnectAs(Id('a'));
  const auto session = Claim(Id('a'));
  ASSERT_NE(session, nullptr);
  seconds = 1000;
  EXPECT_EQ(session->stalled(), absl::ZeroDuration());  // The client holds no slot.
  const auto first = Memory();
  auto first_owner = std::make_shared<int>();
  const std::weak_ptr<const void> first_held = first_owner;
  ASSERT_EQ(session->Lend(first, std::move(first_owner)), v1::NO_REASON);
  seconds = 1050;
  auto owner = std::make_shared<int>();
  const std::weak_ptr<const void> held = owner;
  ASSERT_EQ(session->Lend(Memory(), std::move(owner)), v1::NO_REASON);
  EXPECT_EQ(session->stalled(), absl::Seconds(50));  // More slots do not restart the time.
  seconds = 1100;
  ASSERT_THAT(client.Send(EncodeSlotReturn(first->id())), IsOk());
  WaitUntilDropped(first_held);
  seconds = 1219;
  server_->HangUpOnStalled(absl::Seconds(120));
  EXPECT_EQ(session->stalled(), absl::Seconds(119));
  EXPECT_FALSE(held.expired());
  seconds = 1220;
  server_->HangUpOnStalled(absl::Seconds(120));
  EXPECT_TRUE(held.expired());
  EXPECT_EQ(server_->lent_bytes(), 0);
  EXPECT_EQ(session->stalled(), absl::InfiniteDuration());
  EXPECT_EQ(session->Lend(Memory(), nullptr), v1::SESSION_OVER);
  WaitForHangUp(client);
  server_ = nullptr;  // Ends the server before the clock that it uses.
}

TEST_F(SlotServerTest, AClientThatKeepsSlotsAfterItsStreamsEndLosesThem) {
  std::atomic<int64_t> seconds = 0;
  Restart({.clock = [&seconds] { return absl::Seconds(seconds.load()); }});
  const SlotSocket client = ConnectAs(Id('a'));
  auto session = Claim(Id('a'));
  ASSERT_NE(session, nullptr);
  ASSERT_EQ(session->Lend(Memory(), nullptr), v1::NO_REASON);
  session = nullptr;  // The stream ends.
  EXPECT_EQ(server_->lent_bytes(), kBytes);
  seconds = 120;
  server_->HangUpOnStalled(absl::Seconds(120));
  WaitForHangUp(client);
  EXPECT_TRUE(WaitUntil([&] { return server_->sessions() == 0; }));
  EXPECT_EQ(server_->lent_bytes(), 0);
  server_ = nullptr;  // Ends the server before the clock that it uses.
}

TEST_F(SlotServerTest, ClientsTogetherHoldNoMoreThanTheLimit) {
  Restart({.max_lent_bytes = 3 * kBytes});
  std::optional<SlotSocket> hoarder(ConnectAs(Id('a')));
  const SlotSocket other = ConnectAs(Id('b'));
  const auto a = Claim(Id('a'));
  const auto b = Claim(Id('b'));
  ASSERT_TRUE(a != nullptr && b != nullptr);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(a->Lend(Memory(), nullptr), v1::NO_REASON);
  EXPECT_EQ(a->Lend(Memory(), nullptr), v1::NO_BUDGET_LEFT);
  EXPECT_EQ(b->Lend(Memory(), nullptr), v1::NO_BUDGET_LEFT);
  EXPECT_EQ(server_->lent_bytes(), 3 * kBytes);
  hoarder.reset();
  EXPECT_TRUE(WaitUntil([&] { return server_->lent_bytes() == 0; }));
  EXPECT_EQ(b->Lend(Memory(), nullptr), v1::NO_REASON);
}

TEST_F(SlotServerTest, LendingToAClientThatReadsNoOffersFailsWithoutWaiting) {
  Restart({.max_lent_bytes = int64_t{1} << 40});
  const SlotSocket client = ConnectAs(Id('a'));
  const auto session = Claim(Id('a'));
  ASSERT_NE(session, nullptr);
  std::vector<std::shared_ptr<const SealedMemory>> memory;
  v1::NotShared not_shared = v1::NO_REASON;
  while (not_shared == v1::NO_REASON && memory.size() < 10'000) {
    memory.push_back(Memory());
    not_shared = session->Lend(memory.back(), nullptr);
  }
  EXPECT_EQ(not_shared, v1::CONNECTION_FULL);
  EXPECT_GT(memory.size(), 50u);  // Many offers fit into the connection.
  EXPECT_EQ(server_->lent_bytes(), static_cast<int64_t>(memory.size() - 1) * kBytes);
}

// Returns an owner that calls `drop` when its last reference is gone.
std::shared_ptr<const void> Owner(std::function<void()> drop) {
  static const int kSomething = 0;
  return std::shared_ptr<const void>(&kSomething,
                                     [drop = std::move(drop)](const void*) { drop(); });
}

TEST_F(SlotServerTest, AFloodOfReturnsDoesNotDelayAnotherClientsReturn) {
  constexpr int kFlood = 50;
  const SlotSocket flooder = ConnectAs(Id('a'));
  const SlotSocket other = ConnectAs(Id('b'));
  const auto a = Claim(Id('a'));
  const auto b = Claim(Id('b'));
  ASSERT_TRUE(a != nullptr && b != nullptr);
  BoundedQueue<std::string> heard(kFlood + 2);
  BoundedQueue<int> go_on(1);
  std::vector<std::shared_ptr<const SealedMemory>> memory;
  for (int i = 0; i <= kFlood; ++i) {
    memory.push_back(Memory());
    // When the server's thread reads the first return, it drops the owner of `memory[0]`. This
    // owner's function makes the thread wait until the clients have sent all other returns.
    ASSERT_EQ(a->Lend(memory.back(), Owner([&heard, &go_on, i] {
                        EXPECT_THAT(heard.Push(i == 0 ? "first" : "flood"), IsOk());
                        if (i == 0) go_on.Pop().status().IgnoreError();
                      })),
              v1::NO_REASON);
    OfferTo(flooder);
  }
  const auto others = Memory();
  ASSERT_EQ(b->Lend(others, Owner([&heard] { EXPECT_THAT(heard.Push("other"), IsOk()); })),
            v1::NO_REASON);
  ASSERT_THAT(flooder.Send(EncodeSlotReturn(memory[0]->id())), IsOk());
  EXPECT_THAT(heard.Pop(), IsOkAndHolds(testing::Optional(std::string("first"))));
  for (int i = 1; i <= kFlood; ++i) {
    ASSERT_THAT(flooder.Send(EncodeSlotReturn(memory[i]->id())), IsOk());
  }
  ASSERT_THAT(other.Send(EncodeSlotReturn(others->id())), IsOk());
  ASSERT_THAT(go_on.Push(0), IsOk());
  std::vector<std::string> order;
  for (int i = 0; i <= kFlood; ++i) {
    const absl::StatusOr<std::optional<std::string>> next = heard.Pop();
    ASSERT_TRUE(next.ok() && next->has_value());
    order.push_back(**next);
  }
  // Clients are served in turns. Otherwise "other" would come last, after the whole flood.
  const auto place = std::find(order.begin(), order.end(), "other") - order.begin();
  EXPECT_LE(place, 2) << "of " << kFlood;
}

// ---- Clients that give back wrong slots ----
//
// The server hangs up on a client that gives back a wrong slot, and takes back the memory that it
// lent to the client.

class BadReturnTest : public SlotServerTest {
 protected:
  void SetUp() override {
    SlotServerTest::SetUp();
    client_.emplace(ConnectAs(Id('a')));
    session_ = Claim(Id('a'));
    ASSERT_NE(session_, nullptr);
    auto owner = std::make_shared<int>();
    held_ = owner;
    ASSERT_EQ(session_->Lend(memory_, std::move(owner)), v1::NO_REASON);
  }
  void ExpectHungUp(int64_t still_lent = 0) {
    WaitForHangUp(*client_);
    WaitUntilDropped(held_);
    EXPECT_EQ(session_->Lend(Memory(), nullptr), v1::SESSION_OVER);
    EXPECT_TRUE(WaitUntil([&] { return server_->lent_bytes() == still_lent; }));
  }

  const std::shared_ptr<const SealedMemory> memory_ = Memory();
  std::optional<SlotSocket> client_;
  std::shared_ptr<SlotSession> session_;
  std::weak_ptr<const void> held_;
};

TEST_F(BadReturnTest, ReturningASlotTwiceEndsTheSession) {
  ASSERT_THAT(client_->Send(EncodeSlotReturn(memory_->id())), IsOk());
  ASSERT_THAT(client_->Send(EncodeSlotReturn(memory_->id())), IsOk());
  ExpectHungUp();
}

TEST_F(BadReturnTest, ReturningAnotherClientsSlotEndsOnlyTheSendersSession) {
  const SlotSocket other = ConnectAs(Id('b'));
  const auto session = Claim(Id('b'));
  ASSERT_NE(session, nullptr);
  const auto memory = Memory();
  auto owner = std::make_shared<int>();
  const std::weak_ptr<const void> held = owner;
  ASSERT_EQ(session->Lend(memory, std::move(owner)), v1::NO_REASON);
  ASSERT_THAT(client_->Send(EncodeSlotReturn(memory->id())), IsOk());
  ExpectHungUp(/*still_lent=*/kBytes);
  EXPECT_FALSE(held.expired());  // The other client keeps its slot.
  EXPECT_EQ(session->Lend(Memory(), nullptr), v1::NO_REASON);
}

TEST_F(BadReturnTest, ReturningAnUnknownSlotEndsTheSession) {
  ASSERT_THAT(client_->Send(EncodeSlotReturn(uint64_t{1} << 60)), IsOk());
  ExpectHungUp();
}

TEST_F(BadReturnTest, ReturningSlotZeroEndsTheSession) {
  ASSERT_THAT(client_->Send(EncodeSlotReturn(0)), IsOk());
  ExpectHungUp();
}

TEST_F(BadReturnTest, AReturnThatCannotBeParsedEndsTheSession) {
  ASSERT_THAT(client_->Send("\xff\xff\xff"), IsOk());
  ExpectHungUp();
}

TEST_F(BadReturnTest, AReturnWithADescriptorEndsTheSession) {
  ASSERT_THAT(client_->Send(EncodeSlotReturn(memory_->id()), STDERR_FILENO), IsOk());
  ExpectHungUp();
}

TEST_F(BadReturnTest, AFloodOfHellosEndsTheSession) {
  for (int i = 0; i < 1000; ++i) {
    if (!client_->Send(EncodeSlotHello(Id('z'))).ok()) break;
  }
  ExpectHungUp();
}

}  // namespace
}  // namespace systole
