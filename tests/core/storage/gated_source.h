// A MemorySource behind a gate. Reads wait while the gate is shut, as on a network file system
// whose server does not answer.
//
// Thread-safe.
#ifndef SYSTOLE_TESTS_CORE_STORAGE_GATED_SOURCE_H_
#define SYSTOLE_TESTS_CORE_STORAGE_GATED_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/concurrency/mutex.h"
#include "core/storage/byte_source.h"
#include "core/storage/memory_source.h"

namespace systole {

// A gate that sources and the test share. It is open at first.
class Gate {
 public:
  // Makes reads wait until Open(), or until `crowd` reads wait at the same time.
  void Shut(int crowd = std::numeric_limits<int>::max()) ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    crowd_ = crowd;
    open_ = false;
  }
  void Open() ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    open_ = true;
    changed_.SignalAll();
  }
  int waiting() const ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    return waiting_;
  }
  // The number of reads so far.
  int reads() const ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    return reads_;
  }
  // How often a source was asked whether it is unchanged.
  int checks() const ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    return checks_;
  }
  void CountCheck() ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    ++checks_;
  }
  void Pass() ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    ++reads_;
    ++waiting_;
    if (waiting_ >= crowd_) {
      open_ = true;
      changed_.SignalAll();
    }
    while (!open_) changed_.Wait(mu_);
    --waiting_;
  }

 private:
  mutable Mutex mu_;
  CondVar changed_;
  bool open_ ABSL_GUARDED_BY(mu_) = true;
  int crowd_ ABSL_GUARDED_BY(mu_) = std::numeric_limits<int>::max();
  int waiting_ ABSL_GUARDED_BY(mu_) = 0;
  int reads_ ABSL_GUARDED_BY(mu_) = 0;
  int checks_ ABSL_GUARDED_BY(mu_) = 0;
};

class GatedSource final : public ByteSource {
 public:
  GatedSource(std::string bytes, std::string name, std::shared_ptr<Gate> gate, bool is_local = true,
              std::string identity = "")
      : memory_(std::move(bytes), std::move(name)),
        gate_(std::move(gate)),
        is_local_(is_local),
        identity_(std::move(identity)) {}

  absl::StatusOr<size_t> ReadAt(uint64_t offset, absl::Span<char> out) const override {
    gate_->Pass();
    return memory_.ReadAt(offset, out);
  }
  absl::StatusOr<uint64_t> Size() const override { return memory_.Size(); }
  bool is_local() const override { return is_local_; }
  std::string identity() const override { return identity_; }
  absl::Status CheckUnchanged() const override {
    gate_->CountCheck();
    return absl::OkStatus();
  }
  absl::string_view name() const override { return memory_.name(); }

 private:
  const MemorySource memory_;
  const std::shared_ptr<Gate> gate_;
  const bool is_local_;
  const std::string identity_;
};

}  // namespace systole

#endif  // SYSTOLE_TESTS_CORE_STORAGE_GATED_SOURCE_H_
