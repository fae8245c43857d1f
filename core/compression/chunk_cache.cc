#include "core/compression/chunk_cache.h"

#include <utility>

#include "core/status/check.h"
#include "core/status/status_macros.h"

namespace systole {

ChunkCache::~ChunkCache() {
  for (const auto& [key, chunk] : chunks_) SYSTOLE_CHECK(chunk.users == 0);
}

uint64_t ChunkCache::held_bytes() const {
  MutexLock lock(mu_);
  return held_bytes_;
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
    Unpark(at->second);
    Erase(at++);
  }
  changed_.SignalAll();
}

bool ChunkCache::MakeRoom(uint64_t bytes) {
  if (held_bytes_ - unused_bytes_ + bytes > max_bytes_) return false;
  while (held_bytes_ + bytes > max_bytes_) {
    const auto at = chunks_.find(unused_.front());
    Unpark(at->second);
    Erase(at);
  }
  return true;
}

void ChunkCache::Unpark(Chunk& chunk) {
  unused_.erase(chunk.place);
  unused_bytes_ -= chunk.bytes;
}

void ChunkCache::Erase(std::map<Key, Chunk>::iterator at) {
  held_bytes_ -= at->second.bytes;
  chunks_.erase(at);
}

void ChunkCache::Release(const Key& key, Chunk& chunk) {
  if (--chunk.users > 0) return;
  chunk.place = unused_.insert(unused_.end(), key);
  unused_bytes_ += chunk.bytes;
  changed_.SignalAll();
}

std::pair<std::map<ChunkCache::Key, ChunkCache::Chunk>::iterator, bool> ChunkCache::Take(
    const Key& key, uint64_t bytes) {
  MutexLock lock(mu_);
  auto place = waiting_.end();
  const auto leave_queue = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (place == waiting_.end()) return;
    waiting_.erase(place);
    changed_.SignalAll();
  };
  while (true) {
    auto at = chunks_.find(key);
    if (at != chunks_.end() && at->second.is_filled) {
      leave_queue();
      if (at->second.users++ == 0) Unpark(at->second);
      return {at, false};
    }
    if (at == chunks_.end()) {
      const bool is_next = place == waiting_.end() ? waiting_.empty() : place == waiting_.begin();
      if (is_next && MakeRoom(bytes)) {
        leave_queue();
        held_bytes_ += bytes;
        at = chunks_.try_emplace(key).first;
        at->second.bytes = bytes;
        at->second.users = 1;
        return {at, true};
      }
      if (place == waiting_.end()) place = waiting_.insert(waiting_.end(), key);
    }
    changed_.Wait(mu_);
  }
}

absl::Status ChunkCache::Make(Chunk& chunk,
                              absl::FunctionRef<absl::Status(absl::Span<char>)> fill) {
  SYSTOLE_ASSIGN_OR_RETURN(chunk.memory, AlignedBuffer::Create(static_cast<int64_t>(chunk.bytes)));
  return fill(absl::MakeSpan(reinterpret_cast<char*>(chunk.memory.data()), chunk.bytes));
}

absl::Status ChunkCache::Read(const Key& key, uint64_t bytes,
                              absl::FunctionRef<absl::Status(absl::Span<char>)> fill,
                              absl::FunctionRef<void(absl::string_view)> use) {
  SYSTOLE_CHECK(bytes <= max_chunk_bytes());
  const auto [at, is_maker] = Take(key, bytes);
  // A chunk in use stays in the table, and only the thread that makes it writes to it.
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
