// What the thread of a client does to the process that it runs in.
#include "core/http/client_loop.h"

#include <signal.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <set>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/concurrency/kernel_text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

std::unique_ptr<ClientLoop> MakeLoop() {
  absl::StatusOr<std::unique_ptr<ClientLoop>> loop = ClientLoop::Create({});
  EXPECT_THAT(loop, IsOk());
  return *std::move(loop);
}

// The threads of this process.
std::set<std::string> Threads() {
  std::set<std::string> threads;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    threads.insert(entry.path().filename());
  }
  return threads;
}

// The signals that a thread does not get: bit n - 1 for signal n.
uint64_t BlockedSignals(const std::string& thread) {
  const std::string text = KernelText(absl::StrCat("/proc/self/task/", thread, "/status"));
  constexpr absl::string_view kField = "SigBlk:\t";
  const size_t at = text.find(kField.data());
  uint64_t blocked = 0;
  EXPECT_NE(at, std::string::npos);
  EXPECT_TRUE(absl::SimpleHexAtoi(text.substr(at + kField.size(), 16), &blocked)) << text;
  return blocked;
}

TEST(ClientLoopTest, ItsThreadGetsNoSignalAndItsMakersThreadGetsThemAsBefore) {
  sigset_t before;
  ::pthread_sigmask(SIG_BLOCK, nullptr, &before);
  const std::set<std::string> old_threads = Threads();
  const auto loop = MakeLoop();
  int new_threads = 0;
  for (const std::string& thread : Threads()) {
    if (old_threads.contains(thread)) continue;
    ++new_threads;
    const uint64_t blocked = BlockedSignals(thread);
    for (int signal = 1; signal < 32; ++signal) {
      if (signal == SIGKILL || signal == SIGSTOP) continue;  // Nobody can block them.
      EXPECT_NE(blocked & uint64_t{1} << (signal - 1), 0u) << "signal " << signal;
    }
  }
  EXPECT_EQ(new_threads, 1);
  sigset_t after;
  ::pthread_sigmask(SIG_BLOCK, nullptr, &after);
  for (int signal = 1; signal < 32; ++signal) {
    EXPECT_EQ(::sigismember(&before, signal), ::sigismember(&after, signal)) << signal;
  }
}

}  // namespace
}  // namespace systole
