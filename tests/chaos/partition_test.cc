// A network that is really cut: the servers' end of a link between two network namespaces goes down
// and comes back. While the link is down, nothing acknowledges the client's bytes. (A FaultProxy
// acknowledges even the bytes that it swallows.)
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/chaos/chaos_feed.h"
#include "tests/wait_until.h"

namespace systole {
namespace {

// A network namespace with one address. A link connects this namespace to that of the test.
class FarHost {
 public:
  // `number` counts from 1. Each host has a network of its own.
  explicit FarHost(int number)
      : name_(absl::StrCat("systole-", ::getpid(), "-", number)),
        // Names of devices have 15 letters at most.
        link_(absl::StrCat("sys", ::getpid() % 100'000, "n", number)),
        network_(absl::StrCat("10.213.", number, ".")) {
    made_ = Shell("ip netns add NAME") &&
            Shell("ip link add LINK type veth peer name far netns NAME") &&
            Shell("ip addr add NETWORK1/24 dev LINK") && Shell("ip link set LINK up") &&
            Shell("ip -n NAME addr add NETWORK2/24 dev far") && Join();
  }
  // The link is deleted first. If only the namespace were deleted, the link would stay until the
  // kernel had forgotten the last socket in the namespace.
  ~FarHost() { Shell("ip link del LINK; ip netns del NAME"); }
  FarHost(const FarHost&) = delete;
  FarHost& operator=(const FarHost&) = delete;

  bool made() const { return made_; }
  std::string address() const { return network_ + "2"; }
  const std::string& name() const { return name_; }
  // Part() takes the host's link down, and Join() takes the link up again.
  bool Part() const { return Shell("ip -n NAME link set far down"); }
  bool Join() const { return Shell("ip -n NAME link set far up"); }

 private:
  bool Shell(const std::string& command) const {
    const std::string text =
        absl::StrReplaceAll(command, {{"NAME", name_}, {"LINK", link_}, {"NETWORK", network_}});
    return std::system(text.c_str()) == 0;
  }

  const std::string name_;
  const std::string link_;
  const std::string network_;
  bool made_ = false;
};

class PartitionTest : public ChaosTest {
 protected:
  void SetUp() override {
    ChaosTest::SetUp();
    for (int number = 1; number <= 2; ++number) {
      hosts_.push_back(std::make_unique<FarHost>(number));
      ASSERT_TRUE(hosts_.back()->made())
          << "this scenario makes network namespaces: run it as root, with iproute2 installed, or "
             "name the other scenarios";
      const std::string port_file = folder_ / absl::StrCat("port-", number);
      servers_.push_back(std::make_unique<Process>(std::vector<std::string>{
          "/usr/bin/env", "ip", "netns", "exec", hosts_.back()->name(), ServerProgram(), "--listen",
          hosts_.back()->address() + ":0", "--insecure", "--port-file", port_file, "--dataset",
          absl::StrCat("raw=", folder_ / "raw-*.tfrecord"), "--threads", "1"}));
      ASSERT_TRUE(WaitUntil([&] { return std::filesystem::exists(port_file); }))
          << servers_.back()->err();
      addresses_.push_back(
          absl::StrCat(hosts_.back()->address(), ":", Lines(ReadWholeFile(port_file))[0]));
    }
  }

  // Starts a feed from both servers, and reads some of its lines into `lines`. After that the feed
  // waits, because nobody reads its output.
  std::unique_ptr<Process> FeedInMidStream(int steps, std::string& lines) {
    auto feed = std::make_unique<Process>(
        std::vector<std::string>{SystoleProgram(), "feed", "--server",
                                 absl::StrCat(addresses_[0], ",", addresses_[1]), "--spec",
                                 spec_path_, "--digest=example", "--steps", absl::StrCat(steps),
                                 "--prefetch-bytes", "8000000", "--silence-timeout", "3"},
        ProcessOptions{.stdout_pipe_bytes = 4096});
    for (uint64_t left = 1 + Draw(1000); left > 0; --left) lines += feed->ReadLine();
    return feed;
  }

  std::vector<std::unique_ptr<FarHost>> hosts_;
  std::vector<std::string> addresses_;
  // Declared after the hosts, so that the servers end first.
  std::vector<std::unique_ptr<Process>> servers_;
};

TEST_F(PartitionTest, AFeedContinuesFromTheServerThatIsStillReachable) {
  const int steps = Times(100, 400);
  for (int round = 0; round < Times(1, 3); ++round) {
    std::string lines;
    const auto feed = FeedInMidStream(steps, lines);
    const FarHost& parted = *hosts_[Draw(2)];
    ASSERT_TRUE(parted.Part());
    const Finished finished = feed->Wait();
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    ExpectUndisturbed(lines + finished.out, steps);
    ASSERT_TRUE(parted.Join());
  }
}

TEST_F(PartitionTest, AFeedWaitsUntilItsServersCanBeReachedAgain) {
  const int steps = Times(100, 400);
  for (int round = 0; round < Times(1, 3); ++round) {
    std::string lines;
    const auto feed = FeedInMidStream(steps, lines);
    for (const auto& host : hosts_) ASSERT_TRUE(host->Part());
    // This is longer than --silence-timeout, after which a silent connection counts as lost.
    absl::SleepFor(absl::Seconds(5));
    EXPECT_TRUE(feed->IsRunning());
    for (const auto& host : hosts_) ASSERT_TRUE(host->Join());
    const Finished finished = feed->Wait();
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    ExpectUndisturbed(lines + finished.out, steps);
  }
}

}  // namespace
}  // namespace systole
