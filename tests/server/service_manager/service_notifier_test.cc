#include "server/service_manager/service_notifier.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <ctime>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/notify_socket.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Lt;
using ::testing::SizeIs;
using ::testing::StartsWith;

using Environment = std::map<std::string, std::string>;

absl::StatusOr<NotifierOptions> OptionsOf(const Environment& environment) {
  return NotifierOptionsOf(
      [&environment](const char* name) {
        const auto found = environment.find(name);
        return found == environment.end() ? std::string() : found->second;
      },
      /*own=*/7);
}

ServiceNotifier MustCreate(NotifierOptions options) {
  absl::StatusOr<ServiceNotifier> notifier = ServiceNotifier::Create(std::move(options));
  EXPECT_THAT(notifier, IsOk());
  return notifier.ok() ? *std::move(notifier) : ServiceNotifier();
}

int64_t MonotonicMicroseconds() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return absl::ToInt64Microseconds(absl::DurationFromTimespec(now));
}

TEST(ServiceNotifierTest, EachMessageIsOneDatagramOfLines) {
  const TempFolder folder;
  NotifySocket manager(folder / "notify");
  ServiceNotifier notifier = MustCreate({.socket = folder / "notify"});
  notifier.Starting("opening");
  notifier.Ready("serving");
  notifier.Stopping("draining");
  EXPECT_EQ(manager.Poll(), "STATUS=opening");
  EXPECT_EQ(manager.Poll(), "READY=1\nSTATUS=serving");
  EXPECT_EQ(manager.Poll(), "STOPPING=1\nSTATUS=draining");
  EXPECT_EQ(manager.Poll(), "");
}

TEST(ServiceNotifierTest, AReloadMessageHasTheMonotonicTime) {
  const TempFolder folder;
  NotifySocket manager(folder / "notify");
  ServiceNotifier notifier = MustCreate({.socket = folder / "notify"});
  const int64_t before = MonotonicMicroseconds();
  notifier.Reloading();
  const int64_t after = MonotonicMicroseconds();
  const std::vector<std::string> lines = absl::StrSplit(manager.Poll(), '\n');
  ASSERT_THAT(lines, SizeIs(3));
  EXPECT_EQ(lines[0], "RELOADING=1");
  ASSERT_THAT(lines[1], StartsWith("MONOTONIC_USEC="));
  int64_t said = 0;
  ASSERT_TRUE(absl::SimpleAtoi(lines[1].substr(lines[1].find('=') + 1), &said));
  EXPECT_GE(said, before);
  EXPECT_LE(said, after);
}

TEST(ServiceNotifierTest, AnAbstractSocketNameIsReached) {
  const std::string name = absl::StrCat("@systole-notify-", getpid());
  NotifySocket manager(name);
  MustCreate({.socket = name}).Ready("serving");
  EXPECT_THAT(manager.Poll(), StartsWith("READY=1\n"));
}

TEST(ServiceNotifierTest, AStatusStaysOneShortLine) {
  const TempFolder folder;
  NotifySocket manager(folder / "notify");
  ServiceNotifier notifier = MustCreate({.socket = folder / "notify"});
  notifier.Ready("on unix:/run/s\nSTOPPING=1");
  EXPECT_EQ(manager.Poll(), "READY=1\nSTATUS=on unix:/run/s\\nSTOPPING=1");
  notifier.Ready(std::string(100'000, 'x'));
  EXPECT_THAT(manager.Poll().size(), Lt(600));
}

TEST(ServiceNotifierTest, WatchdogMessagesComeFourTimesPerInterval) {
  const TempFolder folder;
  NotifySocket manager(folder / "notify");
  absl::Duration now = absl::Seconds(1000);
  ServiceNotifier notifier = MustCreate(
      {.socket = folder / "notify", .watchdog = absl::Seconds(8), .clock = [&now] { return now; }});
  int signs = 0;
  for (int tick = 0; tick < 160; ++tick, now += absl::Milliseconds(100)) {  // 16 s.
    notifier.Alive();
    for (std::string said; !(said = manager.Poll()).empty(); ++signs) EXPECT_EQ(said, "WATCHDOG=1");
  }
  EXPECT_EQ(signs, 8);
}

TEST(ServiceNotifierTest, WithoutAWatchdogIntervalNoWatchdogMessageIsSent) {
  const TempFolder folder;
  NotifySocket manager(folder / "notify");
  ServiceNotifier notifier = MustCreate({.socket = folder / "notify"});
  notifier.Alive();
  EXPECT_EQ(manager.Poll(), "");
}

TEST(ServiceNotifierTest, WithoutANotifySocketNoFailureIsReported) {
  int untold = 0;
  ServiceNotifier notifier = MustCreate(
      {.watchdog = absl::Seconds(1), .untold = [&untold](absl::string_view) { ++untold; }});
  notifier.Ready("serving");
  notifier.Reloading();
  notifier.Alive();
  EXPECT_EQ(untold, 0);
}

TEST(ServiceNotifierTest, AnUnreachableManagerIsReportedAndNotifiedOnceItIsBack) {
  const TempFolder folder;
  std::string why;
  ServiceNotifier notifier =
      MustCreate({.socket = folder / "notify",
                  .untold = [&why](absl::string_view text) { why = std::string(text); }});
  notifier.Ready("serving");
  EXPECT_THAT(why, HasSubstr(folder / "notify"));
  why.clear();
  NotifySocket manager(folder / "notify");
  notifier.Ready("serving");
  EXPECT_EQ(why, "");
  EXPECT_THAT(manager.Poll(), StartsWith("READY=1"));
}

TEST(ServiceNotifierTest, NotifyingGivesUpIfTheManagerDoesNotRead) {
  const TempFolder folder;
  const NotifySocket manager(folder / "notify");
  bool gave_up = false;
  ServiceNotifier notifier = MustCreate(
      {.socket = folder / "notify", .untold = [&gave_up](absl::string_view) { gave_up = true; }});
  for (int i = 0; i < 100'000 && !gave_up; ++i) notifier.Ready("serving");
  EXPECT_TRUE(gave_up);
}

TEST(ServiceNotifierTest, AnInvalidVariableIsReportedAndDisablesNotifications) {
  const TempFolder folder;
  NotifySocket manager(folder / "notify");
  Environment environment = {{"NOTIFY_SOCKET", folder / "notify"}, {"WATCHDOG_USEC", "often"}};
  std::string why;
  const auto notifier_of = [&] {
    return ServiceNotifier::OfEnvironment(
        [&environment](const char* name) { return environment[name]; }, /*own=*/7,
        [&why](absl::string_view text) { why = std::string(text); });
  };
  notifier_of().Ready("serving");
  EXPECT_THAT(why, HasSubstr("$WATCHDOG_USEC is 'often'"));
  EXPECT_EQ(manager.Poll(), "");
  environment["WATCHDOG_USEC"] = "1000";
  why.clear();
  notifier_of().Ready("serving");
  EXPECT_EQ(why, "");
  EXPECT_THAT(manager.Poll(), StartsWith("READY=1"));
}

TEST(ServiceNotifierTest, InvalidSocketNamesAreRefused) {
  for (const std::string& socket :
       {std::string("notify"), std::string("/"), std::string("@"), std::string("vsock:2:1234"),
        "/" + std::string(107, 'x'), "@" + std::string(108, 'x')}) {
    EXPECT_THAT(ServiceNotifier::Create({.socket = socket}),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("$NOTIFY_SOCKET")))
        << socket;
  }
  EXPECT_THAT(ServiceNotifier::Create({.socket = "/" + std::string(106, 'x')}), IsOk());
  EXPECT_THAT(ServiceNotifier::Create({.socket = "@" + std::string(107, 'x')}), IsOk());
}

TEST(NotifierOptionsTest, TheWatchdogIsOffIfItNamesAnotherProcess) {
  const auto watchdog = [](const Environment& environment) {
    const absl::StatusOr<NotifierOptions> options = OptionsOf(environment);
    EXPECT_THAT(options, IsOk());
    return options.ok() ? options->watchdog : absl::ZeroDuration();
  };
  EXPECT_EQ(watchdog({{"WATCHDOG_USEC", "30000000"}, {"WATCHDOG_PID", "7"}}), absl::Seconds(30));
  EXPECT_EQ(watchdog({{"WATCHDOG_USEC", "30000000"}}), absl::Seconds(30));
  EXPECT_EQ(watchdog({{"WATCHDOG_USEC", "30000000"}, {"WATCHDOG_PID", "8"}}),
            absl::InfiniteDuration());
  EXPECT_EQ(watchdog({}), absl::InfiniteDuration());
}

TEST(NotifierOptionsTest, InvalidNumbersAreRefusedNamingTheirVariable) {
  for (const std::string name : {"WATCHDOG_USEC", "WATCHDOG_PID"}) {
    for (const std::string value : {"0", "-1", "30s", "99999999999999999999"}) {
      EXPECT_THAT(OptionsOf({{name, value}}),
                  StatusIs(absl::StatusCode::kInvalidArgument,
                           AllOf(HasSubstr("$" + name), HasSubstr(value))));
    }
  }
}

}  // namespace
}  // namespace systole
