// Tells other threads how many bytes a thread's read has brought so far. So code that watches a
// read can tell a slow link from storage that hangs. On a slow link bytes come all the time.
//
//   ReadProgress progress;                       // One for the read. Any thread may look at it.
//   const ReadProgressScope scope(progress);     // On the reading thread, around the read.
//     .. NoteRead(bytes);                        // In the read, each time that bytes have come.
#ifndef SYSTOLE_CORE_INTERRUPT_READ_PROGRESS_H_
#define SYSTOLE_CORE_INTERRUPT_READ_PROGRESS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace systole {

// Thread-safe.
class ReadProgress {
 public:
  void Add(size_t bytes) {
    bytes_.fetch_add(static_cast<int64_t>(bytes), std::memory_order_relaxed);
  }
  // The bytes of failed attempts count, too. So the number may exceed the size of the read.
  int64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> bytes_ = 0;
};

// While the scope lives, the bytes that its thread reads are added to `progress` and to no other
// ReadProgress. Single-thread.
class ReadProgressScope {
 public:
  explicit ReadProgressScope(ReadProgress& progress) : before_(current_) { current_ = &progress; }
  ~ReadProgressScope() { current_ = before_; }
  ReadProgressScope(const ReadProgressScope&) = delete;
  ReadProgressScope& operator=(const ReadProgressScope&) = delete;

 private:
  friend ReadProgress* CurrentReadProgress();
  static inline thread_local ReadProgress* current_ = nullptr;

  ReadProgress* const before_;
};

// Where this thread's reads are counted; null outside of a ReadProgressScope. For code in which
// this thread sleeps while another thread gets the bytes. Valid as long as the scope lives.
inline ReadProgress* CurrentReadProgress() { return ReadProgressScope::current_; }

// Adds `bytes` to the progress of this thread's read.
inline void NoteRead(size_t bytes) {
  if (ReadProgress* const progress = CurrentReadProgress(); progress != nullptr) {
    progress->Add(bytes);
  }
}

}  // namespace systole

#endif  // SYSTOLE_CORE_INTERRUPT_READ_PROGRESS_H_
