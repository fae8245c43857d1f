// Keeps each value in a file of its own (disk_entry.h). The files are in 256 folders by the first
// two digits of their names: FOLDER/ab/ab... The files outlive the process. Nothing is synced to
// the device, so a power cut may damage files. A damaged file is noticed and removed when its value
// is looked up.
//
// Thread-safe. Reads and writes files on the caller's thread, without a lock.
#ifndef SYSTOLE_CORE_CACHE_DISK_STORE_H_
#define SYSTOLE_CORE_CACHE_DISK_STORE_H_

#include <unistd.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/cache/cache_key.h"
#include "core/cache/kept_set.h"
#include "core/concurrency/mutex.h"
#include "core/descriptor/owned_fd.h"

namespace systole {

// How the file of a value is written.
enum class DiskWrite {
  kCached,  // Into the kernel's page cache. The kernel writes it to the device later.
  // Past the page cache (FileSinkOptions::direct), if the value's address in memory allows this. If
  // this address modulo kFilePageBytes is kDiskEntryHeaderBytes, all whole pages of the file are
  // written past the page cache.
  kDirect,
};

class DiskStore {
 public:
  // Makes the folder if it is missing, locks it for this process alone, and lists the values in it.
  // Removes temporary files that killed processes left. All other files whose names are not keys
  // stay. If the values take more than `budget_bytes`, some of them are removed.
  //   FailedPrecondition  another process uses the folder.
  // Also errors of making and reading the folder. Each message names the folder.
  static absl::StatusOr<std::unique_ptr<DiskStore>> Open(const std::string& folder,
                                                         int64_t budget_bytes);

  // Releases the folder for other processes, even if forked children of this process live on.
  ~DiskStore();
  DiskStore(const DiskStore&) = delete;
  DiskStore& operator=(const DiskStore&) = delete;

  // See ValueCache (value_cache.h).
  std::shared_ptr<const std::string> Find(const CacheKey& key, uint64_t user);
  // Copies a value that is as long as `out` to `out`. A value of another length counts as damaged.
  // False if the value is not kept or is damaged; `out` may then have any bytes.
  bool FindInto(const CacheKey& key, uint64_t user, absl::Span<char> out);
  bool Admits(int64_t bytes) const;
  int64_t RoomFor(int64_t bytes) const;
  void Insert(const CacheKey& key, uint64_t user, absl::string_view value,
              DiskWrite how = DiskWrite::kCached);

  int64_t used_bytes() const;
  int64_t budget_bytes() const;
  int64_t damaged_entries() const;

 private:
  DiskStore(std::string folder, OwnedFd lock, int64_t budget_bytes)
      : folder_(std::move(folder)),
        lock_(std::move(lock)),
        process_(::getpid()),
        kept_(budget_bytes) {}

  absl::Status List();
  std::string PathOf(const CacheKey& key) const;
  // Looks `key` up for `user`. Returns the most bytes that its file may have; nullopt if the value
  // is not kept.
  std::optional<int64_t> LimitIfKept(const CacheKey& key, uint64_t user) ABSL_LOCKS_EXCLUDED(mu_);
  void RemoveDamaged(const CacheKey& key) ABSL_LOCKS_EXCLUDED(mu_);

  const std::string folder_;
  const OwnedFd lock_;   // The file FOLDER/lock, locked as long as this object lives.
  const pid_t process_;  // The process that opened the folder.
  mutable Mutex mu_;
  KeptSet kept_ ABSL_GUARDED_BY(mu_);
  int64_t damaged_ ABSL_GUARDED_BY(mu_) = 0;
  // How many of the next values are not written, because a write has failed.
  int64_t passed_over_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_CACHE_DISK_STORE_H_
