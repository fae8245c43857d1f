// Tests the thread of an HTTP client. The thread takes no signals of the process. An answer, an
// interrupt, and the end of the client wake the other threads that wait for this thread.
#include "core/http/client_loop.h"

#include <signal.h>
#include <sys/resource.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/concurrency/kernel_text.h"
#include "core/concurrency/thread_times.h"
#include "core/http/http_client.h"
#include "core/interrupt/interrupt.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/http/stub_http_server.h"
#include "tests/status_matchers.h"
#include "tests/wait_until.h"

namespace systole {
namespace {

constexpr absl::Duration kLong = absl::FromChrono(kLongestWait);

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

TEST(ClientLoopTest, TheLoopThreadBlocksAllSignalsButFaultsAndTheCallersMaskStays) {
  sigset_t before;
  ::pthread_sigmask(SIG_BLOCK, nullptr, &before);
  std::thread([] {}).join();  // With the first thread, ThreadSanitizer starts one of its own.
  const std::set<std::string> old_threads = Threads();
  const auto loop = MakeLoop();
  const std::set<int> faults = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
  int new_threads = 0;
  for (const std::string& thread : Threads()) {
    if (old_threads.contains(thread)) continue;
    ++new_threads;
    // Until a new thread has been set up, it blocks all signals, even those of faults.
    EXPECT_TRUE(WaitUntil([&] { return (BlockedSignals(thread) >> (SIGSEGV - 1) & 1) == 0; }));
    const uint64_t blocked = BlockedSignals(thread);
    for (int signal = 1; signal < 32; ++signal) {
      if (signal == SIGKILL || signal == SIGSTOP) continue;  // No thread can block these.
      EXPECT_EQ((blocked & uint64_t{1} << (signal - 1)) != 0, !faults.contains(signal)) << signal;
    }
  }
  EXPECT_EQ(new_threads, 1);
  sigset_t after;
  ::pthread_sigmask(SIG_BLOCK, nullptr, &after);
  for (int signal = 1; signal < 32; ++signal) {
    EXPECT_EQ(::sigismember(&before, signal), ::sigismember(&after, signal)) << signal;
  }
}

// A thread that makes one call. Counts how often the thread goes to sleep in this call.
class Caller {
 public:
  explicit Caller(std::function<absl::Status()> call)
      : thread_([this, call = std::move(call)] {
          const InterruptScope scope(unwanted_);
          id_ = OwnThreadId();
          rusage before = {};
          rusage after = {};
          ::getrusage(RUSAGE_THREAD, &before);
          outcome_ = call();
          ::getrusage(RUSAGE_THREAD, &after);
          waits_ = after.ru_nvcsw - before.ru_nvcsw;
        }) {}

  void Interrupt() { unwanted_.Raise(); }
  void WaitUntilItSleeps() {
    EXPECT_TRUE(WaitUntil([this] {
      const ThreadId id = id_;
      const std::string stat = KernelText(absl::StrCat("/proc/self/task/", id, "/stat"));
      return id != 0 && absl::StrContains(stat, ") S ");
    }));
  }
  absl::Status Join() {
    thread_.join();
    return outcome_;
  }
  // How often the thread has gone to sleep in its call. REQUIRES: joined.
  long waits() const { return waits_; }

 private:
  InterruptFlag unwanted_;
  std::atomic<ThreadId> id_ = 0;
  absl::Status outcome_;
  long waits_ = 0;
  std::thread thread_;  // Last, because it uses the members above.
};

std::unique_ptr<HttpClient> MakeClient(HttpClientOptions options) {
  options.connect_timeout = kLong;
  options.stall_timeout = kLong;
  absl::StatusOr<std::unique_ptr<HttpClient>> client = HttpClient::Create(options);
  EXPECT_THAT(client, IsOk());
  return *std::move(client);
}

std::function<absl::Status()> GetOf(HttpClient& client, const StubHttpServer& server) {
  return [&client, &server] {
    return client.Fetch({.url = server.Url("/"), .timeout = kLong}).status();
  };
}

const auto kInterrupted =
    StatusIs(absl::StatusCode::kCancelled, testing::HasSubstr("no longer needed"));

TEST(ClientLoopTest, WaitingThreadsSleepWithoutPollingTheirInterruptFlags) {
  const auto hangs = [](const StubRequest&) { return StubAnswer{.bytes = "", .hangs = true}; };
  const StubHttpServer server(hangs);
  const StubHttpServer other(hangs);
  const auto client = MakeClient({.max_connections_per_origin = 1});
  Caller answered(GetOf(*client, server));
  EXPECT_TRUE(WaitUntil([&] { return server.requests().size() == 1; }));
  Caller listed(GetOf(*client, server));  // `answered` has the only connection to `server`.
  Caller asleep([&] { return client->SleepFor(kLong); });
  // In each round the loop's thread looks at the interrupt flags of all callers.
  constexpr int kRounds = 25;
  for (size_t round = 1; round <= kRounds; ++round) {
    Caller caller(GetOf(*client, other));
    EXPECT_TRUE(WaitUntil([&] { return other.requests().size() == round; }));
    caller.Interrupt();
    EXPECT_THAT(caller.Join(), kInterrupted);
  }
  for (Caller* const caller : {&asleep, &listed, &answered}) {
    caller->Interrupt();
    EXPECT_THAT(caller->Join(), kInterrupted);
    // The caller sleeps once in its wait, and sometimes for locks. A thread that looked at the flag
    // itself would wake in every round.
    EXPECT_LT(caller->waits(), kRounds / 2);
  }
}

TEST(ClientLoopTest, ACallInterruptedBeforeItBeginsReturnsAndSendsNothing) {
  const StubHttpServer server([](const StubRequest&) { return Reply(200, ""); });
  const auto client = MakeClient({});
  InterruptFlag unwanted;
  unwanted.Raise();
  const InterruptScope scope(unwanted);
  EXPECT_THAT(GetOf(*client, server)(), kInterrupted);
  EXPECT_THAT(client->SleepFor(kLong), kInterrupted);
  EXPECT_TRUE(server.requests().empty());
}

TEST(ClientLoopTest, AnInterruptEndsEachKindOfWaitOnlyInItsOwnThread) {
  const StubHttpServer server(
      [](const StubRequest&) { return StubAnswer{.bytes = "", .hangs = true}; });
  const auto client = MakeClient({.max_connections = 1, .max_waiting = 1});
  Caller answered(GetOf(*client, server));
  EXPECT_TRUE(WaitUntil([&] { return server.requests().size() == 1; }));
  Caller listed(GetOf(*client, server));
  listed.WaitUntilItSleeps();
  Caller third(GetOf(*client, server));  // The list of waiting calls is full.
  Caller asleep([&] { return client->SleepFor(kLong); });
  for (Caller* const caller : {&third, &asleep, &listed}) {
    caller->WaitUntilItSleeps();
    caller->Interrupt();
    EXPECT_THAT(caller->Join(), kInterrupted);
  }
  EXPECT_EQ(server.open_now(), 1);
  EXPECT_EQ(server.requests().size(), 1u);
  answered.Interrupt();
  EXPECT_THAT(answered.Join(), kInterrupted);
}

TEST(ClientLoopTest, AnUninterruptedSleepTakesItsWholeTime) {
  const auto client = MakeClient({});
  const MonotonicClock now = SteadyClock();
  const absl::Duration begin = now();
  EXPECT_THAT(client->SleepFor(absl::Milliseconds(3)), IsOk());
  EXPECT_GE(now() - begin, absl::Milliseconds(3));
  EXPECT_THAT(client->SleepFor(absl::ZeroDuration()), IsOk());
}

TEST(ClientLoopTest, SleepWhileEndsWhenItsConditionIsFalse) {
  const auto client = MakeClient({});
  std::atomic<bool> waits = true;
  EXPECT_THAT(client->SleepWhile([] { return false; }, kLong), IsOk());
  Caller asleep([&] { return client->SleepWhile([&] { return waits.load(); }, kLong); });
  asleep.WaitUntilItSleeps();
  waits = false;
  client->WakeSleepers();
  EXPECT_THAT(asleep.Join(), IsOk());
}

TEST(ClientLoopTest, TheDestructorCancelsSleeps) {
  auto loop = MakeLoop();
  std::atomic<bool> began = false;
  std::thread sleeper([&began, loop = loop.get()] {
    const ClientLoop::Call call(*loop);  // The loop's destructor waits for the end of `call`.
    began = true;
    EXPECT_THAT(loop->SleepWhile([] { return true; }, kLong),
                StatusIs(absl::StatusCode::kCancelled, testing::HasSubstr("has ended")));
  });
  EXPECT_TRUE(WaitUntil([&] { return began.load(); }));
  loop.reset();
  sleeper.join();
}

}  // namespace
}  // namespace systole
