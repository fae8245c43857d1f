// Keeps decompressed chunks of many files, with one limit for the bytes of all chunks. The least
// recently used chunk is evicted first.
//
// Thread-safe. If several threads need a chunk, one of them makes the chunk, and the others wait.
#ifndef SYSTOLE_CORE_COMPRESSION_CHUNK_CACHE_H_
#define SYSTOLE_CORE_COMPRESSION_CHUNK_CACHE_H_

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/concurrency/mutex.h"
#include "core/memory/aligned_buffer.h"

namespace systole {

class ChunkCache {
 public:
  // Enough for some dozens of threads: about 1,000 chunks of 256 KiB, or 60 of 4 MiB.
  static constexpr uint64_t kDefaultBytes = uint64_t{256} << 20;

  // All chunks together have at most `max_bytes`, including chunks that threads are making.
  explicit ChunkCache(uint64_t max_bytes = kDefaultBytes) : max_bytes_(max_bytes) {}
  ~ChunkCache();
  ChunkCache(const ChunkCache&) = delete;
  ChunkCache& operator=(const ChunkCache&) = delete;

  // The most bytes that a chunk may have. Two chunks of this size fit into the cache.
  uint64_t max_chunk_bytes() const { return max_bytes_ / 2; }

  // Bytes of all chunks now, including chunks that threads are making.
  uint64_t held_bytes() const ABSL_LOCKS_EXCLUDED(mu_);

  // Returns a number for Key::file that was not returned before.
  uint64_t NewFile() ABSL_LOCKS_EXCLUDED(mu_);
  // Removes all chunks of `file`. REQUIRES: no thread reads or makes one of these chunks.
  void Forget(uint64_t file) ABSL_LOCKS_EXCLUDED(mu_);

  struct Key {
    uint64_t file = 0;
    size_t chunk = 0;

    friend bool operator<(const Key& a, const Key& b) {
      return a.file != b.file ? a.file < b.file : a.chunk < b.chunk;
    }
  };
  // Calls `use` with the chunk's bytes. If the cache does not have the chunk, calls `fill` first,
  // which writes the chunk's bytes. Returns the errors of `fill`, and ResourceExhausted if there is
  // no memory; the chunk is then not kept. Waits while chunks that other callers use leave no room.
  // Callers get room in the order of their calls. Neither `fill` nor `use` may call the cache.
  // REQUIRES: bytes <= max_chunk_bytes(), and each call with this key has the same `bytes`.
  absl::Status Read(const Key& key, uint64_t bytes,
                    absl::FunctionRef<absl::Status(absl::Span<char>)> fill,
                    absl::FunctionRef<void(absl::string_view)> use) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Chunk {
    AlignedBuffer memory;
    uint64_t bytes = 0;
    bool is_filled = false;
    int users = 0;                   // Calls that read or make the chunk.
    std::list<Key>::iterator place;  // The chunk's place in unused_, if users is 0.
  };

  // Fills a chunk that no other thread reads yet.
  static absl::Status Make(Chunk& chunk, absl::FunctionRef<absl::Status(absl::Span<char>)> fill);
  // Removes unused chunks until there is room for `bytes` more bytes. If removing all of them would
  // not make enough room, removes none and returns false.
  bool MakeRoom(uint64_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Waits for the chunk or for room. Returns the chunk, and whether the caller must fill it. From
  // then on the caller uses the chunk, until Release().
  std::pair<std::map<Key, Chunk>::iterator, bool> Take(const Key& key, uint64_t bytes)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Takes a chunk out of unused_, because it is to be used or erased.
  void Unpark(Chunk& chunk) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Release(const Key& key, Chunk& chunk) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Erase(std::map<Key, Chunk>::iterator at) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const uint64_t max_bytes_;
  mutable Mutex mu_;
  CondVar changed_;
  uint64_t files_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t held_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  std::map<Key, Chunk> chunks_ ABSL_GUARDED_BY(mu_);
  std::list<Key> unused_ ABSL_GUARDED_BY(mu_);  // The least recently used first.
  uint64_t unused_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  // The keys of the calls that wait for room, in the order of these calls.
  std::list<Key> waiting_ ABSL_GUARDED_BY(mu_);
};

}  // namespace systole

#endif  // SYSTOLE_CORE_COMPRESSION_CHUNK_CACHE_H_
