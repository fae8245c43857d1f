// Fetches ranges of objects with bare libcurl, on many connections at a time, from one thread. Its
// speed is the ceiling of everything that reads objects by HTTP.
//
// Single-thread. A request that fails ends the program.
#ifndef SYSTOLE_BENCH_BARE_FETCH_H_
#define SYSTOLE_BENCH_BARE_FETCH_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"

namespace systole::bench {

struct FetchRange {
  std::string url;
  int64_t offset = 0;
  int64_t size = 0;
};

class BareFetch {
 public:
  // At most `connections` requests are under way at a time. The connections are kept.
  explicit BareFetch(int connections);
  ~BareFetch();
  BareFetch(const BareFetch&) = delete;
  BareFetch& operator=(const BareFetch&) = delete;

  // Requests the ranges in order. Each connection has one buffer. Each range is copied into the
  // buffer of its connection, and overwrites the range that this connection fetched before.
  void Fetch(absl::Span<const FetchRange> ranges);

 private:
  struct Request;
  void Begin(Request& request, const FetchRange& range);

  void* multi_;
  std::vector<std::unique_ptr<Request>> requests_;
};

}  // namespace systole::bench

#endif  // SYSTOLE_BENCH_BARE_FETCH_H_
