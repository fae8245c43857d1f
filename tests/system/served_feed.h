// Runs the real programs on real shards, as a user would.
//
// Thread-compatible.
#ifndef SYSTOLE_TESTS_SYSTEM_SERVED_FEED_H_
#define SYSTOLE_TESTS_SYSTEM_SERVED_FEED_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/system/process.h"

namespace systole {

// The paths of the programs under test. The environment variables SYSTOLE_PROGRAM and
// SYSTOLE_SERVER_PROGRAM can name other programs than those of this build, for example programs of
// another architecture (tests/deploy/aarch64.sh).
std::string SystoleProgram();
std::string ServerProgram();

// Runs `systole ARGS..` until it ends.
Finished RunSystole(const std::vector<std::string>& args, const ProcessOptions& options = {});

// A systole-server on a port that it chooses itself. The destructor kills it.
class ServerProcess {
 public:
  // Runs `systole-server --listen 127.0.0.1:0 --port-file .. ARGS..` and returns when the server
  // serves. If the server ends instead, returns Unavailable with its stderr.
  static absl::StatusOr<std::unique_ptr<ServerProcess>> Start(const std::vector<std::string>& args,
                                                              const ProcessOptions& options = {});

  // "127.0.0.1:PORT".
  const std::string& address() const { return address_; }
  Process& process() { return process_; }

 private:
  ServerProcess(const std::vector<std::string>& args, const ProcessOptions& options)
      : process_(args, options) {}

  Process process_;
  std::string address_;
};

// Draws `images` flowers and packs them into `shards` train shards FOLDER/flowers-train-*. Aborts
// the test if this fails.
void PackFlowers(const TempFolder& folder, int images, int shards);

// A shard of the records `first` to `first` + `count` - 1, with `record_bytes` bytes each. Each
// byte depends on the number of its record and on its place in the record.
std::string RawShard(int first, int count, int record_bytes);

// A spec of augmented images with labels and record ids. The feed is shuffled and has 2 epochs. A
// step has 16 examples on 8 cores. `extra` is further textproto, such as "tail: PAD".
std::string FlowersSpec(const std::string& extra = "");

// A spec of raw records. With 64 records an epoch is one step.
std::string RawSpec(int record_bytes, int epochs);

// Sorts lines that begin with "STEP CORE " by these two numbers.
std::string SortedByStepAndCore(const std::string& lines);

std::vector<std::string> Lines(const std::string& text);

// The token that `systole feed` printed at its end. The test fails if there is none.
std::string TokenIn(const Finished& feed);

}  // namespace systole

#endif  // SYSTOLE_TESTS_SYSTEM_SERVED_FEED_H_
