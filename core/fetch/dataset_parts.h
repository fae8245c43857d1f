// Bounds how much of a BlockReader one dataset may hold, because its storage may hang.
//
// A dataset gets at most three quarters of what no other dataset holds. This rule is for the
// requests, for the queue, and for the memory of blocks that are still to come. So if the storage
// of one dataset hangs, a quarter is left to the others. If the storage of a second dataset hangs,
// a quarter of that quarter is left. A dataset with a very small part may still hold one request if
// a request is free, and may queue one want if the memory has room for the want.
//
// The first read of a block is queued, then under way. If this read is slow, a second read of the
// block may begin without being queued. Both reads may hang. Thread-compatible.
#ifndef SYSTOLE_CORE_FETCH_DATASET_PARTS_H_
#define SYSTOLE_CORE_FETCH_DATASET_PARTS_H_

#include <cstdint>
#include <unordered_map>

namespace systole {

class DatasetParts {
 public:
  // REQUIRES: requests > 0.
  DatasetParts(int64_t requests, int64_t memory_bytes)
      : requests_(requests), memory_bytes_(memory_bytes) {}

  // Whether the dataset stays within its part of the queue and of the memory if `blocks` more
  // blocks, with `bytes` bytes in all, are queued. The number of blocks is not bounded if the
  // dataset has nothing in the queue. The number of bytes is not bounded if the dataset holds no
  // memory, or only the memory of hanging reads.
  bool MayQueue(uint64_t dataset, int64_t blocks, int64_t bytes) const;
  // Whether one more read of the dataset may begin.
  bool MayBegin(uint64_t dataset) const;
  // Whether no read of the dataset can begin until a read that hangs comes back. This is true
  //   * if the dataset's hanging reads hold its whole part of the requests or of the memory, or
  //   * if the hanging reads of all datasets together hold all requests.
  bool AllHang(uint64_t dataset) const;

  // Queue(): a block of `bytes` bytes enters the queue. Unqueue(): the block leaves the queue
  // unread.
  void Queue(uint64_t dataset, int64_t bytes);
  void Unqueue(uint64_t dataset, int64_t bytes);
  // A queued block's read begins.
  void BeginQueued(uint64_t dataset);
  // A read that was not queued begins.
  void Begin(uint64_t dataset, int64_t bytes);
  // A read that holds `bytes` bytes of memory hangs.
  void Hang(uint64_t dataset, int64_t bytes);
  // A read has brought its bytes, or an error. From now on the read's memory does not count here.
  // The read's request counts until End(). `hung`: whether Hang() was called for the read.
  void Arrive(uint64_t dataset, int64_t bytes, bool hung);
  void End(uint64_t dataset, bool hung);

  int64_t queued() const { return all_.queued; }
  int64_t under_way() const { return all_.under_way; }
  int64_t hung() const { return all_.hung; }

 private:
  struct Counts {
    int64_t queued = 0;
    int64_t under_way = 0;  // Including reads that hang.
    int64_t hung = 0;
    int64_t bytes = 0;  // The memory of all reads that are queued or under way.
    int64_t hung_bytes = 0;
  };

  Counts Of(uint64_t dataset) const;
  void Add(uint64_t dataset, const Counts& more);
  // How many requests the dataset may hold.
  int64_t RequestsFor(const Counts& of) const;
  int64_t MemoryFor(const Counts& of) const;

  const int64_t requests_;
  const int64_t memory_bytes_;
  Counts all_;
  std::unordered_map<uint64_t, Counts> datasets_;  // Datasets that hold something.
};

}  // namespace systole

#endif  // SYSTOLE_CORE_FETCH_DATASET_PARTS_H_
