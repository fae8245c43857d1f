#include "client/python/extension/feed_handle.h"

#include <unistd.h>

#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "client/feed/feed_client.h"
#include "client/local/local_feed.h"
#include "client/python/extension/compression_name.h"
#include "client/python/extension/feed_options.h"
#include "client/python/extension/log_lines.h"
#include "client/python/extension/metric_values.h"
#include "client/python/extension/process_engine.h"
#include "client/python/extension/raise.h"
#include "client/python/extension/specs.h"
#include "client/python/extension/without_gil.h"
#include "client/step/feed_metrics.h"
#include "client/step/step.h"
#include "client/verdict/feed_verdict.h"
#include "core/cache/cache_metrics.h"
#include "core/concurrency/mutex.h"
#include "core/dataset/dataset.h"
#include "core/dataset/record_lists.h"
#include "core/metrics/metric.h"
#include "core/order/resume_token.h"
#include "core/storage/byte_source.h"
#include "core/tensor/dtype.h"
#include "core/text/foreign_text.h"
#include "nanobind/stl/optional.h"
#include "nanobind/stl/pair.h"
#include "nanobind/stl/shared_ptr.h"
#include "nanobind/stl/string.h"
#include "nanobind/stl/unique_ptr.h"
#include "nanobind/stl/vector.h"

namespace nb = nanobind;

namespace systole::python {
namespace {

absl::Status Closed() { return absl::FailedPreconditionError("the feed is closed"); }

// Returns the same bytes with another owner. In a child of fork(), this owner does not give the
// bytes back: for this the child would have to take a lock, and a thread of the parent may have
// held this lock at the fork.
std::shared_ptr<const uint8_t> OwnedByThisProcess(const std::shared_ptr<const uint8_t>& bytes) {
  const auto* const owner = new std::shared_ptr<const uint8_t>(bytes);
  return {bytes.get(), [owner, process = getpid()](const uint8_t*) {
            if (getpid() == process) delete owner;
          }};
}

std::optional<ResumeToken> TokenOf(const std::optional<std::string>& text) {
  if (!text.has_value()) return std::nullopt;
  return ValueOrRaise(ResumeToken::Decode(*text));
}

std::unique_ptr<FeedHandle> OpenClient(const nb::bytes& serialized,
                                       std::vector<std::string> servers,
                                       const std::optional<std::string>& token,
                                       std::pair<int, int> cores, const nb::dict& keywords) {
  const v1::FeedSpec spec = ParseSpec(serialized);
  const std::optional<ResumeToken> resumed = TokenOf(token);
  auto lines = std::make_shared<LogLines>();
  FeedClientOptions options = {.servers = std::move(servers),
                               .core_begin = cores.first,
                               .core_end = cores.second,
                               .placement = StepPlacement::kTensorMajor,
                               .start_at_once = false,
                               .interrupted = SignalRaised,
                               .log = LogInto(lines)};
  SetFeedOptions(keywords, options);
  auto client = WithoutGil([&] {
    return resumed.has_value() ? FeedClient::Resume(spec, *resumed, options)
                               : FeedClient::Create(spec, options);
  });
  lines->HandOn();
  return std::make_unique<FeedHandle>(ValueOrRaise(std::move(client)), spec, std::move(lines));
}

std::unique_ptr<FeedHandle> OpenLocal(
    const nb::bytes& serialized, const std::shared_ptr<Dataset>& dataset,
    const std::shared_ptr<RecordLists>& lists, const std::optional<std::string>& token,
    std::pair<int, int> cores, std::optional<int> threads, int processors, int64_t prefetch_bytes,
    const std::shared_ptr<ValueCache>& cache, bool allow_mixed_content) {
  const v1::FeedSpec spec = ParseSpec(serialized);
  const std::optional<ResumeToken> resumed = TokenOf(token);
  auto lines = std::make_shared<LogLines>();
  LocalFeedOptions options = {.engine = EngineForFeed(threads, processors),
                              .prefetch_bytes = prefetch_bytes,
                              .lists = lists,
                              .cache = cache,
                              .core_begin = cores.first,
                              .core_end = cores.second,
                              .allow_mixed_content = allow_mixed_content,
                              .log = LogInto(lines)};
  // Opening a feed may read all records, to make columns. So Ctrl-C must be able to end the
  // opening.
  auto feed = Interruptibly([&] {
    // `own` is destroyed before the GIL is taken again. If `own` is the last owner of the engine,
    // the engine's destructor joins threads, and the GIL should not be held while they end.
    const LocalFeedOptions own = std::move(options);
    return resumed.has_value() ? LocalFeed::Resume(spec, dataset, *resumed, own)
                               : LocalFeed::Create(spec, dataset, own);
  });
  lines->HandOn();
  return std::make_unique<FeedHandle>(ValueOrRaise(std::move(feed)), spec, std::move(lines));
}

std::shared_ptr<Dataset> OpenDataset(const std::string& name,
                                     const std::vector<std::string>& patterns,
                                     const std::string& index_dir, bool write_index,
                                     const std::string& compression, int64_t expect_records,
                                     int64_t expect_bytes) {
  ShardOptions options = {.index_dir = index_dir, .write_index = write_index};
  options.compression = CompressionToRead(compression);
  return ValueOrRaise(Interruptibly([&] {
    return Dataset::Open(name, patterns, options,
                         {.records = expect_records, .bytes = expect_bytes});
  }));
}

std::shared_ptr<ValueCache> MakeCache(int64_t memory_bytes, const std::string& disk_folder,
                                      int64_t disk_bytes) {
  if (memory_bytes < 0 || disk_bytes < 0) {
    RaiseIfError(absl::InvalidArgumentError(absl::StrCat("a cache of ", memory_bytes,
                                                         " bytes of memory and ", disk_bytes,
                                                         " on disk; want 0 or more")));
  }
  auto cache = WithoutGil([&] {
    return ValueCache::Create(
        {.memory_bytes = memory_bytes, .disk_folder = disk_folder, .disk_bytes = disk_bytes});
  });
  return ValueOrRaise(std::move(cache));
}

nb::dict CacheStats(const ValueCache& cache) {
  return MetricsDict(ReadMetrics(CacheMetrics(), cache.stats()));
}

std::shared_ptr<Dataset> JoinDatasets(const std::vector<std::shared_ptr<Dataset>>& members) {
  if (members.empty()) RaiseIfError(absl::InvalidArgumentError("there are no datasets to join"));
  return ValueOrRaise(Dataset::Join({members.begin(), members.end()}));
}

std::shared_ptr<Dataset> ZipDatasets(
    const std::vector<std::pair<std::shared_ptr<Dataset>, std::string>>& members) {
  if (members.empty()) RaiseIfError(absl::InvalidArgumentError("there are no datasets to zip"));
  std::vector<ZippedMember> zipped;
  for (const auto& [dataset, prefix] : members) {
    zipped.push_back({.dataset = dataset, .prefix = prefix});
  }
  return ValueOrRaise(Dataset::Zip(std::move(zipped)));
}

// Remarks on the dataset's indexes. A remark on the index of the folder comes first. Every other
// remark begins with the path or address of its shard.
std::vector<std::string> IndexNotesOf(const Dataset& dataset) {
  std::vector<std::string> notes;
  if (!dataset.note().empty()) notes.push_back(dataset.note());
  for (const std::shared_ptr<const RecordSource>& shard : dataset.shards()) {
    if (shard->note().empty()) continue;
    notes.push_back(absl::StrCat(ForeignName(ShownName(shard->path())), ": ", shard->note()));
  }
  return notes;
}

nb::list DamageOf(const Dataset& dataset) {
  nb::list damaged;
  for (const DamageLog::Entry& entry : dataset.damage().entries()) {
    nb::dict record;
    record["shard"] = entry.shard;
    record["record"] = entry.record;
    record["offset"] = entry.offset;
    record["cause"] = entry.cause;
    damaged.append(record);
  }
  return damaged;
}

}  // namespace

FeedHandle::FeedHandle(std::unique_ptr<Feed> feed, v1::FeedSpec spec,
                       std::shared_ptr<LogLines> lines)
    : process_(getpid()),
      spec_(std::move(spec)),
      lines_(std::move(lines)),
      shape_(std::make_shared<const StepShape>(feed->shape())),
      first_step_(feed->next_step()),
      end_step_(feed->has_end() ? std::make_optional(feed->end_step()) : std::nullopt),
      steps_per_epoch_(feed->steps_per_epoch()),
      num_records_(feed->num_records()),
      order_(feed->order()),
      explanation_(feed->Explain()),
      feed_(std::move(feed)),
      running_(feed_.get()) {}

FeedHandle::~FeedHandle() {
  if (getpid() == process_) {
    End();
  } else {
    const MutexLock lock(mu_);
    feed_.release();
  }
}

void FeedHandle::CheckProcess() const {
  if (getpid() == process_) return;
  RaiseIfError(absl::FailedPreconditionError(
      "this feed was opened in the process that forked this one, and the feed's threads run only "
      "there: open the feed in the process that reads it, or start processes by 'spawn'"));
}

void FeedHandle::Start() {
  CheckProcess();
  RaiseIfError(WithoutGil([this] {
    const MutexLock lock(mu_);
    if (feed_ == nullptr) return Closed();
    feed_->WaitForNext(absl::ZeroDuration());
    return absl::OkStatus();
  }));
}

std::optional<std::pair<int64_t, Memory>> FeedHandle::Next() {
  CheckProcess();
  while (true) {
    // The lines of the log are handed on before a step is taken. So no step is lost if a handler of
    // the log raises.
    HandOnLines();
    const auto next = WithoutGil([this]() -> std::optional<absl::StatusOr<std::optional<Step>>> {
      const MutexLock lock(mu_);
      if (feed_ == nullptr) return Closed();
      if (!feed_->WaitForNext(kWaitAtMost)) return std::nullopt;
      return feed_->Next();
    });
    if (next.has_value()) {
      if (!next->ok()) HandOnLines();
      RaiseIfError(next->status());
      const std::optional<Step>& step = **next;
      if (!step.has_value()) return std::nullopt;
      return std::make_pair(step->number(),
                            Memory(OwnedByThisProcess(step->memory()), shape_->bytes()));
    }
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }
}

void FeedHandle::Close() {
  CheckProcess();
  End();
  HandOnLines();
}

void FeedHandle::End() {
  WithoutGil([this] {
    {
      const MutexLock lock(cancel_mu_);
      if (running_ != nullptr) {
        running_->Cancel();
        stats_ = running_->stats();
      }
      running_ = nullptr;
    }
    const MutexLock lock(mu_);
    feed_.reset();
  });
}

std::string FeedHandle::TokenAt(int64_t next_step) {
  CheckProcess();
  return ValueOrRaise(WithoutGil([&]() -> absl::StatusOr<std::string> {
    const MutexLock lock(mu_);
    if (feed_ == nullptr) return Closed();
    return feed_->TokenAt(next_step).Encode();
  }));
}

FeedClientStats FeedHandle::LatestStats() {
  CheckProcess();
  return WithoutGil([this] {
    const MutexLock lock(cancel_mu_);
    return running_ != nullptr ? running_->stats() : stats_;
  });
}

nb::list FeedHandle::Metrics() { return FamiliesList(FeedFamilies(LatestStats())); }

nb::dict FeedHandle::Stats() {
  const FeedClientStats stats = LatestStats();
  nb::dict dict = MetricsDict(ReadFeedMetrics(stats));
  dict["not_shared"] = stats.not_shared;
  dict["masked_records"] = stats.masked_records;
  const FeedVerdict& verdict = stats.waits.verdict;
  const auto if_known = [](const std::string& name) {
    return name.empty() ? nb::object(nb::none()) : nb::object(nb::cast(name));
  };
  dict["limit"] = std::string(LimitName(verdict.limit));
  dict["limit_output"] = if_known(OutputName(verdict, shape_->layout));
  dict["limit_operation"] = if_known(CostliestOperation(verdict, shape_->layout, spec_));
  dict["limit_share"] = verdict.share;
  // For monitors, ReadFeedMetrics() has set "recent_limit" to numbers. Replaces them by a word.
  dict["recent_limit"] = std::string(LimitName(stats.waits.recent.limit));
  return dict;
}

nb::dict FeedHandle::Shape() const {
  nb::list tensors;
  int index = 0;
  for (const SliceTensor& tensor : shape_->layout.tensors()) {
    nb::dict described;
    described["name"] = tensor.spec.name;
    described["dtype"] = std::string(DTypeName(tensor.spec.dtype));
    described["shape"] = tensor.spec.shape;
    described["batch_axis"] = tensor.batch_axis;
    described["untiled_shape"] = tensor.untiled_shape;
    described["offset"] = shape_->OffsetOf(shape_->core_begin, index++);
    tensors.append(described);
  }
  nb::dict dict;
  dict["tensors"] = tensors;
  dict["cores"] = std::make_pair(shape_->core_begin, shape_->core_end);
  dict["end_step"] = end_step_;
  dict["steps_per_epoch"] = steps_per_epoch_;
  dict["num_records"] = num_records_;
  return dict;
}

std::unique_ptr<ContactSheets> FeedHandle::Sheets(const nb::bytes& spec,
                                                  const std::string& source) const {
  return std::make_unique<ContactSheets>(ParseSpec(spec), shape_, source, explanation_, order_);
}

std::string FeedHandle::Digest(const Memory& memory, int core) const {
  if (memory.size() != shape_->bytes() || core < shape_->core_begin || core >= shape_->core_end) {
    RaiseIfError(absl::InvalidArgumentError("the step or the core does not belong to this feed"));
  }
  const Step step(0, shape_, StepBuffer(memory.bytes(), memory.data()));
  return StepDigest(step, core);
}

void DeclareFeeds(nb::module_& module) {
  nb::class_<Dataset>(module, "Dataset", "The open shards of one dataset.")
      .def_static("open", &OpenDataset, nb::arg("name"), nb::arg("patterns"),
                  nb::arg("index_dir") = "", nb::arg("write_index") = false,
                  nb::arg("compression") = "detect", nb::arg("expect_records") = 0,
                  nb::arg("expect_bytes") = 0)
      .def_static("join", &JoinDatasets, nb::arg("members"))
      .def_static("zip", &ZipDatasets, nb::arg("members"))
      .def_prop_ro("name", [](const Dataset& dataset) { return dataset.name(); })
      .def_prop_ro("num_records", &Dataset::num_records)
      .def_prop_ro("index_notes", &IndexNotesOf,
                   "Remarks on the shards' indexes, such as an index that could not be written.")
      .def_prop_ro("masked_records", &DamageOf, "The damaged records that feeds met and masked.");
  nb::class_<ValueCache>(module, "ValueCache", "Keeps values of outputs with `cache`.")
      .def_static("make", &MakeCache, nb::arg("memory_bytes"), nb::arg("disk_folder"),
                  nb::arg("disk_bytes"))
      .def("stats", &CacheStats);
  nb::class_<RecordLists>(module, "RecordLists", "The lists of records that meet a `where`.")
      .def_static("make", [] { return std::make_shared<RecordLists>(); });
  nb::class_<FeedHandle>(module, "FeedHandle", "A feed from servers, or made in this process.")
      .def_static("open_client", &OpenClient, nb::arg("spec"), nb::arg("servers"), nb::kw_only(),
                  nb::arg("token").none(), nb::arg("cores"), nb::arg("options"))
      .def_static("open_local", &OpenLocal, nb::arg("spec"), nb::arg("dataset"), nb::arg("lists"),
                  nb::kw_only(), nb::arg("token").none(), nb::arg("cores"),
                  nb::arg("threads").none(), nb::arg("processors"), nb::arg("prefetch_bytes"),
                  nb::arg("cache"), nb::arg("allow_mixed_content"))
      .def("first_step", &FeedHandle::first_step)
      .def("start", &FeedHandle::Start)
      .def("next", &FeedHandle::Next)
      .def("close", &FeedHandle::Close)
      .def("token_at", &FeedHandle::TokenAt, nb::arg("next_step"))
      .def("stats", &FeedHandle::Stats)
      .def("metrics", &FeedHandle::Metrics)
      .def("shape", &FeedHandle::Shape)
      .def("explain", &FeedHandle::Explain)
      .def("sheets", &FeedHandle::Sheets, nb::arg("spec"), nb::arg("source"))
      .def("digest", &FeedHandle::Digest, nb::arg("memory"), nb::arg("core"));
}

}  // namespace systole::python
