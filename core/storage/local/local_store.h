// The files of this machine. Names are paths.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_STORAGE_LOCAL_LOCAL_STORE_H_
#define SYSTOLE_CORE_STORAGE_LOCAL_LOCAL_STORE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/storage/byte_sink.h"
#include "core/storage/byte_source.h"
#include "core/storage/store.h"

namespace systole {

class LocalStore final : public Store {
 public:
  // Globs work as in POSIX (glob(3)).
  absl::StatusOr<std::vector<std::string>> List(const std::string& pattern,
                                                NameFilter wanted) const override;
  bool Takes(const std::string& pattern, const std::string& name) const override;
  absl::StatusOr<std::vector<std::string>> ListFolder(const std::string& folder) const override;
  // Also returns ResourceExhausted if no file descriptor is left.
  absl::StatusOr<std::unique_ptr<ByteSource>> Open(const std::string& name) const override;
  absl::StatusOr<StoredState> Stat(const std::string& name) const override;
  // A FileSink that does not wait for the device.
  absl::StatusOr<std::unique_ptr<ByteSink>> Create(const std::string& name) const override;
  absl::Status Remove(const std::string& name) const override;
  // Reads each folder only once, even if it has several of the names.
  void RemoveLeftovers(absl::Span<const std::string> names) const override;
  // The absolute path.
  std::string FullName(const std::string& name) const override;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_STORAGE_LOCAL_LOCAL_STORE_H_
