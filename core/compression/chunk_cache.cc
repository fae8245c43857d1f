#include "core/compression/chunk_cache.h"

#include <utility>

#include "core/status/check.h"
#include "core/status/status_macros.h"

namespace systole {

ChunkCache::~ChunkCache() {
  for (const auto& [key, chunk] : chunks_) SYSTOLE_CHECK(chunk.users == 0);
}

uint64_t ChunkCache::NewFile() {
  MutexLock lock(mu_);
  return files_++;
}

void ChunkCache::Forget(uint64_t file) {
  MutexLock lock(mu_);
  for (auto at = chunks_.lower_bound({.file = file, .chunk = 0});
       at != chunks_.end() && at->first.file == file;) {
    SYSTOLE_CHECK(at->second.users == 0);
    unused_.erase(at->second.place);
    Erase(at++);
  }
  changed_.SignalAll();
}

bool ChunkCache::MakeRoom(uint64_t bytes) {
  while (held_bytes_ + bytes > max_bytes_ && !unused_.empty()) {
    const auto at = chunks_.find(unused_.front());
    unused_.pop_front();
    Erase(at);
  }
  return held_bytes_ + bytes <= max_bytes_;
}

void ChunkCache::Erase(std::map<Key, Chunk>::iterator at) {
  held_bytes_ -= at->second.bytes;
  chunks_.erase(at);
}

void ChunkCache::Release(const Key& key, Chunk& chunk) {
  if (--chunk.users > 0) return;
  chunk.place = unused_.insert(unused_.end(), key);
  changed_.SignalAll();
}

absl::Status ChunkCache::Make(Chunk& chunk,
                              absl::FunctionRef<absl::Status(absl::Span<char>)> fill) {
  SYSTOLE_ASSIGN_OR_RETURN(chunk.memory, AlignedBuffer::Create(static_cast<int64_t>(chunk.bytes)));
  return fill(absl::MakeSpan(reinterpret_cast<char*>(chunk.memory.data()), chunk.bytes));
}

absl::Status ChunkCache::Read(const Key& key, uint64_t bytes,
                              absl::FunctionRef<absl::Status(absl::Span<char>)> fill,
                              absl::FunctionRef<void(absl::string_view)> use) {
  SYSTOLE_CHECK(bytes <= max_bytes_);
  std::map<Key, Chunk>::iterator at;
  bool is_maker = false;
  {
    MutexLock lock(mu_);
    while (true) {
      at = chunks_.find(key);
      if (at != chunks_.end() && at->second.is_filled) {
        if (at->second.users++ == 0) unused_.erase(at->second.place);
        break;
      }
      if (at == chunks_.end() && MakeRoom(bytes)) {
        held_bytes_ += bytes;
        at = chunks_.try_emplace(key).first;
        at->second.bytes = bytes;
        at->second.users = 1;
        is_maker = true;
        break;
      }
      changed_.Wait(mu_);
    }
  }
  // A chunk in use stays where it is, and only its maker writes to it.
  Chunk& chunk = at->second;
  if (is_maker) {
    const absl::Status made = Make(chunk, fill);
    MutexLock lock(mu_);
    chunk.is_filled = made.ok();
    if (!made.ok()) Erase(at);
    changed_.SignalAll();
    if (!made.ok()) return made;
  }
  use(absl::string_view(reinterpret_cast<const char*>(chunk.memory.data()), bytes));
  MutexLock lock(mu_);
  Release(key, chunk);
  return absl::OkStatus();
}

}  // namespace systole
