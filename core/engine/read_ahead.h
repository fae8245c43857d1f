// Reads the records of tasks before threads make examples of them, so that no thread that computes
// waits for a server.
//
//   Wake() -> the engine's next task to be read -> its blocks (run_blocks.h) -> BlockReader
//                                            the run, with its blocks -> the engine <-+
//
// A task of a warm feed (WarmFeeds) is first given to a thread that computes. The thread passes it
// to Read() only if FindInMemory() fails: the records are not in memory, or another task waits for
// room.
//
// If a shard's index is unread (RecordSource::unread_index()), the places of its records are not
// known. So the BlockReader reads the index first, and only then the task's blocks.
//
// The engine decides whose records are read next. The next task is taken from the engine only when
// the task before has found room for its blocks. So when room becomes free, only tasks that were
// taken from the engine before are read ahead of the task of the peer whose turn it is.
//
// While a task finds no room for its blocks, all other tasks wait, too. Otherwise tasks with small
// blocks could overtake a task with large blocks for ever. There is one exception: if a task waits
// only because its dataset has used up its own part of the room, tasks of other datasets go on. The
// part is used up, for instance, if the dataset's storage hangs.
//
// Thread-safe.
#ifndef SYSTOLE_CORE_ENGINE_READ_AHEAD_H_
#define SYSTOLE_CORE_ENGINE_READ_AHEAD_H_

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/concurrency/monotonic_clock.h"
#include "core/concurrency/mutex.h"
#include "core/concurrency/worker_pool.h"
#include "core/engine/run_blocks.h"
#include "core/engine/slice_task.h"
#include "core/engine/step_scheduler.h"
#include "core/engine/warm_feeds.h"
#include "core/fetch/block_reader.h"

namespace systole {

class ReadAhead {
 public:
  // The functions of the engine that this class calls. Called without a lock.
  class Engine {
   public:
    virtual ~Engine() = default;
    // Calls StepScheduler::TakeToRead(), and gives consumers their answers before it returns.
    virtual std::optional<SliceTask> TakeToRead(StepScheduler::MayRead may_read) = 0;
    // Calls StepScheduler::Arrive().
    virtual void Arrive(const SliceTask& task, ExampleRun run, bool warm) = 0;
  };

  // Starts a thread. `engine` must outlive this object. The constructor sets `options.room`.
  ReadAhead(BlockReaderOptions options, Engine& engine);
  // Waits for all reads under way, even if they hang.
  ~ReadAhead();
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  // Says that there may be a task to be read, or a task that is no longer wanted. May be called
  // under any lock.
  void Wake() ABSL_LOCKS_EXCLUDED(mu_);

  // Fills in the run's blocks if its records are all in memory or on this machine. False: call
  // Read(). Any thread may call this. While a task waits for room for its blocks, returns false for
  // all runs that need blocks. Otherwise such runs could take the room that becomes free, for ever.
  bool FindInMemory(const SliceTask& task, ExampleRun& run) ABSL_LOCKS_EXCLUDED(mu_);
  // Reads the records of a task that a thread has taken, and then gives the task back with
  // Engine::Arrive(). May be called under any lock.
  void Read(const SliceTask& task) ABSL_LOCKS_EXCLUDED(mu_);

  // Waits for `patience` at most until no read is under way. False: a read is still under way.
  bool WaitUntilIdle(absl::Duration patience) ABSL_LOCKS_EXCLUDED(mu_);

  BlockReaderStats GetStats() const { return reader_.GetStats(); }

 private:
  // A task to be read. Its index blocks may have been read already.
  struct Located {
    SliceTask task;
    bool indexes_were_read = false;
    std::vector<absl::Status> index_errors = {};
  };
  // A task whose blocks or indexes are being read.
  struct Reading {
    Located of;
    bool reads_indexes = false;
    std::unique_ptr<BlockTicket> ticket;  // Null until TryRead() has returned.
  };

  void Run();
  bool WaitForWork() ABSL_LOCKS_EXCLUDED(mu_);
  RunUses UsesOf(const SliceTask& task) const;
  static BlockWant WantOf(const SliceTask& task, std::vector<BlockUse> uses);
  // Begins as many reads as there is room for.
  void ReadAll();
  // Begins to read the task's indexes or blocks. kReady: the engine has the task again, or the task
  // is in located_.
  BlockReading::State Start(const Located& of) ABSL_LOCKS_EXCLUDED(mu_);
  BlockReading::State Start(const Located& of, BlockWant want, bool reads_indexes)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Gives back a task whose records were not read, because no stream wants them.
  void GiveBack(const SliceTask& task);
  // `found`: whether the task's records were in memory. Notes this in warm_, and returns whether
  // the task's feed is warm.
  bool Count(const SliceTask& task, bool found) ABSL_LOCKS_EXCLUDED(mu_);
  void SetLacksRoom(bool lacks_room) ABSL_LOCKS_EXCLUDED(mu_);
  // Takes the first task of located_ whose dataset has no task in held_. Nullopt: there is none.
  std::optional<Located> TakeLocated() ABSL_LOCKS_EXCLUDED(mu_);
  // Gives all tasks of located_ back to the engine.
  void ReturnLocated() ABSL_LOCKS_EXCLUDED(mu_);
  void Done(uint64_t number, std::vector<BlockPtr> blocks) ABSL_LOCKS_EXCLUDED(mu_);
  // Ends reads whose slices no stream wants any more. True if it ended any.
  bool DropUnwanted() ABSL_LOCKS_EXCLUDED(mu_);

  Engine& engine_;
  const int64_t memory_bytes_;  // Bound on the memory of all blocks.
  const MonotonicClock clock_ = SteadyClock();
  Mutex mu_;
  CondVar wakes_;
  CondVar rests_;  // Never signalled: its waits end after a time.
  bool due_ ABSL_GUARDED_BY(mu_) = false;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  uint64_t next_number_ ABSL_GUARDED_BY(mu_) = 0;
  std::map<uint64_t, Reading> reads_ ABSL_GUARDED_BY(mu_);
  // Tasks whose indexes were read, and tasks from Read().
  std::list<Located> located_ ABSL_GUARDED_BY(mu_);
  bool lacks_room_ ABSL_GUARDED_BY(mu_) = false;  // A task waits for room for its blocks.
  WarmFeeds warm_ ABSL_GUARDED_BY(mu_);
  BlockReader reader_;
  std::map<uint64_t, Located> held_;  // By dataset: tasks that found no room. Only thread_ uses it.
  // Constant until the destructor. Declared last, because the thread uses the fields above.
  std::unique_ptr<WorkerPool> thread_;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_ENGINE_READ_AHEAD_H_
