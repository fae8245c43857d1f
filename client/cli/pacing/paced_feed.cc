#include "client/cli/pacing/paced_feed.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"

namespace systole {
namespace {

// If the emulator's own work takes a larger share of the time than this, a note says so. Such a
// share could change whether AU (accelerator utilization) reaches 90 %.
constexpr double kMuchOverhead = 0.01;

bool IsOnThisMachine(absl::string_view address) {
  return absl::StartsWith(address, "unix:") || absl::StartsWith(address, "127.") ||
         absl::StartsWith(address, "localhost:") || absl::StartsWith(address, "[::1]:");
}

}  // namespace

emulator::PopArrival ArrivalsOf(CoreQueues& queues) {
  return [&queues](int core) -> absl::StatusOr<std::optional<emulator::SliceArrival>> {
    const absl::StatusOr<std::optional<CoreStep>> step = queues.Pop(core);
    if (!step.ok()) return step.status();
    if (!step->has_value()) return std::nullopt;
    return emulator::SliceArrival{.step = (*step)->step, .arrived_at = (*step)->arrived_at};
  };
}

std::vector<std::string> PacingNotes(const std::vector<std::string>& servers,
                                     const std::vector<emulator::PacedResult>& results) {
  std::vector<std::string> notes;
  if (std::any_of(servers.begin(), servers.end(), IsOnThisMachine)) {
    notes.push_back(
        "a server runs on this machine: it shares the processors with the trainers, so AU is lower "
        "than with trainers elsewhere");
  }
  double most = 0;
  for (const emulator::PacedResult& result : results) {
    const std::optional<double> au = result.books.utilisation().au;
    if (au.has_value() && result.wall_au.has_value()) most = std::max(most, *au - *result.wall_au);
  }
  if (most > kMuchOverhead) {
    notes.push_back(absl::StrFormat(
        "the emulator itself took up to %.1f %% of the time: this machine cannot hold the pace, "
        "so the emulator requested examples more slowly than the chip would, and AU is an upper "
        "bound",
        100 * most));
  }
  return notes;
}

}  // namespace systole
