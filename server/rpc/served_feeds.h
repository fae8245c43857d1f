// Makes and keeps the feeds that clients ask for, by spec, over the datasets of the catalogue that
// is in force. Each feed has a plan whose tensors are finished. If clients can finish some of the
// tensors, the feed also has a plan for the compact form. This header also makes the answer to
// ResolveFeed.
//
// Thread-safe.
#ifndef SYSTOLE_SERVER_RPC_SERVED_FEEDS_H_
#define SYSTOLE_SERVER_RPC_SERVED_FEEDS_H_

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "core/concurrency/mutex.h"
#include "core/dataset/record_lists.h"
#include "core/log/event_log.h"
#include "core/plan/compact_feed.h"
#include "core/plan/epoch_bytes.h"
#include "core/plan/feed_plan.h"
#include "server/rpc/catalogue.h"
#include "server/rpc/feed_makers.h"
#include "systole/v1/service.pb.h"

namespace systole {

struct ServedFeed {
  std::shared_ptr<const FeedPlan> plan;
  // For clients that finish tensors; nullopt: no tensor has a compact form.
  std::optional<CompactFeed> compact;

  // The plan by which a stream's slices are made. Streams of the same plan share slices.
  const std::shared_ptr<const FeedPlan>& PlanFor(bool compactly) const {
    return compactly && compact.has_value() ? compact->plan : plan;
  }
};

class ServedFeeds {
 public:
  // How many feeds are kept. If clients use more feeds than this at once, plans are made anew now
  // and then.
  static constexpr size_t kMostKept = 64;
  // A feed with a `where` is fresh for this many calls of Tick() after it was last asked for. Feeds
  // that are not fresh are dropped first, because a client that has just got a feed from Resolve()
  // may be about to call Find().
  static constexpr int64_t kFreshTicks = 10;

  // `room` is only for the line that `events` gets when a feed over far shards is planned.
  ServedFeeds(Catalogue catalogue, const ReadRoom& room, EventLog& events)
      : room_(room),
        events_(events),
        catalogue_(std::make_shared<const Catalogue>(std::move(catalogue))) {}

  std::shared_ptr<const Catalogue> catalogue() const ABSL_LOCKS_EXCLUDED(mu_);

  // From now on `catalogue` is in force. Forgets the feeds that read one of `removed`.
  void Replace(std::shared_ptr<const Catalogue> catalogue, absl::Span<const std::string> removed)
      ABSL_LOCKS_EXCLUDED(mu_);

  // The feed of `spec`. Makes the feed's plans at the first call and keeps them. So a later call
  // costs only a look-up, and streams of one feed share its plans. If there are more than kMostKept
  // feeds, forgets one: of the feeds that are not fresh, the one that was asked for longest ago. If
  // all feeds but the new one are fresh, forgets a feed of the peer that has the most fresh feeds.
  //   Unavailable  the spec has a `where`, and its feed is not kept. Resolve() makes the feed.
  // Also the errors of DatasetOf() and FeedPlan::Create(). Messages name no dataset of the server
  // for which `may_read` is false. REQUIRES: the caller may read all datasets of `spec`. (A dataset
  // may have been removed since this was checked.)
  absl::StatusOr<std::shared_ptr<const ServedFeed>> Find(const v1::FeedSpec& spec,
                                                         Catalogue::IsPermitted may_read)
      ABSL_LOCKS_EXCLUDED(mu_);

  // Like Find(), but makes the feed if it has to, and calls request.done with it: now or, for a
  // spec with a `where`, later and on another thread (FeedMakers::Add()). Lists of records that are
  // made for the feed count as lists of request.peer. `may_read` is not called after Resolve() has
  // returned.
  // Errors: those of Find(), except Unavailable. NotFound also if a dataset was removed while the
  // request waited.
  void Resolve(const v1::FeedSpec& spec, Catalogue::IsPermitted may_read,
               FeedMakers::Request request) ABSL_LOCKS_EXCLUDED(mu_);
  // See FeedMakers.
  WhereCounts counts() const { return makers_.counts(); }
  void Withdraw(const void* id) { makers_.Withdraw(id); }
  bool Stop(const absl::Status& why, absl::Duration patience = absl::ZeroDuration()) {
    return makers_.Stop(why, patience);
  }
  // Calls FeedMakers::Tick(), and counts the ticks for kFreshTicks. Call it about once a second.
  void Tick() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Kept {
    std::string key;  // The spec's serialised form.
    std::shared_ptr<const ServedFeed> feed;
    std::string peer;  // The peer for which the feed was made.
    int64_t asked_at;  // The value of ticks_ when a client last asked for the feed.

    bool has_where() const { return !feed->plan->where_lists().empty(); }
    bool IsFresh(int64_t now) const { return has_where() && now - asked_at < kFreshTicks; }
  };

  std::shared_ptr<const ServedFeed> Known(const std::string& key)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Keep(Kept kept) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Forgets feeds, to free their lists of records. It forgets a feed with a `where` if no stream
  // reads the feed now, and the feed is not fresh or was made for `peer`. Returns whether it forgot
  // a feed.
  bool ForgetIdle(const std::string& peer) ABSL_LOCKS_EXCLUDED(mu_);
  // The work that makes the feed of `spec`, which has a `where`.
  absl::StatusOr<FeedMakers::Work> WorkFor(const v1::FeedSpec& spec, const std::string& peer,
                                           Catalogue::IsPermitted may_read)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Makes the feed of `spec`, whose serialised form is `key`. Keeps the feed if its datasets are
  // still in force.
  absl::StatusOr<std::shared_ptr<const ServedFeed>> Make(const v1::FeedSpec& spec,
                                                         const std::string& key,
                                                         const std::string& peer,
                                                         Catalogue::IsPermitted may_read)
      ABSL_LOCKS_EXCLUDED(mu_);
  void TellWhatIsFetched(const FeedPlan& plan) const;

  const ReadRoom room_;
  EventLog& events_;
  // The lists of records of all feeds. They stay when the catalogue changes.
  const std::shared_ptr<RecordLists> lists_ =
      std::make_shared<RecordLists>([this] { return ForgetIdle(""); });
  mutable Mutex mu_;
  std::shared_ptr<const Catalogue> catalogue_ ABSL_GUARDED_BY(mu_);
  int64_t ticks_ ABSL_GUARDED_BY(mu_) = 0;
  std::list<Kept> feeds_ ABSL_GUARDED_BY(mu_);  // The one that was asked for last comes first.
  FeedMakers makers_;                           // Last, because its threads use the members above.
};

// The identity of a feed. Both plans of the feed have the same identity.
v1::FeedIdentity IdentityOf(const FeedPlan& plan);

// The answer to ResolveFeed. If `compact`, the answer says how the client finishes tensors.
v1::ResolveFeedResponse DescribeFeed(const ServedFeed& feed, bool compact);

}  // namespace systole

#endif  // SYSTOLE_SERVER_RPC_SERVED_FEEDS_H_
