#include "server/rpc/feed_makers.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status/status_macros.h"

namespace systole {

FeedMakers::~FeedMakers() { Stop(absl::CancelledError("the server ends")); }

absl::Status FeedMakers::Enter(const std::string& key, std::function<Made()>& make,
                               Request& request) {
  SYSTOLE_RETURN_IF_ERROR(stopped_);
  size_t waiting = 0;
  size_t own = 0;
  int64_t round = round_;
  std::shared_ptr<Feed> wanted;
  for (const std::shared_ptr<Feed>& feed : feeds_) {
    if (feed->key == key && !feed->unwanted.is_raised()) wanted = feed;
    for (const Waiting& one : feed->waiting) {
      ++waiting;
      if (one.request.peer != request.peer) continue;
      ++own;
      round = std::max(round, one.round + 1);
    }
  }
  if (own >= kMostWaiting - waiting) {
    return absl::UnavailableError(absl::StrCat(waiting, " requests wait for feeds with a `where`, ",
                                               own, " of them from you, and at most ", kMostWaiting,
                                               " may; ask again when one of yours is answered"));
  }
  if (pool_ == nullptr) {
    SYSTOLE_ASSIGN_OR_RETURN(pool_, WorkerPool::Create(kMakers));
  }
  if (wanted == nullptr) {
    wanted = feeds_.emplace_back(std::make_shared<Feed>());
    wanted->key = key;
    wanted->make = std::move(make);
  }
  // A peer's requests for one feed are of one round.
  for (const Waiting& one : wanted->waiting) {
    if (one.request.peer == request.peer) round = one.round;
  }
  wanted->unwanted_ticks = 0;
  wanted->waiting.push_back({.request = std::move(request), .round = round});
  pool_->Submit([this] { MakeAll(); });
  return absl::OkStatus();
}

void FeedMakers::Add(const std::string& key, std::function<Made()> make, Request request) {
  absl::Status entered;
  {
    MutexLock lock(mu_);
    entered = Enter(key, make, request);
  }
  if (!entered.ok()) request.done(entered);
}

std::shared_ptr<FeedMakers::Feed> FeedMakers::Begin() {
  MutexLock lock(mu_);
  std::shared_ptr<Feed> next;
  const Waiting* first = nullptr;
  for (const std::shared_ptr<Feed>& feed : feeds_) {
    if (feed->in_making) continue;
    for (const Waiting& one : feed->waiting) {
      if (first != nullptr && first->round <= one.round) continue;
      const bool has_turn = std::any_of(feeds_.begin(), feeds_.end(), [&](const auto& other) {
        return other->in_making && other->peer == one.request.peer;
      });
      if (has_turn) continue;
      next = feed;
      first = &one;
    }
  }
  if (next == nullptr) return nullptr;
  next->in_making = true;
  next->peer = first->request.peer;
  round_ = std::max(round_, first->round);
  return next;
}

void FeedMakers::MakeAll() {
  while (const std::shared_ptr<Feed> feed = Begin()) {
    const Made made = [&] {
      const InterruptScope scope(feed->unwanted);
      return feed->make();
    }();
    std::vector<Waiting> waiting;
    {
      MutexLock lock(mu_);
      waiting.swap(feed->waiting);
      feeds_.remove(feed);
    }
    for (const Waiting& one : waiting) one.request.done(made);
  }
}

void FeedMakers::Withdraw(const void* id) {
  std::function<void(Made)> done;
  {
    MutexLock lock(mu_);
    for (const std::shared_ptr<Feed>& feed : feeds_) {
      const auto found = std::find_if(feed->waiting.begin(), feed->waiting.end(),
                                      [id](const Waiting& one) { return one.request.id == id; });
      if (found == feed->waiting.end()) continue;
      done = std::move(found->request.done);
      feed->waiting.erase(found);
    }
    feeds_.remove_if([](const auto& feed) { return !feed->in_making && feed->waiting.empty(); });
  }
  if (done != nullptr) done(absl::CancelledError("the client is gone"));
}

void FeedMakers::Tick() {
  MutexLock lock(mu_);
  for (const std::shared_ptr<Feed>& feed : feeds_) {
    if (feed->waiting.empty() && ++feed->unwanted_ticks >= kUnwantedTicks) feed->unwanted.Raise();
  }
}

bool FeedMakers::Stop(const absl::Status& why) {
  std::vector<Waiting> ended;
  bool in_making = false;
  {
    MutexLock lock(mu_);
    stopped_ = why;
    for (const std::shared_ptr<Feed>& feed : feeds_) {
      feed->unwanted.Raise();
      for (Waiting& one : feed->waiting) ended.push_back(std::move(one));
      feed->waiting.clear();
    }
    feeds_.remove_if([](const auto& feed) { return !feed->in_making; });
    in_making = !feeds_.empty();
  }
  for (const Waiting& one : ended) one.request.done(why);
  return !in_making;
}

}  // namespace systole
