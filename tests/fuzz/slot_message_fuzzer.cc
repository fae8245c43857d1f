// Tests the parsers of slot messages. An accepted message is within the limits, and stays the same
// when it is written and read again. The first byte chooses the message.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "absl/strings/string_view.h"
#include "proto/slots/slot_messages.h"
#include "tests/fuzz/fuzzer.h"

namespace {

void Require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "accepted, but %s\n", what);
  std::abort();
}

}  // namespace

SYSTOLE_FUZZER(slot_message, const uint8_t* data, size_t size) {
  if (size == 0 || size > systole::kMaxSlotMessageBytes) return 0;
  const absl::string_view bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  switch (data[0] % 3) {
    case 0: {
      const auto session = systole::ParseSlotHello(bytes);
      if (!session.ok()) return 0;
      Require(session->size() == systole::kSlotSessionBytes, "the session has another length");
      const auto again = systole::ParseSlotHello(systole::EncodeSlotHello(*session));
      Require(again.ok() && *again == *session, "the hello changes when it is written again");
      return 0;
    }
    case 1: {
      const auto slot = systole::ParseSlotReturn(bytes);
      if (!slot.ok()) return 0;
      Require(*slot != 0, "the slot is 0");
      const auto again = systole::ParseSlotReturn(systole::EncodeSlotReturn(*slot));
      Require(again.ok() && *again == *slot, "the return changes when it is written again");
      return 0;
    }
    default: {
      const auto offer = systole::ParseSlotOffer(bytes);
      if (!offer.ok()) return 0;
      Require((offer->slot != 0) == (offer->bytes > 0) && offer->bytes >= 0,
              "a number is out of range");
      Require(offer->slot != 0 || !offer->retired.empty(), "the offer names no slot");
      for (const uint64_t retired : offer->retired) Require(retired != 0, "a retired slot is 0");
      if (offer->retired.size() > systole::kMaxRetiredInOffer) return 0;
      const auto again = systole::ParseSlotOffer(systole::EncodeSlotOffer(*offer));
      Require(again.ok() && *again == *offer, "the offer changes when it is written again");
      return 0;
    }
  }
}
