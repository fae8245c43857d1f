#include "proto/slots/slot_messages.h"

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "systole/v1/slots.pb.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::Eq;
using ::testing::HasSubstr;

auto Refused(const std::string& what) {
  return StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(what));
}

TEST(SlotMessagesTest, NewSessionsHaveSixteenBytesAndDiffer) {
  const absl::StatusOr<std::string> a = NewSlotSession();
  const absl::StatusOr<std::string> b = NewSlotSession();
  ASSERT_THAT(a, IsOk());
  ASSERT_THAT(b, IsOk());
  EXPECT_EQ(a->size(), 16u);
  EXPECT_NE(*a, *b);
}

TEST(SlotMessagesTest, MessagesSurviveEncodingAndParsing) {
  const std::string session("0123456789abcde", 16);  // The last byte is 0.
  EXPECT_THAT(ParseSlotHello(EncodeSlotHello(session)), IsOkAndHolds(Eq(session)));
  constexpr uint64_t kLast = std::numeric_limits<uint64_t>::max();
  for (const uint64_t slot : {uint64_t{1}, kLast}) {
    EXPECT_THAT(ParseSlotReturn(EncodeSlotReturn(slot)), IsOkAndHolds(slot));
    const SlotOffer offer = {.slot = slot, .bytes = int64_t{1} << 40, .retired = {1, kLast}};
    EXPECT_THAT(ParseSlotOffer(EncodeSlotOffer(offer)), IsOkAndHolds(Eq(offer)));
  }
}

TEST(SlotMessagesTest, AnOfferMayRetireSlotsWithoutOfferingOne) {
  const SlotOffer offer = {.retired = {3, 1}};
  EXPECT_THAT(ParseSlotOffer(EncodeSlotOffer(offer)), IsOkAndHolds(Eq(offer)));
}

TEST(SlotMessagesTest, TheLongestOfferFitsAPacket) {
  const SlotOffer offer = {
      .slot = std::numeric_limits<uint64_t>::max(),
      .bytes = std::numeric_limits<int64_t>::max(),
      .retired = std::vector<uint64_t>(kMaxRetiredInOffer, std::numeric_limits<uint64_t>::max())};
  EXPECT_LE(EncodeSlotOffer(offer).size(), static_cast<size_t>(kMaxSlotMessageBytes));
}

TEST(SlotMessagesTest, AHelloOfAnotherVersionIsRefused) {
  v1::SlotHello hello;
  hello.set_version(2);
  hello.set_session(std::string(16, 'x'));
  EXPECT_THAT(ParseSlotHello(hello.SerializeAsString()), Refused("SlotHello.version is 2, want 1"));
}

TEST(SlotMessagesTest, ASessionOfTheWrongLengthIsRefused) {
  for (const size_t bytes : {0, 15, 17}) {
    EXPECT_THAT(ParseSlotHello(EncodeSlotHello(std::string(bytes, 'x'))),
                Refused("SlotHello.session has"));
  }
}

TEST(SlotMessagesTest, NumbersOutOfRangeAreRefusedByField) {
  EXPECT_THAT(ParseSlotReturn(EncodeSlotReturn(0)), Refused("SlotReturn.slot is 0"));
  EXPECT_THAT(ParseSlotOffer(EncodeSlotOffer({.slot = 0})),
              Refused("SlotOffer.slot is 0 and nothing is retired"));
  EXPECT_THAT(ParseSlotOffer(EncodeSlotOffer({.slot = 0, .bytes = 1, .retired = {1}})),
              Refused("SlotOffer.bytes is 1, want 0"));
  for (const int64_t bytes : {int64_t{0}, int64_t{-1}, std::numeric_limits<int64_t>::min()}) {
    EXPECT_THAT(ParseSlotOffer(EncodeSlotOffer({.slot = 1, .bytes = bytes})),
                Refused("SlotOffer.bytes is"));
  }
  EXPECT_THAT(ParseSlotOffer(EncodeSlotOffer({.slot = 1, .bytes = 1, .retired = {1, 0}})),
              Refused("SlotOffer.retired is 0"));
}

TEST(SlotMessagesTest, MalformedBytesAreRefusedWithTheMessageType) {
  const std::string garbage = "\xff\xff\xff";
  EXPECT_THAT(ParseSlotHello(garbage), Refused("not a SlotHello"));
  EXPECT_THAT(ParseSlotReturn(garbage), Refused("not a SlotReturn"));
  EXPECT_THAT(ParseSlotOffer(garbage), Refused("not a SlotOffer"));
}

}  // namespace
}  // namespace systole
