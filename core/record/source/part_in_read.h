// Notes which part of a joined record (RecordSource::PartOf()) a thread reads now. If a read hangs,
// other threads can see which of the joined sources does not answer:
//
//   PartInRead part;                        // One for each thread. Any thread may call part().
//   const PartInReadScope scope(part);      // On the thread, around all of its work.
//     .. const ReadsPart reads(i);          // In a source that joins others, around the read of i.
//
// Like the flag of core/interrupt, a PartInRead belongs to the thread and is not passed as an
// argument, because it changes no result.
#ifndef SYSTOLE_CORE_RECORD_SOURCE_PART_IN_READ_H_
#define SYSTOLE_CORE_RECORD_SOURCE_PART_IN_READ_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace systole {

// Thread-safe.
class PartInRead {
 public:
  // Nullopt: no part of a joined record is read now.
  std::optional<size_t> part() const {
    const int64_t part = part_.load(std::memory_order_relaxed);
    return part < 0 ? std::nullopt : std::optional(static_cast<size_t>(part));
  }

 private:
  friend class ReadsPart;
  std::atomic<int64_t> part_ = -1;
};

// While the scope lives, parts that its thread reads are noted in `noted` and nowhere else.
// Single-thread.
class PartInReadScope {
 public:
  explicit PartInReadScope(PartInRead& noted) : before_(noted_) { noted_ = &noted; }
  ~PartInReadScope() { noted_ = before_; }
  PartInReadScope(const PartInReadScope&) = delete;
  PartInReadScope& operator=(const PartInReadScope&) = delete;

 private:
  friend class ReadsPart;
  static inline thread_local PartInRead* noted_ = nullptr;

  PartInRead* const before_;
};

// While a ReadsPart lives, its thread counts as reading the given part. Outside of a
// PartInReadScope nothing is noted. Single-thread. REQUIRES: no other ReadsPart lives on the
// thread.
class ReadsPart {
 public:
  explicit ReadsPart(size_t part) : noted_(PartInReadScope::noted_) {
    Note(static_cast<int64_t>(part));
  }
  ~ReadsPart() { Note(-1); }
  ReadsPart(const ReadsPart&) = delete;
  ReadsPart& operator=(const ReadsPart&) = delete;

 private:
  void Note(int64_t part) {
    if (noted_ != nullptr) noted_->part_.store(part, std::memory_order_relaxed);
  }

  PartInRead* const noted_;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_RECORD_SOURCE_PART_IN_READ_H_
