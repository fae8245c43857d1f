// What every scenario here does: a feed of real shards from real servers, each behind a FaultProxy,
// whose digests must be those of the undisturbed run whatever happens meanwhile, and in which each
// record must be once in each epoch.
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

// The seed of this run: SYSTOLE_CHAOS_SEED, or one of its own. Each test tells it when it fails.
uint64_t ChaosSeed();
// How often a scenario repeats something: `quick` times in the part that runs with all tests,
// `full` times if SYSTOLE_CHAOS is "full".
int Times(int quick, int full);

// The number in the first field `name` of what a command printed with --json. A failure if there is
// none.
double JsonNumber(const std::string& json, const std::string& name);

// 64 records of 32 KiB in two shards; a step is 2 MiB over 8 cores, an epoch is one step.
inline constexpr int kChaosRecords = 64;
inline constexpr int kChaosRecordBytes = 32 << 10;
// The textproto of such a feed, without end, of the dataset `name`.
std::string ChaosSpec(const std::string& name = "raw");

class ChaosTest : public testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  // Starts one more server, behind a proxy of its own. `args` are flags besides the dataset's.
  void AddServer(const std::vector<std::string>& args = {}, const ProcessOptions& options = {});
  // Starts server `i`, which has ended, anew.
  void Restart(int i);
  FaultProxy& proxy(int i) { return *places_[static_cast<size_t>(i)].proxy; }
  Process& server(int i) { return places_[static_cast<size_t>(i)].server->process(); }
  // Where server `i` itself listens.
  const std::string& address(int i) const {
    return places_[static_cast<size_t>(i)].server->address();
  }
  int num_servers() const { return static_cast<int>(places_.size()); }
  // The proxies' addresses, as --server takes them.
  std::string Servers() const;
  // Faults of all proxies.
  void SetAll(const Faults& faults);

  // The command line of StartFeed().
  std::vector<std::string> FeedArgs(int steps, const std::vector<std::string>& more) const;
  // `systole feed` over `steps` steps of all servers, which prints a digest of each example; `more`
  // are further flags.
  std::unique_ptr<Process> StartFeed(int steps, const std::vector<std::string>& more = {});
  // The same in mid-stream: it has begun to print and then waits for a reader, so it cannot end
  // before somebody reads on. Its first line is added to `printed`.
  std::unique_ptr<Process> FeedInMidStream(int steps, std::string& printed,
                                           const std::vector<std::string>& more = {});
  // Waits for the feed's end. `printed` and what it printed after that must be the lines of the
  // undisturbed run of `steps` steps.
  void ExpectUndisturbed(Process& feed, int steps, const std::string& printed = "");
  // The same check of what one feed, or several together, printed.
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

  // What the first `steps` steps are when nothing happens, a line for each example.
  std::string Undisturbed(int steps);
  // Each step is an epoch: each record must be in each once.
  void ExpectEachRecordOnce(const std::string& printed, int steps);

  std::mt19937_64 random_;
  std::vector<Place> places_;
};

}  // namespace systole

#endif  // SYSTOLE_TESTS_CHAOS_CHAOS_FEED_H_
