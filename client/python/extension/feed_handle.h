// A feed for Python. One class serves for a FeedClient and for a LocalFeed. While a feed waits,
// other threads can run Python, and signals are handled.
//
// Thread-safe.
#ifndef SYSTOLE_CLIENT_PYTHON_EXTENSION_FEED_HANDLE_H_
#define SYSTOLE_CLIENT_PYTHON_EXTENSION_FEED_HANDLE_H_

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "client/python/extension/contact_sheets.h"
#include "client/python/extension/log_lines.h"
#include "client/python/extension/memory.h"
#include "client/step/feed.h"
#include "client/step/feed_client_stats.h"
#include "client/step/step.h"
#include "core/concurrency/mutex.h"
#include "nanobind/nanobind.h"
#include "systole/v1/feed.pb.h"

namespace systole::python {

class FeedHandle {
 public:
  // `spec`: what the feed was opened with. `lines`: the lines of the feed's log. Next() and Close()
  // pass them on to Python.
  FeedHandle(std::unique_ptr<Feed> feed, v1::FeedSpec spec, std::shared_ptr<LogLines> lines);
  // In a child of fork() the feed is left alone, because its threads are in the parent.
  ~FeedHandle();
  FeedHandle(const FeedHandle&) = delete;
  FeedHandle& operator=(const FeedHandle&) = delete;

  // The step with which the feed begins. A resume token does not have this number, because a token
  // counts examples.
  int64_t first_step() const { return first_step_; }
  // Begins to fetch, as the first Next() does, but does not wait.
  void Start();
  // Returns the number and the memory of the next step, or nullopt at the end. Raises the feed's
  // errors, and what a handler of signals or of the log raises.
  std::optional<std::pair<int64_t, Memory>> Next();
  // Ends the feed, and a Next() under way on another thread. Does nothing if the feed was closed
  // before. Raises what a handler of the log raises.
  void Close();

  std::string TokenAt(int64_t next_step);
  // The numbers of FeedClientStats, by name. After Close() they are the last numbers of the feed.
  nanobind::dict Stats();
  // The numbers of Stats() in the form that monitors collect. FamiliesList() makes this form.
  nanobind::list Metrics();
  // What every step has in common, and how long the feed is.
  nanobind::dict Shape() const;
  // Feed::Explain().
  const std::string& Explain() const { return explanation_; }
  // Makes pages of this feed's steps. `spec`: the feed's spec. `source`: a text that tells the
  // page's reader where the steps come from.
  std::unique_ptr<ContactSheets> Sheets(const nanobind::bytes& spec,
                                        const std::string& source) const;
  // StepDigest of one core's slice of the step in `memory`.
  std::string Digest(const Memory& memory, int core) const;

 private:
  // FailedPrecondition in a child of fork().
  void CheckProcess() const;
  void End();
  FeedClientStats LatestStats();
  void HandOnLines() const {
    if (lines_ != nullptr) lines_->HandOn();
  }

  const pid_t process_;
  const v1::FeedSpec spec_;
  const std::shared_ptr<LogLines> lines_;
  const std::shared_ptr<const StepShape> shape_;
  const int64_t first_step_;
  const std::optional<int64_t> end_step_;
  const int64_t steps_per_epoch_;
  const int64_t num_records_;
  const std::optional<Order> order_;
  const std::string explanation_;
  // Keeps Close() from destroying the feed while another thread uses the feed. Next() holds mu_
  // while it waits, so lock mu_ only without the GIL.
  Mutex mu_;
  std::unique_ptr<Feed> feed_ ABSL_GUARDED_BY(mu_);
  // Guards what Close() and Stats() use while Next() waits on another thread and holds mu_.
  Mutex cancel_mu_;
  Feed* running_ ABSL_GUARDED_BY(cancel_mu_);  // Null once the feed is closed.
  FeedClientStats stats_ ABSL_GUARDED_BY(cancel_mu_);
};

void DeclareFeeds(nanobind::module_& module);

}  // namespace systole::python

#endif  // SYSTOLE_CLIENT_PYTHON_EXTENSION_FEED_HANDLE_H_
