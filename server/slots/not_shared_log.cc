#include "server/slots/not_shared_log.h"

#include "absl/strings/str_cat.h"
#include "proto/slots/not_shared.h"

namespace systole {

void NotSharedLog::Add(v1::NotShared reason) {
  if (reason == v1::NO_REASON) return;
  const uint32_t bit = uint32_t{1} << reason;
  if ((told_.fetch_or(bit) & bit) != 0) return;
  events_.Add(LogCause::kNotShared, LogLevel::kInfo,
              absl::StrCat("batches are sent to a client on this machine, not shared: ",
                           NotSharedText(reason)));
}

}  // namespace systole
