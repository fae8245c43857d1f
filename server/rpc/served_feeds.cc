#include "server/rpc/served_feeds.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "core/plan/content_version.h"
#include "core/spec/order_spec.h"
#include "core/spec/where_columns.h"
#include "core/status/status_macros.h"
#include "proto/framing/layout_description.h"

namespace systole {
namespace {

// Describes how the client finishes the tensors that travel compactly (v1::CompactForm). At most 64
// outputs have a table, of 8 KiB each. All tables together take at most half of the bytes that an
// answer may have.
void DescribeForms(const CompactFeed& feed, v1::ResolveFeedResponse& response) {
  for (size_t i = 0; i < feed.tensors.size(); ++i) {
    if (!feed.tensors[i].has_value()) continue;
    const CompactForm& form = feed.tensors[i]->form;
    v1::CompactForm& described = *response.mutable_tensors(static_cast<int>(i))->mutable_compact();
    described.mutable_scale()->Add(form.factors.scale.begin(), form.factors.scale.end());
    described.mutable_bias()->Add(form.factors.bias.begin(), form.factors.bias.end());
    described.mutable_table()->Add(form.table.begin(), form.table.end());
    described.set_channel_axis(feed.tensors[i]->channel_axis);
  }
}

// Whether each of the datasets `names` is the same dataset in both catalogues.
bool HaveTheSame(absl::Span<const std::string> names, const Catalogue& a, const Catalogue& b) {
  return std::all_of(names.begin(), names.end(), [&](const std::string& name) {
    const auto in_a = a.datasets().find(name);
    const auto in_b = b.datasets().find(name);
    return in_a != a.datasets().end() && in_b != b.datasets().end() && in_a->second == in_b->second;
  });
}

// Says how the transforms of each output run.
void DescribeRuns(const FeedPlan& plan, v1::ResolveFeedResponse& response) {
  const SpecRuns runs = plan.runs();
  for (size_t i = 0; i < runs.size(); ++i) {
    v1::TensorDescription& tensor = *response.mutable_tensors(plan.outputs()[i].tensor);
    for (const v1::TransformRun run : runs[i]) tensor.add_runs(run);
  }
}

}  // namespace

std::shared_ptr<const ServedFeed> ServedFeeds::Known(const std::string& key) {
  for (auto it = feeds_.begin(); it != feeds_.end(); ++it) {
    if (it->key != key) continue;
    it->asked_at = ticks_;
    feeds_.splice(feeds_.begin(), feeds_, it);
    return feeds_.front().feed;
  }
  return nullptr;
}

void ServedFeeds::Keep(Kept kept) {
  feeds_.push_front(std::move(kept));
  if (feeds_.size() <= kMostKept) return;
  const int64_t now = ticks_;
  std::map<std::string, int> fresh;  // By peer.
  int most = 0;
  for (const Kept& one : feeds_) {
    if (one.IsFresh(now)) most = std::max(most, ++fresh[one.peer]);
  }
  // Returns, of the feeds for which `may_go` is true, the one that was asked for longest ago. If
  // there is no such feed, returns the first feed, which is the new one.
  const auto last = [](std::list<Kept>& feeds, auto may_go) {
    auto it = std::prev(feeds.end());
    while (it != feeds.begin() && !may_go(*it)) --it;
    return it;
  };
  auto gone = last(feeds_, [now](const Kept& one) { return !one.IsFresh(now); });
  if (gone == feeds_.begin()) {
    gone =
        last(feeds_, [&](const Kept& one) { return one.IsFresh(now) && fresh[one.peer] == most; });
  }
  feeds_.erase(gone);
}

void ServedFeeds::Tick() {
  makers_.Tick();
  MutexLock lock(mu_);
  ++ticks_;
}

std::shared_ptr<const Catalogue> ServedFeeds::catalogue() const {
  MutexLock lock(mu_);
  return catalogue_;
}

void ServedFeeds::Replace(std::shared_ptr<const Catalogue> catalogue,
                          absl::Span<const std::string> removed) {
  MutexLock lock(mu_);
  catalogue_ = std::move(catalogue);
  feeds_.remove_if([removed](const auto& feed) {
    const std::vector<std::string> read = DatasetsOf(feed.feed->plan->spec());
    return std::any_of(removed.begin(), removed.end(), [&read](const std::string& name) {
      return std::find(read.begin(), read.end(), name) != read.end();
    });
  });
}

bool ServedFeeds::ForgetIdle(const std::string& peer) {
  MutexLock lock(mu_);
  const int64_t now = ticks_;
  return std::erase_if(feeds_, [&](const Kept& kept) {
           const ServedFeed& feed = *kept.feed;
           // A stream that reads the feed holds one of its plans.
           return kept.feed.use_count() == 1 && feed.plan.use_count() == 1 &&
                  (!feed.compact.has_value() || feed.compact->plan.use_count() == 1) &&
                  kept.has_where() && (kept.peer == peer || !kept.IsFresh(now));
         }) > 0;
}

void ServedFeeds::TellWhatIsFetched(const FeedPlan& plan) const {
  const EpochBytes epoch = EpochBytesOf(plan, room_);
  if (epoch.set_bytes == 0) return;
  std::string text = absl::StrFormat("feed %016x over dataset '%s': %s", plan.fingerprint(),
                                     plan.dataset().name(), EpochText(plan, epoch));
  if (const std::optional<WindowProposal> window = ProposeWindow(plan, room_);
      window.has_value() && IsWorthIt(epoch, *window)) {
    absl::StrAppend(&text, "; `", SpecText(*window), "` ", CostText(*window));
  }
  events_.Add(LogCause::kPlanned, LogLevel::kInfo, text,
              {.feed = plan.fingerprint(), .dataset = plan.dataset().name()});
}

absl::StatusOr<std::shared_ptr<const ServedFeed>> ServedFeeds::Find(
    const v1::FeedSpec& spec, Catalogue::IsPermitted may_read) {
  const std::string key = spec.SerializeAsString();
  {
    MutexLock lock(mu_);
    if (std::shared_ptr<const ServedFeed> known = Known(key); known != nullptr) return known;
  }
  if (WhereColumns(spec).empty()) return Make(spec, key, "", may_read);
  return absl::UnavailableError(
      "this server has not looked up the records that meet the feed's `where` yet; call "
      "ResolveFeed, which waits until it has");
}

void ServedFeeds::Resolve(const v1::FeedSpec& spec, Catalogue::IsPermitted may_read,
                          FeedMakers::Request request) {
  absl::StatusOr<std::shared_ptr<const ServedFeed>> known = Find(spec, may_read);
  if (known.ok() || WhereColumns(spec).empty()) {
    request.done(std::move(known));
    return;
  }
  absl::StatusOr<FeedMakers::Work> work = WorkFor(spec, request.peer, may_read);
  if (!work.ok()) {
    request.done(work.status());
    return;
  }
  makers_.Add(*std::move(work), std::move(request));
}

absl::StatusOr<FeedMakers::Work> ServedFeeds::WorkFor(const v1::FeedSpec& spec,
                                                      const std::string& peer,
                                                      Catalogue::IsPermitted may_read) {
  SYSTOLE_RETURN_IF_ERROR(CheckMembers(spec));
  FeedMakers::Work work;
  const std::shared_ptr<const Catalogue> catalogue = this->catalogue();
  for (const std::string& name : DatasetsOf(spec)) {
    SYSTOLE_ASSIGN_OR_RETURN(const std::shared_ptr<const Dataset> dataset,
                             catalogue->Find(name, may_read));
    work.datasets.push_back(dataset->number());
  }
  // A dataset that replaces another one under the same name has another number. Requests for feeds
  // of the new dataset must not wait for feeds of the old one.
  const std::string key = spec.SerializeAsString();
  work.key = absl::StrCat(absl::StrJoin(work.datasets, ","), ";", key);
  work.make = [this, spec, key, peer]() -> FeedMakers::Made {
    const std::vector<std::string> names = DatasetsOf(spec);
    SYSTOLE_RETURN_IF_ERROR(this->catalogue()->CheckServed(names));
    // Every caller that waits for this feed may read these datasets, but perhaps no other dataset.
    // So errors name only these datasets.
    return Make(spec, key, peer, [&names](absl::string_view name) {
      return std::find(names.begin(), names.end(), name) != names.end();
    });
  };
  return work;
}

absl::StatusOr<std::shared_ptr<const ServedFeed>> ServedFeeds::Make(
    const v1::FeedSpec& spec, const std::string& key, const std::string& peer,
    Catalogue::IsPermitted may_read) {
  const std::shared_ptr<const Catalogue> catalogue = this->catalogue();
  SYSTOLE_ASSIGN_OR_RETURN(
      std::shared_ptr<const Dataset> dataset,
      DatasetOf(spec, [&](const std::string& name) { return catalogue->Find(name, may_read); }));
  absl::StatusOr<std::shared_ptr<const FeedPlan>> made =
      FeedPlan::Create(spec, dataset, lists_, peer);
  // The peer has as many lists of records as one peer may have. Perhaps some of these lists belong
  // to feeds that no stream reads any more.
  if (absl::IsResourceExhausted(made.status()) && ForgetIdle(peer)) {
    made = FeedPlan::Create(spec, dataset, lists_, peer);
  }
  SYSTOLE_ASSIGN_OR_RETURN(std::shared_ptr<const FeedPlan> plan, std::move(made));
  std::optional<CompactFeed> compact = CompactFeedOf(*plan, std::move(dataset));
  const auto feed = std::make_shared<const ServedFeed>(
      ServedFeed{.plan = std::move(plan), .compact = std::move(compact)});
  {
    MutexLock lock(mu_);
    // Another call may have planned the same feed meanwhile.
    if (std::shared_ptr<const ServedFeed> known = Known(key); known != nullptr) return known;
    // If the catalogue has changed meanwhile, the feed is kept only if its datasets are the same in
    // the new catalogue.
    if (HaveTheSame(DatasetsOf(spec), *catalogue, *catalogue_)) {
      Keep({.key = key, .feed = feed, .peer = peer, .asked_at = ticks_});
    }
  }
  TellWhatIsFetched(*feed->plan);
  return feed;
}

v1::FeedIdentity IdentityOf(const FeedPlan& plan) {
  v1::FeedIdentity identity;
  identity.set_dataset_fingerprint(plan.dataset().fingerprint());
  identity.set_order_fingerprint(plan.order_fingerprint());
  identity.set_content_version(ContentVersion());
  identity.set_spec_fingerprint(plan.fingerprint());
  return identity;
}

v1::ResolveFeedResponse DescribeFeed(const ServedFeed& feed, bool compact) {
  v1::ResolveFeedResponse response;
  const FeedPlan& plan = *feed.plan;
  DescribeLayout(plan.layout(), response);
  DescribeRuns(plan, response);
  if (compact && feed.compact.has_value()) DescribeForms(*feed.compact, response);
  response.set_steps_per_epoch(plan.order().steps_per_epoch());
  response.set_total_steps(plan.order().total_steps().value_or(0));
  response.set_bytes_per_step(plan.layout().payload_bytes() * plan.num_cores());
  *response.mutable_identity() = IdentityOf(plan);
  response.set_num_records(plan.dataset().num_records());
  const auto add = [](absl::Span<const int64_t> records,
                      google::protobuf::RepeatedField<int64_t>* to) {
    to->Add(records.begin(), records.end());
  };
  for (const WhereList& list : plan.where_lists()) {
    response.add_where_records(list.records);
    response.add_where_hashes(list.hash);
  }
  const absl::Span<const std::shared_ptr<const Dataset>> members = plan.dataset().members();
  if (members.empty() && SelectsByShards(plan.spec())) {
    add(plan.dataset().records_per_shard(), response.mutable_records_per_shard());
  }
  for (size_t i = 0; i < members.size(); ++i) {
    v1::MemberRecords& member = *response.add_members();
    member.set_num_records(members[i]->num_records());
    if (!SelectsByShards(plan.spec(), static_cast<int>(i))) continue;
    add(members[i]->records_per_shard(), member.mutable_records_per_shard());
  }
  return response;
}

}  // namespace systole
