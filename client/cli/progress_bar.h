// One line on a terminal that says how far a long job is:
//   packing  [=========>          ]  45%  1620/3600
// Drawn again only when the per cent change, so it needs no clock and costs next to nothing.
//
// Thread-safe. Borrows the stream.
#ifndef SYSTOLE_CLIENT_CLI_PROGRESS_BAR_H_
#define SYSTOLE_CLIENT_CLI_PROGRESS_BAR_H_

#include <cstdint>
#include <ostream>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "core/flow/mutex.h"

namespace systole {

class ProgressBar {
 public:
  // Draws to `out` if `enabled` (a bar in a log file is noise); else does nothing at all.
  ProgressBar(std::ostream& out, bool enabled, absl::string_view label, int64_t total);
  // Takes the bar off the screen.
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // `count` more are done. `remark`, if not empty, stands behind the numbers from now on.
  void Add(int64_t count, absl::string_view remark = "") ABSL_LOCKS_EXCLUDED(mu_);

 private:
  void Draw() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  std::ostream& out_;
  const bool enabled_;
  const std::string label_;
  const int64_t total_;

  Mutex mu_;
  int64_t done_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t drawn_percent_ ABSL_GUARDED_BY(mu_) = -1;
  std::string remark_ ABSL_GUARDED_BY(mu_);
};

}  // namespace systole

#endif  // SYSTOLE_CLIENT_CLI_PROGRESS_BAR_H_
