// One line on a terminal that shows how far a long job is:
//   packing [=============>                ]  45%  1620/3600  120/s  16 s left
// While the job does not move, the line shows the reason:
//   feeding [====>                         ]  17%  17/100  server A lost, asking B (12 s)
// The line is never wider than the terminal. Parts that do not fit are left out, the least
// important first.
//
// Thread-safe. Borrows the console's stream.
#ifndef SYSTOLE_CLIENT_CLI_CONSOLE_PROGRESS_BAR_H_
#define SYSTOLE_CLIENT_CLI_CONSOLE_PROGRESS_BAR_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client/cli/console/command_line.h"
#include "core/concurrency/monotonic_clock.h"
#include "core/concurrency/mutex.h"
#include "core/concurrency/worker_pool.h"

namespace systole {

// What `done` and `total` count.
enum class ProgressUnit { kItems, kBytes, kMilliseconds };

// What a bar shows.
struct Progress {
  std::string label;
  ProgressUnit unit = ProgressUnit::kItems;
  int64_t done = 0;
  std::optional<int64_t> total;  // nullopt: not known, so no percentage and no time left.
  // Units per second; nullopt: not known yet.
  std::optional<double> per_second;
  std::string remark;
  // Why the job does not move; empty if it moves. Shown in place of the rate and the remark.
  std::string notice;
};

// The line, shorter than `columns`, so that no terminal wraps it.
std::string ProgressLine(const Progress& progress, int columns);

struct ProgressBarOptions {
  std::string label;
  std::optional<int64_t> total;  // See Progress.
  ProgressUnit unit = ProgressUnit::kItems;
  // The part of `total` that an earlier run has done. The bar shows it as done, but does not count
  // it in the rate.
  int64_t done_before = 0;
  // Called each time the bar is drawn. The bar shows the returned text before the remark of Add().
  // `remark` and `notice` may be null. The bar holds its lock while it calls these functions.
  std::function<std::string()> remark;
  // Called each time the bar is drawn; returns Progress::notice.
  std::function<std::string()> notice;
  MonotonicClock clock = SteadyClock();
  // A thread redraws the bar this often, even if the job does not move. InfiniteDuration: there is
  // no such thread.
  absl::Duration redraw_every = absl::Seconds(1);
};

class ProgressBar {
 public:
  // Draws to `console.err` if that is a terminal, and otherwise nowhere. If the total is not known,
  // the bar is first drawn after `redraw_every`, so that a quick job shows no bar.
  ProgressBar(const Console& console, ProgressBarOptions options);
  // Takes the bar off the screen.
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // `count` more units are done. If `remark` is not empty, the bar shows this remark from now on.
  void Add(int64_t count, absl::string_view remark = "") ABSL_LOCKS_EXCLUDED(mu_);
  // Draws the bar as it is now.
  void Redraw() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  void Draw() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void KeepDrawing() ABSL_LOCKS_EXCLUDED(mu_);

  const Console console_;
  const ProgressBarOptions options_;
  const absl::Duration begun_;

  Mutex mu_;
  CondVar changed_;
  Progress progress_ ABSL_GUARDED_BY(mu_);
  int64_t drawn_percent_ ABSL_GUARDED_BY(mu_) = -1;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::unique_ptr<WorkerPool> redrawing_;  // One thread, or null. Last: it uses the other members.
};

}  // namespace systole

#endif  // SYSTOLE_CLIENT_CLI_CONSOLE_PROGRESS_BAR_H_
