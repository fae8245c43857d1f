// The results of a feed. Also options for a client that retries at once after a failure, and that
// never gives up too early, however slow the machine is.
//
// Thread-compatible.
#ifndef SYSTOLE_TESTS_CLIENT_FEED_DRAINED_FEED_H_
#define SYSTOLE_TESTS_CLIENT_FEED_DRAINED_FEED_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "client/feed/feed_client.h"
#include "gtest/gtest.h"
#include "tests/client/feed/fake_server.h"
#include "tests/status_matchers.h"
#include "tests/wait_until.h"

namespace systole {

struct DrainedFeed {
  std::vector<int64_t> steps;  // In the order they came.
  std::string wrong;           // The places of wrong bytes; empty: none.
  absl::Status end;
};

inline DrainedFeed Drain(FeedClient& client) {
  DrainedFeed drained;
  while (true) {
    absl::StatusOr<std::optional<Step>> step = client.Next();
    drained.end = step.status();
    if (!step.ok() || !step->has_value()) return drained;
    drained.steps.push_back((*step)->number());
    absl::StrAppend(&drained.wrong, WrongBytesOf(**step));
  }
}

inline std::vector<int64_t> Range(int64_t begin, int64_t end) {
  std::vector<int64_t> numbers;
  for (int64_t i = begin; i < end; ++i) numbers.push_back(i);
  return numbers;
}

// Expects every step of [begin, end) once, in order, with the right bytes, and then the end.
inline void ExpectAllSteps(const DrainedFeed& drained, int64_t begin, int64_t end) {
  EXPECT_THAT(drained.end, IsOk());
  EXPECT_EQ(drained.wrong, "");
  EXPECT_EQ(drained.steps, Range(begin, end));
}

inline FeedClientOptions Quick(std::vector<std::string> servers) {
  return {.servers = std::move(servers),
          .connect_timeout = absl::FromChrono(kLongestWait),
          .retry_for = absl::FromChrono(kLongestWait),
          .backoff = absl::Milliseconds(1),
          .max_backoff = absl::Milliseconds(20)};
}

// Returns null, with a failure noted, if the client cannot be made.
inline std::unique_ptr<FeedClient> MustCreate(const FakeFeed& feed, FeedClientOptions options) {
  absl::StatusOr<std::unique_ptr<FeedClient>> client =
      FeedClient::Create(SpecOf(feed), std::move(options));
  EXPECT_THAT(client, IsOk());
  return client.ok() ? *std::move(client) : nullptr;
}

}  // namespace systole

#endif  // SYSTOLE_TESTS_CLIENT_FEED_DRAINED_FEED_H_
