#include "client/cli/commands/waiting_text.h"

#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/text/foreign_text.h"

namespace systole {
namespace {

constexpr absl::Duration kLostToTell = absl::Seconds(1);
constexpr absl::Duration kSilenceToTell = absl::Seconds(5);

int64_t Seconds(absl::Duration time) { return absl::ToInt64Seconds(time); }

}  // namespace

std::string WaitingText(const std::optional<FeedWaiting>& waiting) {
  if (!waiting.has_value()) return "";
  const bool lost = !waiting->lost.empty();
  if (waiting->waited < (lost ? kLostToTell : kSilenceToTell)) return "";
  const std::string asking = ForeignName(waiting->asking);
  const std::string of_limit =
      absl::StrCat(" (", Seconds(waiting->waited), " s of ", Seconds(waiting->limit), " s)");
  if (!lost) return absl::StrCat("no answer from ", asking, of_limit);
  const std::string other =
      waiting->asking == waiting->lost ? "" : absl::StrCat(", asking ", asking);
  if (!waiting->started) {
    return absl::StrCat("cannot reach ", ForeignName(waiting->lost), other, of_limit);
  }
  return absl::StrCat("server ", ForeignName(waiting->lost), " lost",
                      other.empty() ? ", asking it again" : other, " (", Seconds(waiting->waited),
                      " s)");
}

std::function<std::string()> WaitingNotice(std::shared_ptr<const FeedWatch> watch) {
  return [watch = std::move(watch)] { return WaitingText(watch->waiting()); };
}

}  // namespace systole
