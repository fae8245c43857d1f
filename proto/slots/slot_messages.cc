#include "proto/slots/slot_messages.h"

#include <sys/random.h>

#include <cerrno>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/status/check.h"
#include "core/status/status_macros.h"
#include "systole/v1/slots.pb.h"

namespace systole {
namespace {

template <typename Message>
absl::StatusOr<Message> Parse(absl::string_view bytes, absl::string_view name) {
  Message message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return absl::InvalidArgumentError(
        absl::StrCat("a packet of ", bytes.size(), " bytes on the slot socket is not a ", name));
  }
  return message;
}

absl::Status CheckSlot(uint64_t slot, absl::string_view field) {
  if (slot != 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(field, " is 0, want at least 1"));
}

}  // namespace

absl::StatusOr<std::string> NewSlotSession() {
  std::string session(kSlotSessionBytes, '\0');
  ssize_t got;
  do {
    got = ::getrandom(session.data(), session.size(), 0);
  } while (got < 0 && errno == EINTR);
  // For up to 256 bytes, getrandom() gives all bytes or none.
  if (got != static_cast<ssize_t>(session.size())) {
    return absl::UnavailableError("getrandom gives no bytes for a session's id");
  }
  return session;
}

std::string EncodeSlotHello(absl::string_view session) {
  v1::SlotHello hello;
  hello.set_version(kSlotVersion);
  hello.set_session(std::string(session));
  return hello.SerializeAsString();
}

absl::StatusOr<std::string> ParseSlotHello(absl::string_view message) {
  SYSTOLE_ASSIGN_OR_RETURN(const v1::SlotHello hello, Parse<v1::SlotHello>(message, "SlotHello"));
  if (hello.version() != kSlotVersion) {
    return absl::InvalidArgumentError(
        absl::StrCat("SlotHello.version is ", hello.version(), ", want ", kSlotVersion));
  }
  if (hello.session().size() != kSlotSessionBytes) {
    return absl::InvalidArgumentError(absl::StrCat("SlotHello.session has ", hello.session().size(),
                                                   " bytes, want ", kSlotSessionBytes));
  }
  return hello.session();
}

std::string EncodeSlotReturn(uint64_t slot) {
  v1::SlotReturn message;
  message.set_slot(slot);
  return message.SerializeAsString();
}

absl::StatusOr<uint64_t> ParseSlotReturn(absl::string_view message) {
  SYSTOLE_ASSIGN_OR_RETURN(const v1::SlotReturn parsed,
                           Parse<v1::SlotReturn>(message, "SlotReturn"));
  SYSTOLE_RETURN_IF_ERROR(CheckSlot(parsed.slot(), "SlotReturn.slot"));
  return parsed.slot();
}

std::string EncodeSlotOffer(const SlotOffer& offer) {
  SYSTOLE_CHECK(offer.retired.size() <= kMaxRetiredInOffer);
  v1::SlotOffer message;
  message.set_slot(offer.slot);
  message.set_bytes(offer.bytes);
  message.mutable_retired()->Add(offer.retired.begin(), offer.retired.end());
  return message.SerializeAsString();
}

absl::StatusOr<SlotOffer> ParseSlotOffer(absl::string_view message) {
  SYSTOLE_ASSIGN_OR_RETURN(const v1::SlotOffer parsed, Parse<v1::SlotOffer>(message, "SlotOffer"));
  if (parsed.slot() == 0) {
    if (parsed.retired().empty()) {
      return absl::InvalidArgumentError("SlotOffer.slot is 0 and nothing is retired");
    }
    if (parsed.bytes() != 0) {
      return absl::InvalidArgumentError(absl::StrCat("SlotOffer.bytes is ", parsed.bytes(),
                                                     ", want 0, because no slot is offered"));
    }
  } else if (parsed.bytes() < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("SlotOffer.bytes is ", parsed.bytes(), ", want at least 1"));
  }
  SlotOffer offer = {.slot = parsed.slot(), .bytes = parsed.bytes()};
  for (const uint64_t retired : parsed.retired()) {
    SYSTOLE_RETURN_IF_ERROR(CheckSlot(retired, "SlotOffer.retired"));
    offer.retired.push_back(retired);
  }
  return offer;
}

}  // namespace systole
