#include "proto/slots/not_shared.h"

#include "absl/strings/str_cat.h"
#include "systole/v1/slots.pb.h"

namespace systole {

std::string NotSharedText(int reason) {
  switch (reason) {
    case v1::NO_REASON:
      return "the server does not say why";
    case v1::SLICES_TOO_SMALL:
      return "the slices are so small that sharing them would cost more than sending them";
    case v1::SESSION_UNKNOWN:
      return "the server does not find the client's connection, perhaps because too many clients "
             "connected at once";
    case v1::NO_DESCRIPTOR_LEFT:
      return "the server has no file descriptor left; raise its `ulimit -n`";
    case v1::NO_SESSION_LEFT:
      return "the server already shares memory with as many clients as it can";
    case v1::NO_SLOT_LEFT:
      return "the server has no slot left: its `ulimit -n` allows no more, or its memory is short";
    case v1::NO_BUDGET_LEFT:
      return "clients hold half of the server's memory budget, and the server shares no more "
             "than that; raise its --memory-budget";
    case v1::SESSION_OVER:
      return "the client hung up, or returned a slot that it did not hold";
    case v1::CONNECTION_FULL:
      return "the client does not read the server's offers, or too many descriptors are being sent";
    default:
      return absl::StrCat("the server gives reason ", reason, ", which this version does not know");
  }
}

}  // namespace systole
