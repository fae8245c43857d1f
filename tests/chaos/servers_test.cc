// Servers and trainers that are killed, stopped and restarted: the feed goes on, and its bytes are
// the same.
#include <signal.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/example/example_builder.h"
#include "core/order/resume_token.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/chaos/chaos_feed.h"
#include "tests/core/record/tfrecord/shard_builder.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

class ServersTest : public ChaosTest {
 protected:
  // Calls `happens` while `feed` runs: `times` calls, with a few steps between two of them. `feed`
  // has `steps` steps, and must print what the undisturbed feed prints.
  void ExpectUndisturbedBy(const std::function<void()>& happens, int times, int steps,
                           Process& feed) {
    std::string printed;
    for (int i = 0; i < times; ++i) {
      for (int line = 0; line < steps / (times + 1) * kChaosRecords; ++line) {
        printed += feed.ReadLine();
      }
      happens();
    }
    ExpectUndisturbed(feed, steps, printed);
  }

  // Kills servers while a feed of spec_path_ runs. The feed must print what the undisturbed feed
  // prints.
  void ExpectSameWhileServersAreKilled(int steps) {
    const Finished undisturbed = RunSystole({"feed", "--server", address(0), "--spec", spec_path_,
                                             "--digest=example", "--steps", absl::StrCat(steps)});
    ASSERT_EQ(undisturbed.exit_code, 0) << undisturbed.err;
    SetAll({.bytes_per_second = 60 << 20});
    Process feed(FeedArgs(steps, kFewAhead), {.stdout_pipe_bytes = 4096});
    std::string printed;
    for (int i = 0; i < 3; ++i) {
      for (int line = 0; line < steps / 4 * kChaosRecords; ++line) printed += feed.ReadLine();
      Kill(1);
    }
    printed += feed.Wait().out;
    EXPECT_TRUE(printed == undisturbed.out);
  }

  // The command line of `systole feed` over `steps` steps (0: without end) from `first_step` on,
  // with the token that a trainer has saved before that step.
  std::vector<std::string> TrainerArgs(const std::string& servers, int first_step, int steps) {
    std::vector<std::string> args = {SystoleProgram(), "feed",     "--server",        servers,
                                     "--spec",         spec_path_, "--digest=example"};
    args.insert(args.end(), {"--steps", absl::StrCat(steps)});
    if (first_step == 0) return args;
    if (!token_.has_value()) {
      // The tokens of a feed differ only in the position. An epoch of this feed is one step.
      const Finished finished =
          RunSystole({"feed", "--server", servers, "--spec", spec_path_, "--steps", "1"});
      const absl::StatusOr<ResumeToken> token = ResumeToken::Decode(TokenIn(finished));
      EXPECT_THAT(token, IsOk());
      if (!token.ok()) return args;
      token_ = *token;
    }
    token_->position = {.epoch = first_step};
    args.insert(args.end(), {"--resume", token_->Encode()});
    return args;
  }

  std::optional<ResumeToken> token_;
};

TEST_F(ServersTest, AFeedIsUndisturbedByRepeatedKillsOfOneOfThreeServers) {
  for (int i = 0; i < 3; ++i) AddServer();
  SetAll({.bytes_per_second = 60 << 20});  // So slow that servers still send when they are killed.
  const int steps = Times(150, 700);
  Process feed(FeedArgs(steps, kFewAhead), {.stdout_pipe_bytes = 4096});
  ExpectUndisturbedBy([this] { Kill(1); }, Times(5, 20), steps, feed);
}

TEST_F(ServersTest, RecordsOfAZipStayTogetherWhileServersAreKilled) {
  std::vector<std::string> datasets;
  for (const std::string name : {"left", "right"}) {
    ShardBuilder shard;
    for (int i = 0; i < kChaosRecords; ++i) {
      const auto fill = static_cast<char>(name[0] + i);
      shard.Add(ExampleBuilder().AddBytes("raw", std::string(kChaosRecordBytes, fill)).Serialize());
    }
    datasets.insert(datasets.end(),
                    {"--dataset", absl::StrCat(name, "=", folder_.Write(name, shard.Build()))});
  }
  for (int i = 0; i < 3; ++i) AddServer(datasets);
  spec_path_ = folder_.Write(
      "zip.textproto",
      absl::StrCat(absl::StrReplaceAll(ChaosSpec(), {{"dataset: \"raw\"",
                                                      "zip { dataset: 'left' prefix: 'l/' } "
                                                      "zip { dataset: 'right' prefix: 'r/' }"},
                                                     {"\"record\"", "\"l/raw\""}}),
                   "outputs { name: 'right' feature: 'r/raw' transforms { decode_raw {} } "
                   "  dtype: UINT8 shape: ",
                   kChaosRecordBytes, " }"));
  ExpectSameWhileServersAreKilled(Times(45, 150));
}

TEST_F(ServersTest, AFeedIsUndisturbedByRepeatedKillsOfTwoOfThreeServers) {
  for (int i = 0; i < 3; ++i) AddServer();
  SetAll({.bytes_per_second = 60 << 20});
  const int steps = Times(150, 700);
  Process feed(FeedArgs(steps, kFewAhead), {.stdout_pipe_bytes = 4096});
  ExpectUndisturbedBy([this] { Kill(2); }, Times(5, 20), steps, feed);
}

TEST_F(ServersTest, AFeedIsUndisturbedByAServerThatIsSuspendedForAWhile) {
  for (int i = 0; i < 2; ++i) AddServer();
  SetAll({.bytes_per_second = 60 << 20});
  const int steps = Times(120, 1000);
  std::string printed;
  const auto feed = FeedInMidStream(steps, printed);
  server(0).Signal(SIGSTOP);
  absl::SleepFor(absl::Seconds(Times(2, 10)));
  server(0).Signal(SIGCONT);
  ExpectUndisturbed(*feed, steps, printed);
}

TEST_F(ServersTest, ATrainerThatIsStoppedForAWhileGoesOn) {
  for (int i = 0; i < 2; ++i) AddServer();
  SetAll({.bytes_per_second = 60 << 20});
  const int steps = Times(120, 500);
  std::string printed;
  const auto feed = FeedInMidStream(steps, printed);
  feed->Signal(SIGSTOP);
  absl::SleepFor(absl::Seconds(Times(3, 35)));
  feed->Signal(SIGCONT);
  ExpectUndisturbed(*feed, steps, printed);
}

TEST_F(ServersTest, ARollingRestartIsNotSeen) {
  for (int i = 0; i < 3; ++i) AddServer({"--drain-timeout", "5"});
  SetAll({.bytes_per_second = 60 << 20});
  const int steps = Times(150, 700);
  Process feed(FeedArgs(steps, kFewAhead), {.stdout_pipe_bytes = 4096});
  int i = 0;
  const auto restart_next = [&] {
    server(i).Signal(SIGTERM);
    EXPECT_EQ(server(i).Wait().exit_code, 0);
    Restart(i);
    i = (i + 1) % num_servers();
  };
  ExpectUndisturbedBy(restart_next, Times(6, 30), steps, feed);
}

TEST_F(ServersTest, AFeedWaitsWhileAllServersAreDownAndThenContinues) {
  for (int i = 0; i < 3; ++i) AddServer();
  SetAll({.bytes_per_second = 60 << 20});
  const int steps = Times(120, 600);
  std::string printed;
  const auto feed = FeedInMidStream(steps, printed);
  for (int i = 0; i < num_servers(); ++i) server(i).Signal(SIGKILL);
  absl::SleepFor(absl::Seconds(Times(2, 10)));
  EXPECT_TRUE(feed->IsRunning());
  for (int i = 0; i < num_servers(); ++i) Restart(i);
  ExpectUndisturbed(*feed, steps, printed);
}

// The trainer is started again and again. Each time it is killed in the middle of a step, after a
// random number of whole steps.
TEST_F(ServersTest, ARepeatedlyKilledTrainerResumesExactlyFromItsLastToken) {
  for (int i = 0; i < 2; ++i) AddServer();
  std::string lines;
  int done = 0;
  for (int life = 0; life < Times(20, 100); ++life) {
    // The trainer reads in turns from both servers and from one server.
    Process trainer(TrainerArgs(life % 2 == 0 ? Servers() : proxy(0).address(), done, 0),
                    {.stdout_pipe_bytes = 4096});
    const int steps = static_cast<int>(Draw(6));
    const int lines_of_next = static_cast<int>(Draw(kChaosRecords));
    for (int line = 0; line < steps * kChaosRecords; ++line) lines += trainer.ReadLine();
    for (int line = 0; line < lines_of_next; ++line) trainer.ReadLine();
    trainer.Signal(SIGKILL);
    EXPECT_EQ(trainer.Wait().signal, SIGKILL);
    done += steps;
  }
  ExpectUndisturbed(lines, done);
}

// In turns, eight cores belong to one host, or two cores to each of four hosts. The change comes
// after a random number of steps.
TEST_F(ServersTest, AResumeTokenOfOneHostIsValidForFourHostsAndViceVersa) {
  for (int i = 0; i < 3; ++i) AddServer();
  std::string lines;
  int done = 0;
  for (int life = 0; life < Times(4, 20); ++life) {
    const int steps = 1 + static_cast<int>(Draw(12));
    const std::string servers = Draw(2) == 0 ? Servers() : proxy(life % 3).address();
    const int cores_of_host = life % 2 == 0 ? 8 : 2;
    std::vector<std::unique_ptr<Process>> hosts;
    for (int core = 0; core < 8; core += cores_of_host) {
      std::vector<std::string> args = TrainerArgs(servers, done, steps);
      args.insert(args.end(), {"--cores", absl::StrCat(core, ":", core + cores_of_host)});
      hosts.push_back(std::make_unique<Process>(args));
    }
    std::string together;
    for (const std::unique_ptr<Process>& host : hosts) {
      const Finished finished = host->Wait();
      ASSERT_EQ(finished.exit_code, 0) << finished.err;
      together += finished.out;
    }
    lines += SortedByStepAndCore(together);
    done += steps;
  }
  ExpectUndisturbed(lines, done);
}

// The list of servers is replaced again and again. Each list has a random choice of one to four of
// the four servers. A server that leaves the list is killed. Before it is in a list again, it is
// started again.
TEST_F(ServersTest, AFeedIsUndisturbedByServersAddedToAndRemovedFromItsList) {
  for (int i = 0; i < 4; ++i) AddServer();
  SetAll({.bytes_per_second = 40 << 20});
  const std::string list = folder_ / "servers";
  const auto publish = [&](uint64_t members) {
    std::string text;
    for (int i = 0; i < num_servers(); ++i) {
      if ((members >> i & 1) != 0) absl::StrAppend(&text, proxy(i).address(), "\n");
    }
    std::filesystem::rename(folder_.Write("servers.draft", text), list);
  };
  publish(0b0011);
  const int steps = Times(200, 700);
  std::vector<std::string> args = TrainerArgs("file:" + list, 0, steps);
  args.insert(args.end(), kFewAhead.begin(), kFewAhead.end());
  Process feed(args, {.stdout_pipe_bytes = 4096});
  std::vector<bool> runs(4, true);
  const auto change = [&] {
    const uint64_t members = 1 + Draw(15);
    for (int i = 0; i < num_servers(); ++i) {
      if ((members >> i & 1) != 0 && !runs[static_cast<size_t>(i)]) Restart(i);
    }
    publish(members);
    // The client reads the list each second, so it reads the new list while the test sleeps.
    absl::SleepFor(absl::Milliseconds(1200 + Draw(800)));
    for (int i = 0; i < num_servers(); ++i) {
      const bool wanted = (members >> i & 1) != 0;
      if (!wanted && runs[static_cast<size_t>(i)]) server(i).Signal(SIGKILL);
      runs[static_cast<size_t>(i)] = wanted;
    }
  };
  ExpectUndisturbedBy(change, Times(4, 12), steps, feed);
}

}  // namespace
}  // namespace systole
