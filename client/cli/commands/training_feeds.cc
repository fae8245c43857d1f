#include "client/cli/commands/training_feeds.h"

#include "absl/strings/str_cat.h"

namespace systole {

absl::Status TrainingFeeds::SetValidation(std::unique_ptr<CoreInfeeds> validation) {
  std::unique_ptr<CoreInfeeds> ended;  // Destroyed after the unlock, as its destructor waits.
  MutexLock lock(mu_);
  if (cancelled_) return absl::CancelledError("the feeds were cancelled");
  if (validation_ != nullptr) ended_validations_.Add(validation_->client().stats());
  ended = std::exchange(validation_, std::move(validation));
  return absl::OkStatus();
}

CoreInfeeds& TrainingFeeds::validation() {
  MutexLock lock(mu_);
  return *validation_;
}

void TrainingFeeds::Cancel() {
  training_->Cancel();
  MutexLock lock(mu_);
  cancelled_ = true;
  if (validation_ != nullptr) validation_->Cancel();
}

MissingTally TrainingFeeds::OfValidations() const {
  MissingTally tally = ended_validations_;
  if (validation_ != nullptr) tally.Add(validation_->client().stats());
  return tally;
}

std::vector<std::string> TrainingFeeds::MaskedNotes() const {
  MutexLock lock(mu_);
  std::vector<std::string> notes;
  const auto add = [&notes](const char* feed, const std::string& text) {
    if (!text.empty()) notes.push_back(absl::StrCat(feed, text));
  };
  add("training feed: ", MissingTally(training_->client().stats()).MaskedText());
  add("validation feed: ", OfValidations().MaskedText());
  return notes;
}

MissingTally TrainingFeeds::missing() const {
  MutexLock lock(mu_);
  MissingTally tally = OfValidations();
  tally.Add(training_->client().stats());
  return tally;
}

}  // namespace systole
