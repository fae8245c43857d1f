// The feeds of a training run: the training feed, and the feeds of its validations, one after the
// other.
//
// Thread-compatible, except Cancel(), which any thread may call at any time.
#ifndef SYSTOLE_CLIENT_CLI_COMMANDS_TRAINING_FEEDS_H_
#define SYSTOLE_CLIENT_CLI_COMMANDS_TRAINING_FEEDS_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "client/cli/commands/core_infeeds.h"
#include "client/cli/pacing/missing_tally.h"
#include "core/concurrency/mutex.h"

namespace systole {

class TrainingFeeds {
 public:
  explicit TrainingFeeds(std::unique_ptr<CoreInfeeds> training) : training_(std::move(training)) {}

  CoreInfeeds& training() { return *training_; }

  // Replaces the earlier validation feed, which has ended. Returns Cancelled after Cancel().
  absl::Status SetValidation(std::unique_ptr<CoreInfeeds> validation) ABSL_LOCKS_EXCLUDED(mu_);
  // REQUIRES: SetValidation() was called.
  CoreInfeeds& validation() ABSL_LOCKS_EXCLUDED(mu_);

  // Ends all feeds: every Pop() returns Cancelled from now on.
  void Cancel() ABSL_LOCKS_EXCLUDED(mu_);

  // Sentences about masked examples: one for the training feed, and one for all validation feeds
  // together. A sentence is left out if its feeds have no masked examples.
  std::vector<std::string> MaskedNotes() const ABSL_LOCKS_EXCLUDED(mu_);
  // The missing examples of all feeds together.
  MissingTally missing() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  MissingTally OfValidations() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const std::unique_ptr<CoreInfeeds> training_;
  mutable Mutex mu_;
  std::unique_ptr<CoreInfeeds> validation_ ABSL_GUARDED_BY(mu_);
  MissingTally ended_validations_ ABSL_GUARDED_BY(mu_);
  bool cancelled_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace systole

#endif  // SYSTOLE_CLIENT_CLI_COMMANDS_TRAINING_FEEDS_H_
