#include "client/step/feed_metrics.h"

#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

namespace systole {
namespace {

template <WaitCause cause>
double Waited(const FeedClientStats& stats) {
  return stats.waits.times.of(cause);
}

// 1 if `limit` is what has limited the feed lately, otherwise 0. A monitor can draw these numbers
// over time.
template <FeedLimit limit>
double IsRecentLimit(const FeedClientStats& stats) {
  return stats.waits.recent.limit == limit ? 1 : 0;
}

template <FeedLimit limit>
MetricPart<FeedClientStats> RecentLimit() {
  return {LimitName(limit), IsRecentLimit<limit>};
}

}  // namespace

std::vector<MetricLine<FeedClientStats>> FeedMetrics() {
  using Stats = FeedClientStats;
  constexpr MetricKind kCounter = MetricKind::kCounter;
  constexpr MetricKind kGauge = MetricKind::kGauge;
  return {
      {.name = "steps_received",
       .kind = kCounter,
       .help = "Steps that were received in full.",
       .read = ReadField<&Stats::steps_received>},
      {.name = "examples_taken",
       .kind = kCounter,
       .help =
           "Examples of the steps that the trainer took. Places without an example do not count.",
       .read = ReadField<&Stats::examples_taken>},
      {.name = "next_step",
       .kind = kGauge,
       .help =
           "The number of the step that the trainer takes next. A token that is made now begins "
           "with this step.",
       .read = ReadField<&Stats::next_step>},
      {.name = "ready_steps",
       .kind = kGauge,
       .help = "Steps that the trainer can take at once, one after the other.",
       .read = ReadField<&Stats::ready_steps>},
      {.name = "buffered_bytes",
       .kind = kGauge,
       .help = "Memory of complete steps that the trainer has not taken. Complete steps behind a "
               "missing step count too.",
       .read = ReadField<&Stats::buffered_bytes>},
      {.name = "delivered_bytes",
       .kind = kCounter,
       .help = "Bytes of the tensors of steps received, as the trainer gets them.",
       .read = ReadField<&Stats::delivered_bytes>},
      {.name = "payload_bytes",
       .kind = kCounter,
       .help = "Bytes of tensors as they travelled. Bytes that were received twice count twice.",
       .read = ReadField<&Stats::payload_bytes>},
      {.name = "shared_payload_bytes",
       .kind = kCounter,
       .help = "The part of payload_bytes that came through shared memory.",
       .read = ReadField<&Stats::shared_payload_bytes>},
      {.name = "compact_steps",
       .kind = kCounter,
       .help = "Received steps that travelled compactly and were finished by the client.",
       .read = ReadField<&Stats::compact_steps>},
      {.name = "streams_lost",
       .kind = kCounter,
       .help = "How often a lane lost its server to an error, a drain or silence. Failed attempts "
               "count too.",
       .read = ReadField<&Stats::streams_lost>},
      {.name = "retries",
       .kind = kCounter,
       .help = "The part of streams_lost after which steps or an answer were requested again.",
       .read = ReadField<&Stats::retries>},
      {.name = "hedges_won",
       .kind = kCounter,
       .help = "Second copies of late steps, from another server, that came before the first copy.",
       .read = ReadField<&Stats::hedges_won>},
      {.name = "hedges_lost",
       .kind = kCounter,
       .help = "Second copies of late steps, from another server, that came after the first copy "
               "or not at all.",
       .read = ReadField<&Stats::hedges_lost>},
      {.name = "relieved_steps",
       .kind = kCounter,
       .help = "Steps that went to another server because their server lagged behind.",
       .read = ReadField<&Stats::relieved_steps>},
      {.name = "probes",
       .kind = kCounter,
       .help = "How often a server that had failed or lagged was asked whether it can serve "
               "again.",
       .read = ReadField<&Stats::probes>},
      {.name = "servers_in_use",
       .kind = kGauge,
       .help = "Servers that the feed uses now. Of a long list it uses as few as are needed.",
       .read = ReadField<&Stats::servers_in_use>},
      {.name = "membership_changes",
       .kind = kCounter,
       .help = "Servers that joined or left the list since the first step was asked for.",
       .read = ReadField<&Stats::membership_changes>},
      {.name = "bad_server_lists",
       .kind = kCounter,
       .help = "How often reading the list of servers failed. A repeated error counts once. The "
               "last good list is used meanwhile.",
       .read = ReadField<&Stats::bad_server_lists>},
      {.name = "longest_wait_seconds",
       .kind = kGauge,
       .help =
           "The longest that the trainer waited for a step. The wait for the first step does not "
           "count, because servers begin in that time.",
       .read = [](const Stats& stats) { return absl::ToDoubleSeconds(stats.longest_wait); }},
      {.name = "longest_wait_step",
       .kind = kGauge,
       .help = "The number of the step that the trainer waited for longest.",
       .read = ReadField<&Stats::longest_wait_step>},
      {.name = "waiting_seconds",
       .kind = kGauge,
       .help = "For how long the trainer has been waiting for its next step. 0: it does not wait.",
       .read = [](const Stats& stats) { return absl::ToDoubleSeconds(stats.waiting); }},
      {.name = "trainer_seconds",
       .kind = kCounter,
       .help = "The time from the trainer's first step to its last step. The wait for the first "
               "step, in which servers begin, is part neither of this time nor of "
               "trainer_wait_seconds.",
       .read = [](const Stats& stats) { return stats.waits.times.seconds; }},
      {.name = "trainer_wait_seconds",
       .kind = kCounter,
       .help =
           "The part of trainer_seconds in which the trainer waited for a step, by what happened "
           "to the step in that time.",
       .label = "cause",
       .parts = {{"storage", Waited<WaitCause::kStorage>, "its records were read"},
                 {"decode", Waited<WaitCause::kDecode>,
                  "its examples were made, or waited for a processor"},
                 {"wire", Waited<WaitCause::kWire>,
                  "the step, or the request for it, was on the way"},
                 {"client", Waited<WaitCause::kClient>,
                  "the step was checked, copied or finished by the client"},
                 {"unknown", Waited<WaitCause::kUnknown>,
                  "a server of an older release does not say"}}},
      {.name = "recent_wait_ratio",
       .kind = kGauge,
       .help = "The part of the time in which the trainer waited for steps, 0 to 1. The last steps "
               "count most, those of half a minute ago hardly anything.",
       .read = [](const Stats& stats) { return stats.waits.recent.waits; }},
      {.name = "recent_limit",
       .kind = kGauge,
       .help =
           "What limits the feed, in the time of recent_wait_ratio: 1 for one of the values, 0 for "
           "the others.",
       .label = "limit",
       .parts = {RecentLimit<FeedLimit::kStorage>(), RecentLimit<FeedLimit::kDecode>(),
                 RecentLimit<FeedLimit::kWire>(), RecentLimit<FeedLimit::kClient>(),
                 RecentLimit<FeedLimit::kTrainer>(), RecentLimit<FeedLimit::kNothing>(),
                 RecentLimit<FeedLimit::kUnknown>()}},
      {.name = "masked_examples",
       .kind = kCounter,
       .help = "Examples that the trainer got as zeros, because their records are damaged and "
               "the spec says MASK.",
       .read = ReadField<&Stats::masked_examples>},
      {.name = "padded_examples",
       .kind = kCounter,
       .help = "Examples that the trainer got as padding: after an epoch's last record (tail: "
               "PAD), or where `split` leaves a place empty.",
       .read = ReadField<&Stats::padded_examples>},
      {.name = "damaged_chunks",
       .kind = kCounter,
       .help = "Chunks damaged on the way, found by a checksum, and fetched again. Each also "
               "counts in streams_lost. Look for a bad network card or proxy.",
       .read = ReadField<&Stats::damaged_chunks>},
      {.name = "damaged_requests",
       .kind = kCounter,
       .help = "Requests damaged on the way, as servers report, and sent again. Each also counts "
               "in streams_lost.",
       .read = ReadField<&Stats::damaged_requests>},
      {.name = "damaged_answers",
       .kind = kCounter,
       .help = "Answers to ResolveFeed damaged on the way and asked for again. Each also counts in "
               "streams_lost.",
       .read = ReadField<&Stats::damaged_answers>},
  };
}

std::vector<MetricFamily> FeedHistograms(const FeedClientStats& stats) {
  return {{.name = absl::StrCat(kFeedMetricPrefix, "step_wait_seconds"),
           .kind = MetricKind::kHistogram,
           .help = "How long the trainer waited for each step that it took. The first step is left "
                   "out, as in trainer_wait_seconds.",
           .samples = {{.histogram = stats.step_waits.Read()}}}};
}

std::vector<MetricFamily> FeedFamilies(const FeedClientStats& stats) {
  std::vector<MetricFamily> families = FamiliesOf(kFeedMetricPrefix, ReadFeedMetrics(stats));
  std::vector<MetricFamily> histograms = FeedHistograms(stats);
  families.insert(families.end(), std::make_move_iterator(histograms.begin()),
                  std::make_move_iterator(histograms.end()));
  return families;
}

}  // namespace systole
