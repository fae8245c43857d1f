#include "server/metrics/trainer_metrics.h"

#include "core/batch/feed_limit.h"

namespace systole {
namespace {

template <FeedLimit limit>
double LimitedBy(const TrainerTotals& totals) {
  return static_cast<double>(totals.limited_by(limit));
}

template <FeedLimit limit>
MetricPart<TrainerTotals> Limit(absl::string_view help) {
  return {LimitName(limit), LimitedBy<limit>, help};
}

std::vector<MetricLine<TrainerTotals>> TrainerMetrics() {
  using Totals = TrainerTotals;
  constexpr MetricKind kGauge = MetricKind::kGauge;
  return {
      {.name = "trainer_wait_ratio",
       .kind = kGauge,
       .help = "The part of the last seconds in which trainers waited for steps, from 0 to 1, as "
               "their clients report it. 0 if no client reports it.",
       .label = "statistic",
       .parts = {{"mean", ReadField<&Totals::mean_waits>, "of all trainers"},
                 {"max", ReadField<&Totals::max_waits>, "the trainer that waits most"}}},
      {.name = "trainers_reporting",
       .kind = kGauge,
       .help = "Trainers whose clients have said in the last 30 s how long they wait.",
       .read = ReadField<&Totals::trainers>},
      {.name = "trainer_limits",
       .kind = kGauge,
       .help = "Trainers that report, by what limits their feed.",
       .label = "limit",
       .parts = {Limit<FeedLimit::kStorage>("they wait for records to be read"),
                 Limit<FeedLimit::kDecode>("they wait for examples to be made"),
                 Limit<FeedLimit::kWire>("they wait for the network"),
                 Limit<FeedLimit::kClient>("they wait for their own process"),
                 Limit<FeedLimit::kTrainer>("they hardly wait, and steps wait for them"),
                 Limit<FeedLimit::kNothing>("they hardly wait, and steps come just in time"),
                 Limit<FeedLimit::kUnknown>("their clients do not know")}},
  };
}

}  // namespace

std::vector<MetricReading> ReadTrainerMetrics(const TrainerTotals& totals) {
  return ReadMetrics(TrainerMetrics(), totals);
}

}  // namespace systole
