// All chaos tests share this feed of real shards from real servers. Each server is behind a
// FaultProxy. Whatever faults happen, the feed's digests must be those of the undisturbed run, and
// each record must be in each epoch exactly once.
//
// Thread-compatible.
#ifndef SYSTOLE_TESTS_CHAOS_CHAOS_FEED_H_
#define SYSTOLE_TESTS_CHAOS_CHAOS_FEED_H_

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/chaos/fault_proxy.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/system/process.h"
#include "tests/system/served_feed.h"

namespace systole {

// The seed of this run: SYSTOLE_CHAOS_SEED, or a random one. A test that fails prints the seed.
uint64_t ChaosSeed();
// How often a scenario repeats something: `full` times if SYSTOLE_CHAOS is "full", otherwise
// `quick` times.
int Times(int quick, int full);

// Returns the number in the first field `name` of `json`, the output of a command with --json. The
// test fails if there is no such field.
double JsonNumber(const std::string& json, const std::string& name);

// Flags of a client that prefetches few steps, so that servers still have steps to send when a test
// disturbs them.
inline const std::vector<std::string> kFewAhead = {"--prefetch-bytes", "33554432"};

// The data are 64 records of 32 KiB in two shards. A step is 2 MiB over 8 cores, and an epoch is
// one step.
inline constexpr int kChaosRecords = 64;
inline constexpr int kChaosRecordBytes = 32 << 10;
// The textproto of an endless feed of the dataset `name`.
std::string ChaosSpec(const std::string& name = "raw", int record_bytes = kChaosRecordBytes);

class ChaosTest : public testing::Test {
 protected:
  // A step is kChaosRecords records of this size.
  explicit ChaosTest(int record_bytes = kChaosRecordBytes) : record_bytes_(record_bytes) {}
  void SetUp() override;
  void TearDown() override;

  // Starts one more server behind a proxy of its own. `args` are flags besides `--dataset`.
  void AddServer(const std::vector<std::string>& args = {}, const ProcessOptions& options = {});
  // Starts server `i` again. REQUIRES: it has ended.
  void Restart(int i);
  // Kills `victims` servers with consecutive numbers, beginning with a random server. Starts them
  // again after 300 ms.
  void Kill(int victims);
  FaultProxy& proxy(int i) { return *places_[static_cast<size_t>(i)].proxy; }
  Process& server(int i) { return places_[static_cast<size_t>(i)].server->process(); }
  // The address on which server `i` itself listens.
  const std::string& address(int i) const {
    return places_[static_cast<size_t>(i)].server->address();
  }
  int num_servers() const { return static_cast<int>(places_.size()); }
  // The proxies' addresses, in the form that --server takes.
  std::string Servers() const;
  // Sets the faults of all proxies.
  void SetAll(const Faults& faults);

  // The command line that StartFeed() runs.
  std::vector<std::string> FeedArgs(int steps, const std::vector<std::string>& more) const;
  // Starts `systole feed`, which reads `steps` steps from all servers and prints a digest of each
  // example. `more` are further flags.
  std::unique_ptr<Process> StartFeed(int steps, const std::vector<std::string>& more = {});
  // Starts a feed as StartFeed() does, and waits until the feed has printed its first line, which
  // is added to `printed`. The feed then waits until the test reads more of its output, so the feed
  // cannot end before that.
  std::unique_ptr<Process> FeedInMidStream(int steps, std::string& printed,
                                           const std::vector<std::string>& more = {});
  // Waits for the end of `feed`. `printed`, followed by the rest of the feed's output, must be the
  // lines of the undisturbed run of `steps` steps.
  void ExpectUndisturbed(Process& feed, int steps, const std::string& printed = "");
  // The same check for lines that one feed, or several feeds together, have printed.
  void ExpectUndisturbed(const std::string& printed, int steps);

  uint64_t Draw(uint64_t below) { return random_() % below; }

  const TempFolder folder_;
  std::string spec_path_;

 private:
  struct Place {
    std::vector<std::string> args;
    ProcessOptions options;
    std::unique_ptr<FaultProxy> proxy;
    std::unique_ptr<ServerProcess> server;
  };

  // The lines that the undisturbed run prints for its first `steps` steps, one for each example.
  std::string Undisturbed(int steps);
  // Each step is an epoch, so each record must be in each step exactly once.
  void ExpectEachRecordOnce(const std::string& printed, int steps);

  const int record_bytes_;
  std::mt19937_64 random_;
  std::vector<Place> places_;
};

}  // namespace systole

#endif  // SYSTOLE_TESTS_CHAOS_CHAOS_FEED_H_
