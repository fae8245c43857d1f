// The lines of a feed's log on their way to Python's `logging`. Threads of the feed bring them and
// never hold the GIL; whoever holds it hands them on.
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
  // Further lines are dropped until these were handed on.
  static constexpr size_t kMaxWaiting = 256;

  void Add(LogLevel level, const std::string& line) ABSL_LOCKS_EXCLUDED(mu_);
  // Hands all lines to logging.getLogger("systole"). Raises what a handler raises. REQUIRES: the
  // GIL.
  void HandOn() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  Mutex mu_;
  std::vector<std::pair<LogLevel, std::string>> waiting_ ABSL_GUARDED_BY(mu_);
};

// A log that ends in `lines`.
std::shared_ptr<EventLog> LogInto(std::shared_ptr<LogLines> lines);

}  // namespace systole::python

#endif  // SYSTOLE_CLIENT_PYTHON_EXTENSION_LOG_LINES_H_
