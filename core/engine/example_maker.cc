#include "core/engine/example_maker.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/batch/slice_layout.h"
#include "core/engine/group_mixer.h"
#include "core/engine/run_blocks.h"
#include "core/interrupt/interrupt.h"
#include "core/memory/scratch_scope.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

// A thread keeps the PlanScratch of this many plans. If it works for more plans in turn, it must
// make scratches anew now and then.
constexpr size_t kMaxScratches = 16;

// The most that a thread keeps between tasks, some 55 MiB in all. Memory beyond this is taken anew
// for each task. This costs little compared with examples that need so much memory.
constexpr int64_t kMaxKeptTableBytes = int64_t{16} << 20;    // The tables of all plans.
constexpr int64_t kMaxKeptDecoderBytes = int64_t{32} << 20;  // The decoders; all plans share them.
constexpr int64_t kMaxKeptExampleBytes = int64_t{4} << 20;
constexpr int64_t kMaxKeptRecordBytes = int64_t{1} << 20;  // For each of three buffers.

// The room for a copy of a record is a multiple of this number of bytes. So the room is often
// enough for a later record that is a little larger.
constexpr size_t kPayloadStep = size_t{64} << 10;

// Neighbouring records of a shard are read together, up to this many bytes. The system call for
// this many bytes costs about as much as the copy, and the processor's cache can hold the bytes.
constexpr int64_t kReadBytes = 256 << 10;

// Records that are read in place are prefetched in batches of this many. A batch is prefetched when
// the examples of the previous batch begin. For records that are far apart, the processor must load
// page tables. It loads several page tables at once only if requests directly follow each other.
constexpr size_t kPrefetchedRecords = 16;

// This many records at a time are looked up in the cache, and then read. Their cached values stay
// in memory until the examples are made, so the number must not be large. With a smaller number,
// fewer neighbouring records could share a read while the cache is being filled.
constexpr size_t kLookedUpRecords = 16;

// A thread times one of every kTimedEvery examples of a plan, output by output and transform by
// transform (FeedPlan::output_costs()). Images of a timed example are decoded alone, which costs
// little for so few examples. Examples 0, 1, 2, 4, 8 .. are timed, too, because the time of example
// 0 alone would mislead: the kernel must first give the memory for this example.
constexpr uint64_t kTimedEvery = 512;

bool IsTimed(const FeedPlan& plan, uint64_t example) {
  if (example % kTimedEvery != 0 && (example > kTimedEvery || !std::has_single_bit(example))) {
    return false;
  }
  const auto& outputs = plan.spec().outputs();
  return outputs.size() > 1 || (!outputs.empty() && !outputs[0].transforms().empty());
}

// A thread looks at the clock after this many values computed and bytes read. This much work takes
// microseconds, and a look takes 30 ns.
constexpr int64_t kValuesBetweenLooks = 1 << 14;

// Assigning an empty string would keep the memory.
void Free(std::string& text) { std::string().swap(text); }

// `status` with `code`, and with the record's place before the message.
absl::Status Placed(const FeedPlan& plan, int64_t record, absl::StatusCode code,
                    const absl::Status& status) {
  const std::optional<size_t> part = PartAtFault(status);
  const std::string where = plan.dataset().Where(record, part);
  return MarkedAsOfPart(absl::Status(code, absl::StrCat(where, ": ", status.message())), part);
}

// Whether `status` means that the record's bytes are bad (see RecordSource::ReadRecord()). False
// after a failed read and for lack of memory. If such errors masked a record, the content of a feed
// would depend on a temporary failure of a machine.
bool IsDamage(const absl::Status& status) {
  return status.code() == absl::StatusCode::kDataLoss ||
         status.code() == absl::StatusCode::kResourceExhausted;
}

}  // namespace

absl::StatusOr<ExampleMaker::PlanScratch*> ExampleMaker::ScratchOf(
    const std::shared_ptr<const FeedPlan>& plan) {
  for (auto it = scratches_.begin(); it != scratches_.end(); ++it) {
    if (it->cache != cache_ || it->plan.lock() != plan) continue;
    if (!NeedScratch(ScratchUse::kPlan, PlanBytes(it->bytes, 0))) return InterruptedError();
    scratches_.splice(scratches_.begin(), scratches_, it);
    return &scratches_.front();
  }
  const ScratchBytes bytes = ScratchBytesOf(plan->outputs(), plan->layout());
  if (!NeedScratch(ScratchUse::kPlan, PlanBytes(bytes, bytes.tables))) return InterruptedError();
  SYSTOLE_ASSIGN_OR_RETURN(ExampleFiller a,
                           ExampleFiller::Create(*plan, lanes_[0].decoders, cache_));
  SYSTOLE_ASSIGN_OR_RETURN(ExampleFiller b,
                           ExampleFiller::Create(*plan, lanes_[1].decoders, cache_));
  PlanScratch scratch = {.plan = plan,
                         .cache = cache_,
                         .bytes = bytes,
                         .makings = {Making(std::move(a)), Making(std::move(b))}};
  scratches_.push_front(std::move(scratch));
  return &scratches_.front();
}

int64_t ExampleMaker::PlanBytes(const ScratchBytes& bytes, int64_t tables) const {
  int64_t decoders = bytes.decoders;
  for (const PlanScratch& scratch : scratches_) {
    tables += scratch.bytes.tables;
    decoders = std::max(decoders, scratch.bytes.decoders);
  }
  return tables + decoders + std::max(bytes.known_example, filler_scratch_.bytes());
}

int64_t ExampleMaker::PayloadBytes() const {
  int64_t bytes = 0;
  for (const Lane& lane : lanes_) bytes += static_cast<int64_t>(lane.payload.capacity());
  return bytes;
}

void ExampleMaker::FreeAll() {
  scratches_.clear();
  for (Lane& lane : lanes_) {
    Free(lane.payload);
    lane.decoders.clear();
  }
  record_scratch_ = AlignedBuffer();
  filler_scratch_ = {};
}

void ExampleMaker::SettleScratch(const FeedPlan& plan) {
  // The memory of a small example stays counted between turns, even the part that is freed, because
  // the next turn takes it again.
  ScratchBytes example;
  if (!scratches_.empty() && scratches_.front().plan.lock().get() == &plan &&
      scratches_.front().bytes.known_example <= kMaxKeptRecordBytes) {
    example = scratches_.front().bytes;
  }
  ScratchAccount::Uses kept = {};
  kept[static_cast<size_t>(ScratchUse::kPlan)] = PlanBytes(example, 0);
  kept[static_cast<size_t>(ScratchUse::kReads)] = record_scratch_.size();
  kept[static_cast<size_t>(ScratchUse::kPayloads)] = PayloadBytes();
  if (!scratch_->EndTurn(kept)) FreeAll();
}

void ExampleMaker::FreeLarge() {
  if (record_scratch_.size() > kMaxKeptRecordBytes) record_scratch_ = AlignedBuffer();
  for (Lane& lane : lanes_) {
    if (static_cast<int64_t>(lane.payload.capacity()) > kMaxKeptRecordBytes) Free(lane.payload);
  }
  if (filler_scratch_.bytes() > kMaxKeptExampleBytes) filler_scratch_ = {};
  int64_t table_bytes = 0;
  size_t kept = 0;
  for (auto it = scratches_.begin(); it != scratches_.end();) {
    table_bytes += it->bytes.tables;
    const bool keep = kept < kMaxScratches && table_bytes <= kMaxKeptTableBytes &&
                      it->bytes.decoders <= kMaxKeptDecoderBytes;
    if (keep) ++kept;
    it = keep ? std::next(it) : scratches_.erase(it);
  }
  for (Lane& lane : lanes_) {
    // Frees decoders that no plan uses any more.
    while (!lane.decoders.empty() && lane.decoders.back().use_count() == 1) {
      lane.decoders.pop_back();
    }
  }
}

absl::Status ExampleMaker::Make(const std::shared_ptr<const FeedPlan>& plan, int64_t step, int core,
                                int64_t begin, int64_t end, uint8_t* slice) {
  ExampleRun run = {.examples = {.begin = begin, .end = end}};
  Make(plan, step, core, run, slice, [] { return false; });
  return run.error.status();
}

bool ExampleMaker::Make(const std::shared_ptr<const FeedPlan>& plan, int64_t step, int core,
                        ExampleRun& run, uint8_t* slice, TurnIsOver turn_is_over) {
  const PartInReadScope parts(part_in_read_);
  std::optional<ScratchScope> scope;
  if (scratch_ != nullptr) scope.emplace(*scratch_);
  const absl::StatusOr<bool> done = Work(plan, step, core, run, slice, turn_is_over);
  FreeLarge();
  if (scratch_ != nullptr) SettleScratch(*plan);
  if (!done.ok()) run.error.Add(run.examples.begin, done.status());
  return done.value_or(true);
}

absl::StatusOr<bool> ExampleMaker::Work(const std::shared_ptr<const FeedPlan>& plan, int64_t step,
                                        int core, ExampleRun& run, uint8_t* slice,
                                        TurnIsOver turn_is_over) {
  const auto [begin, end] = run.examples;
  const bool begins = run.done == 0;
  const SliceLayout& layout = plan->layout();
  const Dataset& dataset = plan->dataset();
  SYSTOLE_ASSIGN_OR_RETURN(PlanScratch* const scratch, ScratchOf(plan));
  SYSTOLE_RETURN_IF_ERROR(filler_scratch_.Reserve(*plan));
  places_.resize(static_cast<size_t>(end - begin));
  plan->order().PlacesOnCore(step, core, begin, absl::MakeSpan(places_));
  wanted_.clear();
  // Only the run with the first slot clears this padding, so it is cleared once.
  if (begin == 0 && begins) ClearTilePadding(layout, slice);
  for (int64_t slot = begin; slot < end; ++slot) {
    const Place& place = places_[static_cast<size_t>(slot - begin)];
    if (place.record.has_value()) {
      const ShardPlace in_shard = dataset.map().Find(*place.record);
      dataset.shards()[static_cast<size_t>(in_shard.shard)]->PrefetchSpan(in_shard.index);
      wanted_.push_back(
          {.record = *place.record, .pass = place.pass, .slot = slot, .place = in_shard});
    } else if (begins) {
      ClearExample(layout, slot, slice);
      if (InterruptRequested()) return true;
    }
  }
  std::sort(wanted_.begin(), wanted_.end(),
            [](const Wanted& a, const Wanted& b) { return a.record < b.record; });

  Task task = {
      .plan = *plan, .scratch = *scratch, .slice = slice, .run = run, .turn_is_over = turn_is_over};
  for (int lane = 0; lane < PairedDecoding::kLanes; ++lane) {
    decoding_.Clear(lane);  // An earlier call may have ended early.
  }
  SYSTOLE_ASSIGN_OR_RETURN(const bool made, MakeWanted(task));
  if (!made) return false;
  if (!run.error.status().ok() || !plan->mix().has_value() || InterruptRequested()) return true;
  return MixGroups(task);
}

absl::StatusOr<bool> ExampleMaker::MakeWanted(Task& task) {
  const Dataset& dataset = task.plan.dataset();
  const auto prefetch = [&](size_t first) {
    const size_t last = std::min(first + kPrefetchedRecords, wanted_.size());
    for (size_t i = first; i < last; ++i) {
      const ShardPlace& place = wanted_[i].place;
      dataset.shards()[static_cast<size_t>(place.shard)]->Prefetch(place.index);
    }
  };
  const bool has_images = task.plan.decodes_images();
  ExampleFiller& filler = task.scratch.makings[0].filler;
  size_t first = static_cast<size_t>(task.run.done);  // >= wanted_.size() if groups are mixed now.
  if (!has_images) prefetch(first);
  bool over = false;
  while (first < wanted_.size() && !over) {
    // The wanted records [first, first + shard_records_.size()) lie in one shard.
    const int64_t shard_number = wanted_[first].place.shard;
    int64_t lowest_slot = wanted_[first].slot;
    shard_records_.clear();
    const size_t end =
        filler.keeps_images() ? std::min(first + kLookedUpRecords, wanted_.size()) : wanted_.size();
    for (size_t i = first; i < end && wanted_[i].place.shard == shard_number; ++i) {
      shard_records_.push_back(wanted_[i].place.index);
      lowest_slot = std::min(lowest_slot, wanted_[i].slot);
    }
    const RecordSource& shard = *dataset.shards()[static_cast<size_t>(shard_number)];
    reading_.store(wanted_[first].record, std::memory_order_relaxed);
    // If the cache has all images, records are read in place, like records without images.
    std::vector<ExampleFiller::Kept> kept(filler.keeps_images() ? shard_records_.size() : 0);
    bool all_kept = filler.keeps_images();
    for (size_t i = 0; i < kept.size() && all_kept; ++i) {
      all_kept = filler.FindKept(task.plan, RecordOf(shard, wanted_[first + i]), kept[i]);
    }
    const RecordBytes where =
        has_images && !all_kept ? RecordBytes::kCopied : RecordBytes::kInPlace;
    const bool fetched = IsFetched(task, shard);
    const bool waits = task.plan.decodes_jpegs() && !all_kept;
    size_t added = 0;
    absl::Status last;  // The status of the last record.
    const auto add = [&](size_t i, const absl::StatusOr<absl::string_view>& payload) {
      if (!has_images && (first + i) % kPrefetchedRecords == 0) {
        prefetch(first + i + kPrefetchedRecords);
      }
      Add(task, wanted_[first + i], payload,
          kept.empty() ? ExampleFiller::Kept() : std::move(kept[i]), waits);
      last = payload.status();
      ++added;
      const size_t next = std::min(first + i + 1, wanted_.size() - 1);
      reading_.store(wanted_[next].record, std::memory_order_relaxed);
      // The read ends by itself after an outage. `over` stays false: the whole run ends below.
      if (IsOutage(last)) return absl::OkStatus();
      over = IsOver(task, task.plan.example_elements() +
                              (payload.ok() ? static_cast<int64_t>(payload->size()) : 0));
      return over ? InterruptedError() : absl::OkStatus();
    };
    const absl::Status read =
        fetched ? shard.ReadFetched(
                      shard_records_,
                      [&](const ByteSource& far, const RecordSpan& span) {
                        return task.run.blocks->Find(far, span);
                      },
                      record_scratch_, add)
                : shard.ReadRecords(shard_records_, where, kReadBytes, record_scratch_, add);
    // If the turn is over, Cancelled is not an error: it comes from the callback above.
    if (!read.ok() && (!over || !absl::IsCancelled(read))) {
      // An outage ends the run: each further read may take as long. Add() has noted the error.
      if (read == last) return true;
      return read;
    }
    // The shard is checked after the reads, because bytes of a replaced shard cannot be trusted. If
    // the bytes were read ahead, the reader has already checked the shard.
    if (!fetched) task.run.error.Add(lowest_slot, shard.CheckUnchanged());
    first += added;
  }
  FinishAll(task);
  task.run.done = std::max(task.run.done, static_cast<int64_t>(first));
  // An interruption means that no stream wants the slice. Then the run counts as done.
  return InterruptRequested() || first >= wanted_.size();
}

ExampleFiller::Record ExampleMaker::RecordOf(const RecordSource& shard, const Wanted& wanted) {
  return {.number = wanted.record,
          .shard_hash = shard.content_hash(),
          .in_shard = wanted.place.index,
          .format = &shard.examples()};
}

bool ExampleMaker::MixGroups(Task& task) {
  const int64_t group = task.plan.group();
  const ExampleRange& examples = task.run.examples;
  const auto num_wanted = static_cast<int64_t>(wanted_.size());
  for (int64_t begin = examples.begin + (task.run.done - num_wanted) * group;
       begin < examples.end && !InterruptRequested(); begin += group) {
    MixExamples(task.plan, begin,
                absl::MakeConstSpan(places_).subspan(static_cast<size_t>(begin - examples.begin),
                                                     static_cast<size_t>(group)),
                task.slice);
    ++task.run.done;
    if (begin + group < examples.end && IsOver(task, group * task.plan.example_elements())) {
      return false;
    }
  }
  return true;
}

bool ExampleMaker::IsOver(Task& task, int64_t values) {
  if (InterruptRequested()) return true;
  task.unasked += values;
  if (task.unasked < kValuesBetweenLooks) return false;
  task.unasked = 0;
  return task.turn_is_over();
}

void ExampleMaker::Add(Task& task, const Wanted& wanted,
                       const absl::StatusOr<absl::string_view>& payload, ExampleFiller::Kept kept,
                       bool waits) {
  if (!payload.ok()) {
    const absl::Status& status = payload.status();
    // The message of a damaged record already names the record's place. The message of a replaced
    // shard need not name a record.
    Settle(task, wanted,
           IsDamage(status) || absl::IsFailedPrecondition(status)
               ? status
               : Placed(task.plan, wanted.record, status.code(), status),
           IsChecksumMismatch(status)          ? DamageCause::kChecksum
           : absl::IsResourceExhausted(status) ? DamageCause::kTooLarge
                                               : DamageCause::kRecord);
    return;
  }
  if (decoding_.waits(0) && decoding_.waits(1)) FinishOne(task);
  const int lane = decoding_.waits(0) ? 1 : 0;
  Making& making = task.scratch.makings[static_cast<size_t>(lane)];
  making.wanted = wanted;
  making.timed_by = IsTimed(task.plan, task.scratch.examples++) ? &clock_ : nullptr;
  absl::string_view bytes = *payload;
  if (waits) {
    Lane& waiting = lanes_[static_cast<size_t>(lane)];
    if (!CopyPayload(*payload, waiting)) return;
    bytes = waiting.payload;
  }
  const RecordSource& shard =
      *task.plan.dataset().shards()[static_cast<size_t>(wanted.place.shard)];
  const absl::Status begun =
      making.filler.Begin(task.plan, wanted.pass, RecordOf(shard, wanted), bytes, std::move(kept),
                          decoding_, lane, making.timed_by);
  if (!begun.ok() || !decoding_.waits(lane) || making.timed_by != nullptr)
    Finish(task, lane, begun);
}

bool ExampleMaker::CopyPayload(absl::string_view payload, Lane& lane) {
  if (payload.size() > lane.payload.capacity()) {
    // The old memory is freed before new memory is taken, to save memory. reserve() takes only what
    // is needed, while assign() might take twice as much.
    Free(lane.payload);
    const size_t bytes = (payload.size() + kPayloadStep - 1) / kPayloadStep * kPayloadStep;
    if (!NeedScratch(ScratchUse::kPayloads, PayloadBytes() + static_cast<int64_t>(bytes))) {
      return false;
    }
    lane.payload.reserve(bytes);
  }
  lane.payload.assign(payload.data(), payload.size());
  return true;
}

void ExampleMaker::FinishAll(Task& task) {
  while (decoding_.waits(0) || decoding_.waits(1)) FinishOne(task);
}

void ExampleMaker::Finish(Task& task, int lane, absl::Status status) {
  decoding_.Clear(lane);
  Making& making = task.scratch.makings[static_cast<size_t>(lane)];
  const Wanted& wanted = making.wanted;
  if (status.ok() && !InterruptRequested()) {
    status =
        making.filler.Fill(task.plan, wanted.slot, filler_scratch_, task.slice, making.timed_by);
    if (scratch_ != nullptr) scratch_->EndExample();
  }
  // The status is ignored, because the interruption may have caused it.
  if (InterruptRequested()) return making.filler.Drop();
  if (!status.ok()) {
    making.filler.Drop();
    status = Placed(
        task.plan, wanted.record,
        absl::IsUnavailable(status) ? absl::StatusCode::kUnavailable : absl::StatusCode::kDataLoss,
        status);
  }
  Settle(task, wanted, std::move(status), making.filler.damage());
}

void ExampleMaker::Settle(Task& task, const Wanted& wanted, absl::Status status,
                          DamageCause cause) {
  const SliceLayout& layout = task.plan.layout();
  if (status.ok()) {
    const SliceTensor& valid = layout.tensors()[static_cast<size_t>(layout.valid_index())];
    task.slice[valid.offset + wanted.slot] = 1;
    return;
  }
  const Dataset& dataset = task.plan.dataset();
  const RecordSource& shard = *dataset.shards()[static_cast<size_t>(wanted.place.shard)];
  // If the shard was replaced, the record is not masked. After an outage the shard is not checked,
  // because the storage does not answer. The reader has checked the shards of bytes read ahead.
  absl::Status unchanged;
  if (!IsOutage(status))
    unchanged = shard.CheckRecordUnchanged(wanted.place.index, task.run.blocks != nullptr);
  if (!unchanged.ok()) {
    status = std::move(unchanged);
  } else if (IsDamage(status) && task.plan.spec().on_corrupt() != v1::MASK) {
    status = absl::Status(status.code(), absl::StrCat(status.message(),
                                                      "; with `on_corrupt: MASK` in the spec the "
                                                      "feed goes on without such records"));
  } else if (IsDamage(status)) {
    ClearExample(layout, wanted.slot, task.slice);
    dataset.NoteDamage(wanted.record, std::string(status.message()), cause, PartAtFault(status));
    return;
  }
  task.run.error.Add(wanted.slot, std::move(status));
}

}  // namespace systole
