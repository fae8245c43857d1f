#include "client/servers/slot_reader.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/memory/sealed_memory.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/slots/slot_messages.h"
#include "proto/slots/slot_socket.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::Eq;
using ::testing::HasSubstr;

constexpr int64_t kBytes = 5000;
constexpr int kAllSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL;

// Connects a SlotReader to a socket of the test. The test plays the server.
class SlotReaderTest : public testing::Test {
 protected:
  void SetUp() override {
    absl::StatusOr<SlotListener> listener = SlotListener::Listen(folder_ / "s.slots");
    ASSERT_THAT(listener, IsOk());
    absl::StatusOr<std::unique_ptr<SlotReader>> reader = SlotReader::Connect(folder_ / "s.slots");
    ASSERT_THAT(reader, IsOk());
    reader_ = *std::move(reader);
    absl::StatusOr<std::optional<SlotSocket>> accepted = listener->Accept();
    ASSERT_TRUE(accepted.ok() && accepted->has_value());
    server_.emplace(**std::move(accepted));
  }

  std::string Received() {
    absl::StatusOr<std::optional<SlotSocket::Packet>> packet = server_->Receive();
    EXPECT_THAT(packet, IsOk());
    return packet.ok() && packet->has_value() ? (*packet)->message : "nothing";
  }

  // Makes memory that is filled with `byte`, and offers it as slot `slot`.
  SealedMemory Offer(uint64_t slot, uint8_t byte, std::vector<uint64_t> retired = {}) {
    absl::StatusOr<SealedMemory> memory = SealedMemory::Create(kBytes);
    EXPECT_THAT(memory, IsOk());
    std::memset(memory->data(), byte, kBytes);
    EXPECT_THAT(server_->Send(EncodeSlotOffer({slot, kBytes, std::move(retired)}), memory->fd()),
                IsOk());
    return *std::move(memory);
  }

  // How many mappings of slots this process has: those of the reader and those of the test.
  static int MappedSlots() {
    std::ifstream maps("/proc/self/maps");
    int slots = 0;
    for (std::string line; std::getline(maps, line);) {
      if (line.find("systole-slot") != std::string::npos) ++slots;
    }
    return slots;
  }

  absl::Status CopyOut(uint64_t slot) {
    copied_.assign(kBytes, 0);
    return reader_->CopyOut(
        slot, kBytes, [this](const uint8_t* slice) { std::memcpy(copied_.data(), slice, kBytes); });
  }

  const TempFolder folder_;
  std::unique_ptr<SlotReader> reader_;
  std::optional<SlotSocket> server_;
  std::vector<uint8_t> copied_;
};

TEST_F(SlotReaderTest, SendsItsSessionInTheHello) {
  EXPECT_THAT(ParseSlotHello(Received()), IsOkAndHolds(Eq(reader_->session())));
}

TEST_F(SlotReaderTest, CopiesASliceAndGivesTheSlotBack) {
  Received();
  const SealedMemory memory = Offer(9, 17);
  ASSERT_THAT(CopyOut(9), IsOk());
  EXPECT_EQ(copied_, std::vector<uint8_t>(kBytes, 17));
  EXPECT_THAT(ParseSlotReturn(Received()), IsOkAndHolds(9u));
  // The server writes the next slice into the same slot. This needs no new offer.
  std::memset(memory.data(), 18, kBytes);
  EXPECT_EQ(copied_[0], 17);
  ASSERT_THAT(CopyOut(9), IsOk());
  EXPECT_EQ(copied_, std::vector<uint8_t>(kBytes, 18));
}

TEST_F(SlotReaderTest, ARetiredSlotCannotBeReadAndItsNumberCanBeReused) {
  const SealedMemory first = Offer(1, 1);
  ASSERT_THAT(CopyOut(1), IsOk());
  const SealedMemory second = Offer(2, 2, /*retired=*/{1});
  ASSERT_THAT(CopyOut(2), IsOk());
  EXPECT_THAT(CopyOut(1), StatusIs(absl::StatusCode::kInternal, HasSubstr("slot 1")));
  const SealedMemory again = Offer(1, 3);
  ASSERT_THAT(CopyOut(1), IsOk());
  EXPECT_EQ(copied_[0], 3);
}

TEST_F(SlotReaderTest, AServerThatHangsUpAfterTheCopyIsUnavailable) {
  const SealedMemory memory = Offer(1, 1);
  ASSERT_THAT(CopyOut(1), IsOk());
  // Once the server has hung up, it may overwrite the slot. So a later copy is an error.
  server_->Shutdown();
  EXPECT_THAT(CopyOut(1), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("gone")));
}

TEST_F(SlotReaderTest, RetiredSlotsAreUnmappedWithoutANewOffer) {
  SealedMemory kept = Offer(1, 1);
  std::vector<uint64_t> gone;
  for (uint64_t slot = 2; slot < 12; ++slot) {
    Offer(slot, 2);
    gone.push_back(slot);
  }
  ASSERT_THAT(CopyOut(1), IsOk());
  EXPECT_EQ(MappedSlots(), 11 + 1);  // 11 of the reader, and `kept` of the test.
  ASSERT_THAT(server_->Send(EncodeSlotOffer({.retired = gone})), IsOk());
  ASSERT_THAT(CopyOut(1), IsOk());
  EXPECT_EQ(MappedSlots(), 1 + 1);
}

TEST_F(SlotReaderTest, AServerThatStopsReceivingIsResourceExhausted) {
  const SealedMemory memory = Offer(1, 1);
  absl::Status status;
  for (int i = 0; status.ok() && i < 1'000'000; ++i) status = CopyOut(1);
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("cannot send")));
}

TEST_F(SlotReaderTest, RunningOutOfDescriptorsIsResourceExhausted) {
  const SealedMemory memory = Offer(1, 1);
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none = {.rlim_cur = 0, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const absl::Status status = CopyOut(1);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("ulimit -n")));
}

TEST_F(SlotReaderTest, AServerThatVanishesBeforeItsOfferIsUnavailable) {
  server_.reset();
  EXPECT_THAT(CopyOut(1), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("gone")));
}

TEST_F(SlotReaderTest, NobodyListeningIsUnavailable) {
  EXPECT_THAT(SlotReader::Connect(folder_ / "none"),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("none")));
}

// In these tests the server is hostile or broken. The reader must copy nothing, and its error must
// name the field that is wrong.

class BadOfferTest : public SlotReaderTest {
 protected:
  void ExpectRefused(const std::string& what) {
    EXPECT_THAT(CopyOut(1), StatusIs(absl::StatusCode::kInternal, HasSubstr(what)));
    EXPECT_EQ(copied_, std::vector<uint8_t>(kBytes, 0));
  }
  // Offers slot 1 of kBytes bytes, but sends a memory file that has `bytes` bytes and `seals`.
  void OfferFile(int64_t bytes, int seals) {
    const OwnedFd fd(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    ASSERT_EQ(ftruncate(fd.get(), bytes), 0);
    ASSERT_EQ(fcntl(fd.get(), F_ADD_SEALS, seals), 0);
    ASSERT_THAT(server_->Send(EncodeSlotOffer({1, kBytes}), fd.get()), IsOk());
  }
};

TEST_F(BadOfferTest, ASlotNeverOfferedIsRefused) { ExpectRefused("slot 1 was never offered"); }

TEST_F(BadOfferTest, UnsealedMemoryIsRefused) {
  OfferFile(kBytes, 0);
  ExpectRefused("slot 1: seals are 0x0");
}

TEST_F(BadOfferTest, MemoryWithoutAShrinkSealIsRefused) {
  OfferFile(kBytes, kAllSeals & ~F_SEAL_SHRINK);
  ExpectRefused("seals are");
}

TEST_F(BadOfferTest, MemoryShorterThanAnnouncedIsRefused) {
  OfferFile(kBytes - 1, kAllSeals);
  ExpectRefused("size is 4999 bytes, want the announced 5000 bytes");
}

TEST_F(BadOfferTest, AnOfferWithASizeOtherThanTheSlicesIsRefused) {
  for (const int64_t bytes : {kBytes - 1, kBytes + 1, int64_t{1} << 62}) {
    ASSERT_THAT(server_->Send(EncodeSlotOffer({1, bytes}), STDERR_FILENO), IsOk());
    ExpectRefused(absl::StrCat("SlotOffer.bytes is ", bytes, ", want 5000"));
  }
}

TEST_F(BadOfferTest, ReadingASliceLargerThanItsSlotIsRefused) {
  const SealedMemory memory = Offer(1, 1);
  ASSERT_THAT(CopyOut(1), IsOk());
  EXPECT_THAT(reader_->CopyOut(1, kBytes + 1, [](const uint8_t*) { ADD_FAILURE(); }),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("holds 5000 bytes, want 5001")));
}

TEST_F(BadOfferTest, AnOfferWithoutADescriptorIsRefused) {
  ASSERT_THAT(server_->Send(EncodeSlotOffer({1, kBytes})), IsOk());
  ExpectRefused("not a memory file");
}

TEST_F(BadOfferTest, ADescriptorOfASocketIsRefused) {
  ASSERT_THAT(server_->Send(EncodeSlotOffer({1, kBytes}), server_->fd()), IsOk());
  ExpectRefused("not a memory file");
}

TEST_F(BadOfferTest, OfferingTheSameSlotTwiceIsRefused) {
  const SealedMemory a = Offer(1, 1);
  const SealedMemory b = Offer(1, 1);
  ExpectRefused("SlotOffer.slot 1 is offered twice");
}

TEST_F(BadOfferTest, AMalformedOfferIsRefused) {
  ASSERT_THAT(server_->Send("\xff\xff"), IsOk());
  ExpectRefused("not a SlotOffer");
}

TEST_F(BadOfferTest, ADescriptorThatComesWithoutASlotIsRefused) {
  ASSERT_THAT(server_->Send(EncodeSlotOffer({.retired = {7}}), STDERR_FILENO), IsOk());
  ExpectRefused("a descriptor came without a slot");
}

TEST_F(BadOfferTest, AnEndlessFloodOfOffersIsRefusedAndDoesNotBlockTheCall) {
  std::thread flood([this] {
    const std::string retires = EncodeSlotOffer({.retired = {7}});
    while (!absl::IsUnavailable(server_->Send(retires))) {
    }
  });
  EXPECT_THAT(CopyOut(1), StatusIs(absl::StatusCode::kInternal, HasSubstr("refused")));
  reader_.reset();
  flood.join();
}

TEST_F(BadOfferTest, MoreThan4096SlotsAreRefused) {
  const SealedMemory memory = Offer(1, 1);
  ASSERT_THAT(CopyOut(1), IsOk());
  absl::Status status;
  for (uint64_t slot = 2; status.ok() && slot < 10'000; ++slot) {
    ASSERT_THAT(server_->Send(EncodeSlotOffer({slot, kBytes}), memory.fd()), IsOk());
    status = CopyOut(slot);
    while (server_->Receive()->has_value()) {
    }
  }
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInternal,
                               HasSubstr("SlotOffer.slot 4097 is one more than the 4096")));
}

}  // namespace
}  // namespace systole
