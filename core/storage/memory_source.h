// Bytes in memory as a ByteSource: for tests, fuzzers, and shards small enough to keep.
//
// Thread-safe: immutable. Owns its bytes.
#ifndef SYSTOLE_CORE_STORAGE_MEMORY_SOURCE_H_
#define SYSTOLE_CORE_STORAGE_MEMORY_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/storage/byte_source.h"

namespace systole {

class MemorySource final : public ByteSource {
 public:
  explicit MemorySource(std::string bytes, std::string name = "memory")
      : bytes_(std::move(bytes)), name_(std::move(name)) {}

  absl::StatusOr<size_t> ReadAt(uint64_t offset, absl::Span<char> out) const override;
  absl::StatusOr<uint64_t> Size() const override { return bytes_.size(); }
  bool is_local() const override { return true; }
  absl::Status CheckUnchanged() const override { return absl::OkStatus(); }
  absl::string_view name() const override { return name_; }

 private:
  const std::string bytes_;
  const std::string name_;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_STORAGE_MEMORY_SOURCE_H_
