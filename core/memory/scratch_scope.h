// Counts the memory that a thread takes beside its results. The code that runs the thread makes a
// ScratchScope, which says where the memory is counted. Every function that runs inside the scope
// says how much memory it needs, before it allocates the memory:
//
//   const ScratchScope scope(source);                  // On the thread, around all of its work.
//     .. if (!NeedScratch(ScratchUse::kCoefficients, bytes)) return InterruptedError();
//
// Like the flag of core/interrupt, the ScratchSource belongs to the thread and is not an argument,
// because it changes no result.
#ifndef SYSTOLE_CORE_MEMORY_SCRATCH_SCOPE_H_
#define SYSTOLE_CORE_MEMORY_SCRATCH_SCOPE_H_

#include <cstddef>
#include <cstdint>

namespace systole {

// What the memory is used for. For each use, the largest number given to NeedScratch() counts.
enum class ScratchUse {
  kPlan,          // Memory whose size the spec decides: decoders, tables, an unfinished example.
  kReads,         // Buffers for records that are read.
  kPayloads,      // Copies of records whose examples wait for other examples.
  kCoefficients,  // The coefficients of a JPEG with several scans.
  kValues,        // Whole images between two transforms.
};
inline constexpr size_t kScratchUses = 5;

// Where a thread's memory is counted. A thread works in turns (scratch_budget.h), and may make
// several examples in a turn. Memory stops counting when the source's owner says that the example
// or the turn is over.
class ScratchSource {
 public:
  virtual ~ScratchSource() = default;

  // Counts at least `bytes` for `use` from now on. Waits until this much memory is free. False: the
  // thread was interrupted meanwhile (core/interrupt), and must not allocate the memory.
  virtual bool Need(ScratchUse use, int64_t bytes) = 0;
};

// While the scope lives, `source` counts its thread's memory instead of the previous source.
// Single-thread.
class ScratchScope {
 public:
  explicit ScratchScope(ScratchSource& source) : before_(source_) { source_ = &source; }
  ~ScratchScope() { source_ = before_; }
  ScratchScope(const ScratchScope&) = delete;
  ScratchScope& operator=(const ScratchScope&) = delete;

 private:
  friend bool NeedScratch(ScratchUse use, int64_t bytes);
  static inline thread_local ScratchSource* source_ = nullptr;

  ScratchSource* const before_;
};

// Call this before the memory for `use` grows to `bytes` in all. Outside of a scope nothing is
// counted. False: the thread was interrupted, so return InterruptedError().
inline bool NeedScratch(ScratchUse use, int64_t bytes) {
  return ScratchScope::source_ == nullptr || ScratchScope::source_->Need(use, bytes);
}

}  // namespace systole

#endif  // SYSTOLE_CORE_MEMORY_SCRATCH_SCOPE_H_
