#include "server/rpc/feed_makers.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "core/concurrency/monotonic_clock.h"
#include "core/status/status_macros.h"

namespace systole {

FeedMakers::~FeedMakers() { Stop(absl::CancelledError("the server ends")); }

absl::Status FeedMakers::Enter(Work& work, Request& request) {
  SYSTOLE_RETURN_IF_ERROR(stopped_);
  size_t waiting = 0;
  size_t own = 0;
  int64_t round = round_;
  std::shared_ptr<Feed> wanted;
  for (const std::shared_ptr<Feed>& feed : feeds_) {
    if (feed->work.key == work.key && !feed->unwanted.is_raised()) wanted = feed;
    for (const Waiting& one : feed->waiting) {
      ++waiting;
      if (one.request.peer != request.peer) continue;
      ++own;
      round = std::max(round, one.round + 1);
    }
  }
  if (own >= kMostWaiting - waiting) {
    return absl::UnavailableError(
        absl::StrCat(waiting, " requests wait for feeds with a `where`, ", own,
                     " of them from you, and at most ", kMostWaiting,
                     " may wait. Ask again when one of your requests is answered"));
  }
  if (pool_ == nullptr) {
    SYSTOLE_ASSIGN_OR_RETURN(pool_, WorkerPool::Create(kMakers + kMostSlow));
  }
  if (wanted == nullptr) {
    wanted = feeds_.emplace_back(std::make_shared<Feed>());
    wanted->work = std::move(work);
  }
  // All of a peer's requests for one feed belong to the same round.
  for (const Waiting& one : wanted->waiting) {
    if (one.request.peer == request.peer) round = one.round;
  }
  wanted->unwanted_ticks = 0;
  wanted->waiting.push_back({.request = std::move(request), .round = round});
  pool_->Submit([this] { MakeAll(); });
  return absl::OkStatus();
}

void FeedMakers::Add(Work work, Request request) {
  absl::Status entered;
  {
    MutexLock lock(mu_);
    entered = Enter(work, request);
  }
  if (!entered.ok()) request.done(entered);
}

const FeedMakers::Waiting* FeedMakers::FirstOf(const Feed& feed) const {
  const Waiting* first = nullptr;
  for (const Waiting& one : feed.waiting) {
    if (first != nullptr && first->round <= one.round) continue;
    const bool has_turn = std::any_of(feeds_.begin(), feeds_.end(), [&](const auto& other) {
      return other->takes_turn() && other->peer == one.request.peer;
    });
    if (!has_turn) first = &one;
  }
  return first;
}

std::pair<std::shared_ptr<FeedMakers::Feed>, const FeedMakers::Waiting*> FeedMakers::Next() const {
  std::vector<std::pair<std::shared_ptr<Feed>, const Waiting*>> in_line;
  // The datasets of feeds in making, and of feeds that wait for one of these datasets.
  std::set<uint64_t> read;
  std::set<uint64_t> slow;
  int makers = 0;
  for (const std::shared_ptr<Feed>& feed : feeds_) {
    if (feed->takes_turn()) ++makers;
    if (feed->in_making) {
      read.insert(feed->work.datasets.begin(), feed->work.datasets.end());
      if (feed->slow) slow.insert(feed->work.datasets.begin(), feed->work.datasets.end());
    } else if (const Waiting* const first = FirstOf(*feed); first != nullptr) {
      in_line.emplace_back(feed, first);
    }
  }
  if (makers >= kMakers) return {};
  std::stable_sort(in_line.begin(), in_line.end(),
                   [](const auto& a, const auto& b) { return a.second->round < b.second->round; });
  for (const auto& next : in_line) {
    const std::vector<uint64_t>& datasets = next.first->work.datasets;
    const auto reads_one_of = [&datasets](const std::set<uint64_t>& numbers) {
      return std::any_of(datasets.begin(), datasets.end(),
                         [&numbers](uint64_t number) { return numbers.contains(number); });
    };
    if (!reads_one_of(read)) return next;
    // `next` waits for a feed in making. Feeds of later rounds that share a dataset with `next`
    // must wait, too, or they could overtake `next` for ever. But those feeds need not wait if
    // `next` waits for a slow feed, whose storage perhaps hangs.
    if (!reads_one_of(slow)) read.insert(datasets.begin(), datasets.end());
  }
  return {};
}

std::shared_ptr<FeedMakers::Feed> FeedMakers::Begin() {
  MutexLock lock(mu_);
  const auto [next, first] = Next();
  if (next == nullptr) return nullptr;
  next->in_making = true;
  next->peer = first->request.peer;
  round_ = std::max(round_, first->round);
  // Perhaps more feeds can begin now. Another thread looks for them.
  pool_->Submit([this] { MakeAll(); });
  return next;
}

void FeedMakers::MakeAll() {
  while (const std::shared_ptr<Feed> feed = Begin()) {
    Made made = [&] {
      const InterruptScope scope(feed->unwanted);
      return feed->work.make();
    }();
    std::vector<Waiting> waiting;
    {
      MutexLock lock(mu_);
      waiting.swap(feed->waiting);
      ++(made.ok() ? counts_.made : counts_.failed);
      feeds_.remove(feed);
      ended_.SignalAll();
    }
    // The last request gets the feed by move. So this thread holds the feed no longer than the
    // requests do. A feed that nobody holds can make room for another one.
    while (waiting.size() > 1) {
      waiting.back().request.done(made);
      waiting.pop_back();
    }
    if (!waiting.empty()) waiting.front().request.done(std::move(made));
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
    if (!feed->takes_turn() || ++feed->ticks_in_making < kSlowTicks) continue;
    int slow = 0;
    int own = 0;
    for (const std::shared_ptr<Feed>& other : feeds_) {
      if (!other->slow) continue;
      ++slow;
      if (other->peer == feed->peer) ++own;
    }
    feed->slow = own < kMostSlow - slow;
    if (feed->slow) pool_->Submit([this] { MakeAll(); });
  }
}

WhereCounts FeedMakers::counts() const {
  MutexLock lock(mu_);
  WhereCounts counts = counts_;
  for (const std::shared_ptr<Feed>& feed : feeds_) {
    counts.waiting += static_cast<int64_t>(feed->waiting.size());
  }
  return counts;
}

bool FeedMakers::Stop(const absl::Status& why, absl::Duration patience) {
  std::vector<Waiting> ended;
  {
    MutexLock lock(mu_);
    stopped_ = why;
    for (const std::shared_ptr<Feed>& feed : feeds_) {
      feed->unwanted.Raise();
      for (Waiting& one : feed->waiting) ended.push_back(std::move(one));
      feed->waiting.clear();
    }
    feeds_.remove_if([](const auto& feed) { return !feed->in_making; });
  }
  for (const Waiting& one : ended) one.request.done(why);
  const MonotonicClock clock = SteadyClock();
  const absl::Duration deadline = clock() + patience;
  MutexLock lock(mu_);
  while (!feeds_.empty() && clock() < deadline) ended_.WaitFor(mu_, deadline - clock());
  return feeds_.empty();
}

}  // namespace systole
