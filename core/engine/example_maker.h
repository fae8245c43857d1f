// Makes examples: reads their records, transforms the features, and writes the results into the
// examples' places in the slice. Holds the decoders and the scratch memory of one thread. While an
// ExampleMaker works, it holds memory
// * for the plan (kMaxScratchBytes),
// * for a record: three times its bytes, and for a joined record also the bytes of its largest part
//   (core/record/zip),
// * for text that decoding makes, such as unescaped JSON strings (some MiB: ExampleFormat),
// * for the record's images.
// Between tasks it holds at most 55 MiB, or nothing if other makers need the memory
// (scratch_account.h).
//
// Single-thread. Its output depends on the arguments alone.
#ifndef SYSTOLE_CORE_ENGINE_EXAMPLE_MAKER_H_
#define SYSTOLE_CORE_ENGINE_EXAMPLE_MAKER_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/cache/value_cache.h"
#include "core/concurrency/monotonic_clock.h"
#include "core/dataset/damage_cause.h"
#include "core/engine/example_filler.h"
#include "core/engine/pending_slice.h"
#include "core/engine/scratch_account.h"
#include "core/image/jpeg/huffman_decoder.h"
#include "core/image/paired_decoding.h"
#include "core/memory/aligned_buffer.h"
#include "core/order/order.h"
#include "core/order/shard_map.h"
#include "core/plan/feed_plan.h"
#include "core/plan/scratch_bytes.h"
#include "core/record/source/part_in_read.h"

namespace systole {

class ExampleMaker {
 public:
  // `scratch` counts the memory that the maker holds; null: the memory is not counted. The account
  // must outlive the maker. `clock` is used only to measure FeedPlan::output_costs().
  explicit ExampleMaker(ScratchAccount* scratch = nullptr, MonotonicClock clock = SteadyClock())
      : scratch_(scratch), clock_(std::move(clock)) {}

  // From now on `cache` keeps values of the outputs that set `cache` in the spec. Null, as at the
  // start: nothing is kept. The cache must outlive all calls of Make() before the next KeepIn().
  void KeepIn(ValueCache* cache) { cache_ = cache; }

  // Makes the examples of `run`, a part of the slice of (step, core). Writes them and their `valid`
  // into `slice`, a block of plan->layout().slice_bytes(), and mixes them if the plan says so.
  // Padding becomes zeros. If the spec says `on_corrupt: MASK`, the example of a record that cannot
  // be used becomes zeros, too, and the dataset's damage log notes the record.
  //   Returns true if `run` is done. Make() calls `turn_is_over` now and then, after an example or
  // a mixed group. If the turn is over, Make() returns false, and run.done says how much of the run
  // is done. Any maker may do the rest. If the thread was interrupted (core/interrupt), no part of
  // the result may be used. REQUIRES: the run begins and ends at multiples of plan->group().
  //   run.error gets the error of the lowest slot:
  //   DataLoss            the record cannot be used and the spec says FAIL; names shard, offset,
  //                       record, output and cause. ResourceExhausted if the record is too large.
  //   FailedPrecondition  the record's shard has changed since it was opened.
  //   Unavailable         there is no memory to read or decode the record or to fill its example.
  // The storage may give other errors, too. MASK hides only DataLoss and ResourceExhausted.
  using TurnIsOver = absl::FunctionRef<bool()>;
  bool Make(const std::shared_ptr<const FeedPlan>& plan, int64_t step, int core, ExampleRun& run,
            uint8_t* slice, TurnIsOver turn_is_over);

  // Makes the examples of slots [begin, end) in one turn. Returns the error of the lowest slot.
  absl::Status Make(const std::shared_ptr<const FeedPlan>& plan, int64_t step, int core,
                    int64_t begin, int64_t end, uint8_t* slice);

  // The number of the record that Make() is reading: the first record that the present read has not
  // given yet. Between two reads the number does not change. -1: Make() has read nothing yet. Any
  // thread may call this.
  int64_t reading() const { return reading_.load(std::memory_order_relaxed); }
  // The part of a joined record that Make() reads now, if any. Any thread may call this.
  std::optional<size_t> reading_part() const { return part_in_read_.part(); }

 private:
  // Two examples are made at a time, because two images decoded together take less time than one
  // after the other. A lane has the memory that one of the two examples needs. All plans use the
  // same lanes.
  struct Lane {
    std::vector<std::shared_ptr<HuffmanDecoder>> decoders;  // For the lane's images.
    std::string payload;                                    // Of an example that waits.
  };

  // A record and where its example belongs.
  struct Wanted {
    int64_t record = 0;
    int64_t pass = 0;  // Place::pass.
    int64_t slot = 0;
    ShardPlace place;
  };

  // An example of one plan.
  struct Making {
    explicit Making(ExampleFiller filler) : filler(std::move(filler)) {}

    ExampleFiller filler;
    Wanted wanted;
    const MonotonicClock* timed_by = nullptr;  // Null: the example's outputs are not timed.
  };

  // What the maker keeps for one plan between calls of Make().
  struct PlanScratch {
    std::weak_ptr<const FeedPlan> plan;
    const ValueCache* cache = nullptr;  // The cache that `makings` use. Never dereferenced.
    ScratchBytes bytes;
    uint64_t examples = 0;                               // How many examples were begun.
    std::array<Making, PairedDecoding::kLanes> makings;  // By lane.
  };

  // One call of Make().
  struct Task {
    const FeedPlan& plan;
    PlanScratch& scratch;
    uint8_t* slice = nullptr;
    ExampleRun& run;
    TurnIsOver turn_is_over;
    // About how many values were computed and bytes read since turn_is_over was last called.
    int64_t unasked = 0;
  };

  // Does the work of Make(), except FreeLarge() and SettleScratch(). Returns errors of the run as a
  // whole. Errors of single examples go to run.error.
  absl::StatusOr<bool> Work(const std::shared_ptr<const FeedPlan>& plan, int64_t step, int core,
                            ExampleRun& run, uint8_t* slice, TurnIsOver turn_is_over);
  // MakeWanted() makes the examples of wanted_, from index run.done on. MixGroups() mixes the
  // groups that are not mixed yet. False: the turn is over.
  absl::StatusOr<bool> MakeWanted(Task& task);
  bool MixGroups(Task& task);
  // Whether records of `shard` are taken from bytes that were read ahead.
  static bool IsFetched(const Task& task, const RecordSource& shard) {
    return task.run.blocks != nullptr && shard.is_far();
  }
  static ExampleFiller::Record RecordOf(const RecordSource& shard, const Wanted& wanted);
  // Whether to stop now. `values` is how many values were computed and bytes read since the last
  // call.
  static bool IsOver(Task& task, int64_t values);
  // Frees memory that is too large to keep, such as the memory of a large record, a wide image or
  // many plans.
  void FreeLarge();
  void FreeAll();
  // Ends the turn of the account scratch_. If the account may not keep memory for the next turn,
  // frees all memory.
  void SettleScratch(const FeedPlan& plan);
  // The bytes that the maker holds while it works for a plan that needs `bytes`. Records are not
  // counted. The sum has the resizers' tables of this maker, and `tables` bytes for new ones.
  int64_t PlanBytes(const ScratchBytes& bytes, int64_t tables) const;
  int64_t PayloadBytes() const;
  // Copies `payload` into the lane. False: the thread was interrupted.
  bool CopyPayload(absl::string_view payload, Lane& lane);

  // The scratch of `plan` and cache_, made at first use. FreeLarge() frees scratches beyond its
  // limits, the least recently used first.
  absl::StatusOr<PlanScratch*> ScratchOf(const std::shared_ptr<const FeedPlan>& plan);

  // Makes the example of one record, whose payload was read, or handles the error of the read. If
  // `waits`, copies the payload, and may make the example only when later records come or
  // FinishAll() is called. Otherwise makes the example at once.
  void Add(Task& task, const Wanted& wanted, const absl::StatusOr<absl::string_view>& payload,
           ExampleFiller::Kept kept, bool waits);
  void FinishAll(Task& task);
  // Finishes one of the waiting examples: the one whose images are decoded first.
  void FinishOne(Task& task) { Finish(task, decoding_.Advance(), absl::OkStatus()); }

  // Makes the rest of the example in `lane`. If the example could not begin, `status` is the error.
  void Finish(Task& task, int lane, absl::Status status);
  // If `status` is OK, marks the example valid. Otherwise handles the error as the spec says. If
  // the record is masked, `cause` goes to the dataset's damage log.
  void Settle(Task& task, const Wanted& wanted, absl::Status status, DamageCause cause);

  ValueCache* cache_ = nullptr;
  ScratchAccount* scratch_;
  MonotonicClock clock_;
  std::atomic<int64_t> reading_ = -1;
  PartInRead part_in_read_;
  std::vector<Place> places_;           // For one call, by slot.
  std::vector<Wanted> wanted_;          // For one call, by record.
  std::vector<int64_t> shard_records_;  // Numbers in one shard.
  AlignedBuffer record_scratch_;
  std::array<Lane, PairedDecoding::kLanes> lanes_;
  PairedDecoding decoding_;  // A lane is empty while no example waits in it.
  FillerScratch filler_scratch_;
  std::list<PlanScratch> scratches_;  // Most recently used first.
};

}  // namespace systole

#endif  // SYSTOLE_CORE_ENGINE_EXAMPLE_MAKER_H_
