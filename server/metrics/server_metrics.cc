#include "server/metrics/server_metrics.h"

#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/batch/stage_times.h"
#include "core/cache/cache_metrics.h"
#include "core/concurrency/processors.h"
#include "core/process/allocator.h"
#include "server/streams/end_cause.h"

namespace systole {
namespace {

constexpr MetricKind kCounter = MetricKind::kCounter;
constexpr MetricKind kGauge = MetricKind::kGauge;

// CPU time of this process, user and system.
double CpuSeconds() {
  rusage usage;
  if (getrusage(RUSAGE_SELF, &usage) != 0) return 0;
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

template <auto field>
double Service(const ServerNumbers& numbers) {
  return static_cast<double>((numbers.service.*field).load(std::memory_order_relaxed));
}

template <auto field>
double Engine(const ServerNumbers& numbers) {
  return static_cast<double>(numbers.engine.*field);
}

template <auto field>
double Blocks(const ServerNumbers& numbers) {
  return static_cast<double>(numbers.engine.reads.*field);
}

template <auto field>
double AtListener(const ServerNumbers& numbers) {
  return static_cast<double>(numbers.listener.*field);
}

template <auto stage>
double Stage(const ServerNumbers& numbers) {
  return absl::ToDoubleSeconds(numbers.engine.stages.*stage);
}

template <DamageCause cause>
double Masked(const ServerNumbers& numbers) {
  return static_cast<double>(numbers.masked_examples[static_cast<size_t>(cause)]);
}

template <auto field>
double Wheres(const ServerNumbers& numbers) {
  return static_cast<double>(numbers.wheres.*field);
}

template <auto field>
double Spans(const ServerNumbers& numbers) {
  return static_cast<double>(numbers.spans.*field);
}

// The sum over the causes that one label value stands for.
template <EndCause... causes>
double Refused(const ServerNumbers& numbers) {
  return static_cast<double>((numbers.service.refused.of(causes) + ...));
}

template <EndCause... causes>
double Ended(const ServerNumbers& numbers) {
  return static_cast<double>((numbers.service.ended.of(causes) + ...));
}

}  // namespace

std::vector<MetricLine<ServerNumbers>> ServerMetrics() {
  using Counters = ServiceCounters;
  using Stats = StepEngine::Stats;
  return {
      {.name = "active_streams",
       .kind = kGauge,
       .help = "Streams that run now.",
       .read = Service<&Counters::active_streams>},
      {.name = "stream_places",
       .kind = kGauge,
       .help = "Places for streams.",
       .label = "state",
       .parts = {{"free",
                  [](const ServerNumbers& numbers) {
                    return std::max(0.0, static_cast<double>(numbers.max_streams) -
                                             Service<&Counters::active_streams>(numbers));
                  }},
                 {"taken", Service<&Counters::active_streams>}}},
      {.name = "draining",
       .kind = kGauge,
       .help = "1 while the server drains, else 0.",
       .read = [](const ServerNumbers& numbers) { return numbers.service.draining ? 1.0 : 0.0; }},
      {.name = "datasets",
       .kind = kGauge,
       .help = "Datasets of the config.",
       .label = "state",
       .parts = {{"served", ReadField<&ServerNumbers::datasets_served>},
                 {"refused", ReadField<&ServerNumbers::datasets_refused>, "the log says why"}}},
      {.name = "streams_opened",
       .kind = kCounter,
       .help = "Streams opened.",
       .read = Service<&Counters::streams_opened>},
      {.name = "stream_ends",
       .kind = kCounter,
       .help = "Streams that have ended.",
       .label = "reason",
       .parts = {{"complete", Ended<EndCause::kNone>, "all was sent"},
                 {"drained", Ended<EndCause::kDraining>, "the server drains"},
                 {"client_gone", Ended<EndCause::kClientGone>,
                  "the client cancelled, or its connection ended"},
                 {"gave_place", Ended<EndCause::kGavePlace>, "its place went to another peer"},
                 {"stalled", Ended<EndCause::kStalled>,
                  "its client took nothing for `--stalled-stream-timeout`"},
                 {"not_permitted", Ended<EndCause::kNotPermitted, EndCause::kUnauthenticated>,
                  "its token or permission was withdrawn"},
                 {"removed", Ended<EndCause::kRemoved>, "its dataset was removed from the config"},
                 // Counts kBadRequest, too: some errors that end a stream have a code that means a
                 // bad request.
                 {"failed", Ended<EndCause::kFailed, EndCause::kBadRequest>,
                  "such as damaged records, storage that does not answer, shards that changed"}}},
      {.name = "requests_refused",
       .kind = kCounter,
       .help = "Requests refused, of all methods.",
       .label = "reason",
       .parts = {{"unauthenticated", Refused<EndCause::kUnauthenticated>,
                  "a credential is missing or not valid"},
                 {"not_permitted", Refused<EndCause::kNotPermitted>,
                  "the caller lacks the permission; says nothing on whether the dataset exists"},
                 {"no_place", Refused<EndCause::kNoPlace>, "no place for another stream"},
                 // Counts kRemoved, too: a dataset may be removed while a request waits.
                 {"bad_request", Refused<EndCause::kBadRequest, EndCause::kRemoved>,
                  "it cannot be served as it is"},
                 {"draining", Refused<EndCause::kDraining>, "the server drains"},
                 {"other", Refused<EndCause::kFailed>, "anything else"}}},
      {.name = "where_requests_waiting",
       .kind = kGauge,
       .help = "Requests that wait until the server has looked up the records of their `where`.",
       .read = Wheres<&WhereCounts::waiting>},
      {.name = "where_look_ups",
       .kind = kCounter,
       .help = "Feeds with a `where` whose records the server has looked up.",
       .label = "result",
       .parts = {{"made", Wheres<&WhereCounts::made>, "the feed was made"},
                 {"failed", Wheres<&WhereCounts::failed>,
                  "for example, a column is missing or cannot be read, or no request waits "
                  "for the feed any more"}}},
      {.name = "steps_served",
       .kind = kCounter,
       .help =
           "Steps sent. Of each step a client gets only the slices of the cores that it asked for.",
       .read = Service<&Counters::steps_served>},
      {.name = "examples_made",
       .kind = kCounter,
       .help = "Examples read, decoded and put into batches.",
       .read = Engine<&Stats::examples_made>},
      {.name = "slices_shared",
       .kind = kCounter,
       .help = "Slices that a stream took from another stream of the same feed instead of "
               "making them.",
       .read = Engine<&Stats::slices_shared>},
      {.name = "payload_bytes",
       .kind = kCounter,
       .help = "Bytes of tensors sent.",
       .read = Service<&Counters::payload_bytes>},
      {.name = "shared_payload_bytes",
       .kind = kCounter,
       .help = "The part of payload_bytes that went through shared memory.",
       .read = Service<&Counters::shared_payload_bytes>},
      {.name = "ready_slices",
       .kind = kGauge,
       .help = "Slices that are made ahead. A step has a slice for each core.",
       .label = "state",
       .parts =
           {{"waiting", Engine<&Stats::slices_ready>,
             "their stream still sends earlier slices; a slice that two streams wait for counts "
             "twice"},
            {"kept", Engine<&Stats::slices_kept>,
             "kept for streams of the same feed that will send these slices later"}}},
      {.name = "stage_seconds",
       .kind = kCounter,
       .help =
           "The time that slices spent in each stage, added up. The rate of this counter is the "
           "mean number of slices in the stage.",
       .label = "stage",
       .parts =
           {{"read", Stage<&StageTimes::read>,
             "all of their examples that were not made yet waited for storage"},
            {"make", Stage<&StageTimes::make>, "their examples were made, or waited for a thread"},
            {"wait", Stage<&StageTimes::wait>,
             "they were done, but their stream was still sending earlier slices"},
            {"send", Service<&Counters::send_seconds>,
             "they waited for gRPC to take them, because the network or the client was slow"}}},
      {.name = "masked_examples",
       .kind = kCounter,
       .help = "Examples masked in feeds, of all datasets, by what was wrong with the record.",
       .label = "cause",
       .parts = {{"checksum", Masked<DamageCause::kChecksum>,
                  "its bytes do not match their checksum"},
                 {"record", Masked<DamageCause::kRecord>,
                  "the record is not whole: the file was cut, or a header is damaged"},
                 {"too_large", Masked<DamageCause::kTooLarge>,
                  "the record is larger than a record may be"},
                 {"format", Masked<DamageCause::kFormat>,
                  "its bytes are not of its format, such as tf.train.Example"},
                 {"feature", Masked<DamageCause::kFeature>,
                  "a feature is missing, or has another type or number of values"},
                 {"image", Masked<DamageCause::kImage>,
                  "an image cannot be decoded or transformed"},
                 {"value", Masked<DamageCause::kValue>,
                  "a value that is no image cannot be transformed, such as a label that label_map "
                  "lacks"}}},
      {.name = "open_connections",
       .kind = kGauge,
       .help = "Connections that are open now.",
       .read = AtListener<&ListenerCounters::open>},
      {.name = "connections_accepted",
       .kind = kCounter,
       .help = "Connections let in.",
       .read = AtListener<&ListenerCounters::let_in>},
      {.name = "connections_turned_away",
       .kind = kCounter,
       .help = "Connections closed at once.",
       .label = "reason",
       .parts = {{"over_total", AtListener<&ListenerCounters::over_total>, "`--max-connections`"},
                 {"over_peer", AtListener<&ListenerCounters::over_peer>,
                  "`--max-connections-per-peer`"},
                 {"no_descriptor", AtListener<&ListenerCounters::no_descriptor>,
                  "no file descriptor left"}}},
      {.name = "connections_dropped",
       .kind = kCounter,
       .help = "Connections closed later.",
       .label = "reason",
       .parts = {{"no_call", AtListener<&ListenerCounters::no_call>,
                  "made no call for the sum of `--idle-timeout` and `--handshake-timeout`"},
                 {"sent_too_much", AtListener<&ListenerCounters::sent_too_much>,
                  "sent more than its calls account for"},
                 {"cost_most", AtListener<&ListenerCounters::cost_most>,
                  "cost the most memory when all connections together cost too much"}}},
      {.name = "memory_budget_bytes",
       .kind = kGauge,
       .help = "The most memory that slices may take: three quarters of `--memory-budget`.",
       .read = Engine<&Stats::memory_budget_bytes>},
      {.name = "memory_used_bytes",
       .kind = kGauge,
       .help = "Memory that slices take now.",
       .read = Engine<&Stats::memory_used_bytes>},
      {.name = "scratch_bytes",
       .kind = kGauge,
       .help = "Memory that threads take now to make examples, besides the slices.",
       .read = Engine<&Stats::scratch_used_bytes>},
      {.name = "resident_bytes",
       .kind = kGauge,
       .help = "Resident memory of the process, without mapped pages of the program and of shards. "
               "0: not known.",
       .read = [](const ServerNumbers&) { return static_cast<double>(OwnResidentBytes()); }},
      {.name = "threads",
       .kind = kGauge,
       .help =
           "Threads that may work at once now: `--threads`, or more while some wait for storage.",
       .read = Engine<&Stats::threads>},
      {.name = "threads_stuck",
       .kind = kGauge,
       .help = "Threads whose read of a shard hangs now.",
       .read = Engine<&Stats::threads_stuck>},
      {.name = "reads_timed_out",
       .kind = kCounter,
       .help = "Steps that failed because a read did not return for `--read-timeout`.",
       .read = Engine<&Stats::reads_timed_out>},
      {.name = "block_bytes",
       .kind = kCounter,
       .help =
           "Bytes of records that feeds took from buckets, web servers and network file systems, "
           "by where the bytes were.",
       .label = "from",
       .parts = {{"storage", Blocks<&BlockReaderStats::bytes_read>, "read"},
                 {"memory", Blocks<&BlockReaderStats::bytes_from_memory>,
                  "kept within `--read-budget`"},
                 {"disk", Blocks<&BlockReaderStats::bytes_from_disk>, "kept in `--block-cache`"}}},
      {.name = "block_memory_bytes",
       .kind = kGauge,
       .help =
           "Memory of records that are read ahead and of records that are kept. `--read-budget` "
           "bounds this memory.",
       .read = Blocks<&BlockReaderStats::memory_bytes>},
      {.name = "block_reads_under_way",
       .kind = kGauge,
       .help =
           "Requests to buckets, web servers and network file systems now, also those that hang.",
       .read = Blocks<&BlockReaderStats::reads_under_way>},
      {.name = "block_reads_hung",
       .kind = kGauge,
       .help = "The part of block_reads_under_way that has taken longer than `--read-timeout`.",
       .read = Blocks<&BlockReaderStats::reads_hung>},
      {.name = "block_reads_failed",
       .kind = kCounter,
       .help = "Reads from buckets, web servers and network file systems that failed, by cause.",
       .label = "cause",
       .parts = {{"error", Blocks<&BlockReaderStats::blocks_failed>, "an error"},
                 {"timeout", Blocks<&BlockReaderStats::blocks_timed_out>, "`--read-timeout`"}}},
      {.name = "block_reads_hedged",
       .kind = kCounter,
       .help = "Slow reads for whose bytes a second request was sent.",
       .read = Blocks<&BlockReaderStats::reads_hedged>},
      {.name = "spans_sent",
       .kind = kCounter,
       .help = "Spans that the collector of traces took (`--otlp-endpoint`).",
       .read = Spans<&SpanCounts::sent>},
      {.name = "spans_dropped",
       .kind = kCounter,
       .help = "Spans that no collector got, and calls for which no span was made.",
       .label = "reason",
       .parts = {{"no_room", Spans<&SpanCounts::no_room>, "too many waited to be sent"},
                 {"refused", Spans<&SpanCounts::refused>, "the collector refused them"},
                 {"not_reached", Spans<&SpanCounts::not_reached>,
                  "the collector did not take them in time"},
                 {"too_many_calls", Spans<&SpanCounts::too_many>,
                  "calls beyond the rate at which calls are traced"}}},
      {.name = "cpu_seconds",
       .kind = kCounter,
       .help = "Processor time of the process, user and system, all threads.",
       .read = [](const ServerNumbers&) { return CpuSeconds(); }},
      {.name = "cpus",
       .kind = kGauge,
       .help = "Processors that the process may use.",
       .read = [](const ServerNumbers&) { return static_cast<double>(UsableProcessors()); }},
  };
}

std::vector<MetricReading> ReadServerMetrics(const ServerNumbers& numbers) {
  std::vector<MetricReading> readings = ReadMetrics(ServerMetrics(), numbers);
  for (MetricReading& reading : ReadMetrics(CacheMetrics(), numbers.cache)) {
    readings.push_back(std::move(reading));
  }
  return readings;
}

MetricFamily StepWaitFamily(const HistogramReading& step_waits) {
  return {.name = absl::StrCat(kServerMetricPrefix, "step_wait_seconds"),
          .kind = MetricKind::kHistogram,
          .help = "How long streams waited for their next step. 0: the step was ready.",
          .samples = {{.labels = {}, .histogram = step_waits}}};
}

}  // namespace systole
