#include "client/servers/slot_reader.h"

#include <cstring>
#include <optional>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "core/status/status_macros.h"
#include "proto/slots/slot_messages.h"

namespace systole {
namespace {

absl::Status BadOffer(absl::string_view what) {
  return absl::InternalError(absl::StrCat("the server's shared memory is refused: ", what));
}

}  // namespace

absl::StatusOr<std::unique_ptr<SlotReader>> SlotReader::Connect(const std::string& path) {
  SYSTOLE_ASSIGN_OR_RETURN(std::string session, NewSlotSession());
  SYSTOLE_ASSIGN_OR_RETURN(SlotSocket socket, SlotSocket::Connect(path));
  SYSTOLE_RETURN_IF_ERROR(socket.Send(EncodeSlotHello(session)));
  return absl::WrapUnique(new SlotReader(std::move(socket), std::move(session)));
}

absl::Status SlotReader::CopyOut(uint64_t slot, int64_t slot_bytes,
                                 absl::FunctionRef<void(const uint8_t* slice)> copy) {
  // The server offers a slot before it first names the slot, so the offer has arrived already. For
  // later slices in the same slot there is no offer, or an offer that only retires slots.
  SYSTOLE_RETURN_IF_ERROR(TakeOffers(slot_bytes));
  const auto found = slots_.find(slot);
  if (found == slots_.end()) {
    return BadOffer(absl::StrCat("slot ", slot, " was never offered, or is retired"));
  }
  if (found->second.bytes() != slot_bytes) {
    return BadOffer(
        absl::StrCat("slot ", slot, " holds ", found->second.bytes(), " bytes, want ", slot_bytes));
  }
  copy(found->second.data());
  // A server that takes its slots back closes the connection first. So if the return can be sent,
  // the server did not reuse the slot during the copy.
  return socket_.Send(EncodeSlotReturn(slot));
}

absl::Status SlotReader::TakeOffers(int64_t slot_bytes) {
  for (int i = 0; i < kMaxMappedSlots; ++i) {
    const absl::StatusOr<std::optional<SlotSocket::Packet>> packet = socket_.Receive();
    if (absl::IsInvalidArgument(packet.status())) return BadOffer(packet.status().message());
    SYSTOLE_RETURN_IF_ERROR(packet.status());
    if (!packet->has_value()) return absl::OkStatus();
    SYSTOLE_RETURN_IF_ERROR(TakeOffer(**packet, slot_bytes));
  }
  return BadOffer(absl::StrCat("more than ", kMaxMappedSlots, " offers came at once"));
}

absl::Status SlotReader::TakeOffer(const SlotSocket::Packet& packet, int64_t slot_bytes) {
  const absl::StatusOr<SlotOffer> offer = ParseSlotOffer(packet.message);
  if (!offer.ok()) return BadOffer(offer.status().message());
  for (const uint64_t retired : offer->retired) slots_.erase(retired);
  if (offer->slot == 0) {
    return packet.passed.ok() ? BadOffer("a descriptor came without a slot") : absl::OkStatus();
  }
  if (offer->bytes != slot_bytes) {
    return BadOffer(absl::StrCat("SlotOffer.bytes is ", offer->bytes, ", want ", slot_bytes,
                                 ", one core's slice"));
  }
  if (slots_.size() >= kMaxMappedSlots) {
    return BadOffer(absl::StrCat("SlotOffer.slot ", offer->slot, " is one more than the ",
                                 kMaxMappedSlots, " that may be mapped"));
  }
  absl::StatusOr<SealedView> view = SealedView::Map(packet.passed.get(), offer->bytes);
  if (absl::IsResourceExhausted(view.status())) return view.status();
  if (!view.ok()) {
    return BadOffer(absl::StrCat("slot ", offer->slot, ": ", view.status().message()));
  }
  if (!slots_.emplace(offer->slot, *std::move(view)).second) {
    return BadOffer(absl::StrCat("SlotOffer.slot ", offer->slot, " is offered twice"));
  }
  return absl::OkStatus();
}

}  // namespace systole
