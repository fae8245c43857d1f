// Passes the lines of a feed's log to Python's `logging`. The feed's threads add lines without the
// GIL. A thread that holds the GIL passes the lines on.
//
// Thread-safe.
#ifndef SYSTOLE_CLIENT_PYTHON_EXTENSION_LOG_LINES_H_
#define SYSTOLE_CLIENT_PYTHON_EXTENSION_LOG_LINES_H_

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "core/concurrency/mutex.h"
#include "core/log/event_log.h"

namespace systole::python {

class LogLines {
 public:
  // The most lines that wait to be passed on. Further lines are dropped.
  static constexpr size_t kMaxWaiting = 256;

  void Add(LogLevel level, const std::string& line) ABSL_LOCKS_EXCLUDED(mu_);
  // Passes all waiting lines to logging.getLogger("systole"). Raises what a handler raises.
  // REQUIRES: the GIL.
  void HandOn() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  Mutex mu_;
  std::vector<std::pair<LogLevel, std::string>> waiting_ ABSL_GUARDED_BY(mu_);
};

// A log whose lines go to `lines`.
std::shared_ptr<EventLog> LogInto(std::shared_ptr<LogLines> lines);

}  // namespace systole::python

#endif  // SYSTOLE_CLIENT_PYTHON_EXTENSION_LOG_LINES_H_
