// Decompressed chunks of many files under one byte limit. The least recently used chunk is evicted
// first.
//
// Thread-safe. A chunk that several threads need is made by one of them, and the others wait.
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
  // Enough for some dozens of threads that each read one chunk and make another.
  static constexpr uint64_t kDefaultBytes = uint64_t{256} << 20;

  // All chunks together have at most `max_bytes`, including those that are being made.
  explicit ChunkCache(uint64_t max_bytes = kDefaultBytes) : max_bytes_(max_bytes) {}
  ~ChunkCache();
  ChunkCache(const ChunkCache&) = delete;
  ChunkCache& operator=(const ChunkCache&) = delete;

  // The most bytes that a chunk may have. Two chunks of this size fit into the cache.
  uint64_t max_chunk_bytes() const { return max_bytes_ / 2; }

  // Bytes of all chunks now, including those that are being made.
  uint64_t held_bytes() const ABSL_LOCKS_EXCLUDED(mu_);

  // A new number for Key::file. No number is returned twice.
  uint64_t NewFile() ABSL_LOCKS_EXCLUDED(mu_);
  // Removes all chunks of `file`. REQUIRES: no thread reads one of these chunks.
  void Forget(uint64_t file) ABSL_LOCKS_EXCLUDED(mu_);

  struct Key {
    uint64_t file = 0;
    size_t chunk = 0;

    friend bool operator<(const Key& a, const Key& b) {
      return a.file != b.file ? a.file < b.file : a.chunk < b.chunk;
    }
  };
  // Calls `use` with the chunk's bytes. If the cache does not have them, `fill` writes them first.
  // Returns the errors of `fill`, and ResourceExhausted if there is no memory. After an error of
  // `fill` the chunk is not kept. Waits while there is no room, because other callers use the
  // chunks in the cache. Callers get room in the order in which they came. Neither `fill` nor `use`
  // may call the cache.
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
  // Removes unused chunks until there is room for `bytes` more bytes. If that is impossible,
  // removes none and returns false.
  bool MakeRoom(uint64_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // The chunk, in use by the caller from now on, and whether the caller must fill it.
  std::pair<std::map<Key, Chunk>::iterator, bool> Take(const Key& key, uint64_t bytes)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Takes a chunk out of unused_.
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
  // The keys that wait for room, in the order in which they came.
  std::list<Key> waiting_ ABSL_GUARDED_BY(mu_);
};

}  // namespace systole

#endif  // SYSTOLE_CORE_COMPRESSION_CHUNK_CACHE_H_
