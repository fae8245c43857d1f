#include "core/credentials/credential_cache.h"

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/concurrency/mutex.h"
#include "core/credentials/credential_servers.h"
#include "core/interrupt/interrupt.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/credentials/fake_surroundings.h"
#include "tests/status_matchers.h"
#include "tests/wait_until.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// A source whose outcomes a test decides: "value-1", "value-2", .. or an error.
class Source {
 public:
  absl::StatusOr<CredentialLease<std::string>> Renew() {
    Before before;
    {
      MutexLock lock(mu_);
      ++asked_;
      before = before_;
    }
    if (before != nullptr) before();
    MutexLock lock(mu_);
    if (InterruptRequested()) return InterruptedError();
    if (!error_.ok()) return error_;
    return CredentialLease<std::string>{.value = same_ ? "same" : absl::StrCat("value-", asked_),
                                        .life = life_,
                                        .look_again = look_again_};
  }

  using Before = std::function<void()>;
  void set_before(Before before) {
    MutexLock lock(mu_);
    before_ = std::move(before);
  }
  void set_error(absl::Status error) {
    MutexLock lock(mu_);
    error_ = std::move(error);
  }
  void set_life(absl::Duration life) {
    MutexLock lock(mu_);
    life_ = life;
  }
  void set_look_again(absl::Duration time) {
    MutexLock lock(mu_);
    look_again_ = time;
  }
  void GiveTheSame() {
    MutexLock lock(mu_);
    same_ = true;
  }
  int asked() const {
    MutexLock lock(mu_);
    return asked_;
  }

 private:
  mutable Mutex mu_;
  Before before_ ABSL_GUARDED_BY(mu_);
  absl::Status error_ ABSL_GUARDED_BY(mu_);
  absl::Duration life_ ABSL_GUARDED_BY(mu_) = absl::Hours(1);
  absl::Duration look_again_ ABSL_GUARDED_BY(mu_) = absl::InfiniteDuration();
  bool same_ ABSL_GUARDED_BY(mu_) = false;
  int asked_ ABSL_GUARDED_BY(mu_) = 0;
};

class CredentialCacheTest : public testing::Test {
 protected:
  FakeSurroundings fake_;
  Source source_;
  CredentialServers servers_{fake_.Get()};
  CredentialCache<std::string> cache_{servers_.ForCache(),
                                      [this](absl::Duration) { return source_.Renew(); }};
};

TEST_F(CredentialCacheTest, AValueIsRenewedFiveMinutesBeforeItsEnd) {
  EXPECT_EQ(source_.asked(), 0);
  EXPECT_THAT(cache_.Get(kLongTime), IsOkAndHolds("value-1"));
  fake_.Pass(absl::Minutes(55) - absl::Seconds(1));
  EXPECT_THAT(cache_.Get(kLongTime), IsOkAndHolds("value-1"));
  fake_.Pass(absl::Seconds(1));
  EXPECT_THAT(cache_.Get(kLongTime), IsOkAndHolds("value-2"));
  EXPECT_THAT(cache_.Get(kLongTime), IsOkAndHolds("value-2"));
}

TEST_F(CredentialCacheTest, AShortLivedValueIsRenewedWhenATenthOfItsLifeIsLeft) {
  source_.set_life(absl::Seconds(100));
  EXPECT_THAT(cache_.Get(kLongTime), IsOkAndHolds("value-1"));
  fake_.Pass(absl::Seconds(89));
  EXPECT_THAT(cache_.Get(kLongTime), IsOkAndHolds("value-1"));
  fake_.Pass(absl::Seconds(1));
  EXPECT_THAT(cache_.Get(kLongTime), IsOkAndHolds("value-2"));
}

TEST_F(CredentialCacheTest, JitterMovesTheRenewalTowardsTheExpiry) {
  CacheSurroundings late = servers_.ForCache();
  late.draw = [] { return 0.999; };
  CredentialCache<std::string> cache(late, [this](absl::Duration) { return source_.Renew(); });
  EXPECT_THAT(cache.Get(kLongTime), IsOkAndHolds("value-1"));
  fake_.Pass(absl::Minutes(57));
  EXPECT_THAT(cache.Get(kLongTime), IsOkAndHolds("value-1"));
  fake_.Pass(absl::Seconds(40));
  EXPECT_THAT(cache.Get(kLongTime), IsOkAndHolds("value-2"));
}

TEST_F(CredentialCacheTest, AnUnrefusedValueWithoutExpiryIsRenewedOnlyIfItsSourceAsksForIt) {
  source_.set_life(absl::InfiniteDuration());
  EXPECT_THAT(cache_.Get(kLongTime), IsOkAndHolds("value-1"));
  fake_.Pass(absl::Hours(24 * 365));
  EXPECT_THAT(cache_.Get(kLongTime), IsOkAndHolds("value-1"));
  cache_.Refused("value-1");
  source_.set_look_again(absl::Minutes(1));
  EXPECT_THAT(cache_.Get(kLongTime), IsOkAndHolds("value-2"));
  fake_.Pass(absl::Minutes(1));
  source_.set_error(absl::UnavailableError("gone"));
  EXPECT_THAT(cache_.Get(kLongTime), IsOkAndHolds("value-2"));
  EXPECT_EQ(source_.asked(), 3);
}

TEST_F(CredentialCacheTest, WhileAValueIsValidFailedRenewalsAreRetriedAfterGrowingPauses) {
  EXPECT_THAT(cache_.Get(kLongTime), IsOk());
  source_.set_error(absl::UnavailableError("down"));
  fake_.Pass(absl::Minutes(55));
  EXPECT_THAT(cache_.Get(kLongTime), IsOkAndHolds("value-1"));
  EXPECT_EQ(source_.asked(), 2);
  int asked = 2;
  for (const int pause_s : {10, 20, 40, 60, 60}) {
    fake_.Pass(absl::Seconds(pause_s - 1));
    EXPECT_THAT(cache_.Get(kLongTime), IsOkAndHolds("value-1"));
    EXPECT_EQ(source_.asked(), asked);
    fake_.Pass(absl::Seconds(1));
    EXPECT_THAT(cache_.Get(kLongTime), IsOkAndHolds("value-1"));
    EXPECT_EQ(source_.asked(), ++asked);
  }
  // The value is valid for 110 s more. After that, Get() returns the source's error at once, and
  // soon tries the source again.
  fake_.Pass(absl::Seconds(109));
  EXPECT_THAT(cache_.Get(kLongTime), IsOkAndHolds("value-1"));
  fake_.Pass(absl::Seconds(1));
  asked = source_.asked();
  EXPECT_THAT(cache_.Get(kLongTime), StatusIs(absl::StatusCode::kUnavailable, "down"));
  EXPECT_EQ(source_.asked(), asked + 1);
  source_.set_error(absl::OkStatus());
  fake_.Pass(absl::Seconds(10));
  EXPECT_THAT(cache_.Get(kLongTime), IsOkAndHolds(HasSubstr("value-")));
  EXPECT_EQ(source_.asked(), asked + 2);
}

TEST_F(CredentialCacheTest, WithoutAValueErrorsAreCachedForGrowingPauses) {
  source_.set_error(absl::PermissionDeniedError("no"));
  int asked = 0;
  for (const int pause_s : {1, 2, 4, 8, 10, 10}) {
    EXPECT_THAT(cache_.Get(kLongTime), StatusIs(absl::StatusCode::kPermissionDenied, "no"));
    EXPECT_EQ(source_.asked(), ++asked);
    fake_.Pass(absl::Seconds(pause_s) - absl::Milliseconds(1));
    EXPECT_THAT(cache_.Get(kLongTime), StatusIs(absl::StatusCode::kPermissionDenied, "no"));
    EXPECT_EQ(source_.asked(), asked);
    fake_.Pass(absl::Milliseconds(1));
  }
  source_.set_error(absl::OkStatus());
  EXPECT_THAT(cache_.Get(kLongTime), IsOk());
}

TEST_F(CredentialCacheTest, IfTheSourceRepeatsARefusedValueItIsNotRenewedAgain) {
  source_.GiveTheSame();
  EXPECT_THAT(cache_.Get(kLongTime), IsOkAndHolds("same"));
  cache_.Refused("another");
  EXPECT_THAT(cache_.Get(kLongTime), IsOk());
  EXPECT_EQ(source_.asked(), 1);
  for (int i = 0; i < 3; ++i) {
    cache_.Refused("same");
    EXPECT_THAT(cache_.Get(kLongTime), IsOkAndHolds("same"));
    fake_.Pass(absl::Seconds(30));
  }
  EXPECT_EQ(source_.asked(), 2);
}

TEST_F(CredentialCacheTest, RefusalsRenewAtMostOncePerTenSeconds) {
  EXPECT_THAT(cache_.Get(kLongTime), IsOkAndHolds("value-1"));
  cache_.Refused("value-1");
  EXPECT_THAT(cache_.Get(kLongTime), IsOkAndHolds("value-2"));
  cache_.Refused("value-2");
  EXPECT_THAT(cache_.Get(kLongTime), IsOkAndHolds("value-2"));
  fake_.Pass(absl::Seconds(10));
  cache_.Refused("value-2");
  EXPECT_THAT(cache_.Get(kLongTime), IsOkAndHolds("value-3"));
}

TEST_F(CredentialCacheTest, ARefusedValueIsNotReturnedIfItsRenewalFails) {
  EXPECT_THAT(cache_.Get(kLongTime), IsOkAndHolds("value-1"));
  source_.set_error(absl::UnavailableError("down"));
  cache_.Refused("value-1");
  int asked = 1;
  for (const int pause_s : {1, 2, 4, 8, 10}) {
    EXPECT_THAT(cache_.Get(kLongTime), StatusIs(absl::StatusCode::kUnavailable, "down"));
    EXPECT_EQ(source_.asked(), ++asked);
    EXPECT_THAT(cache_.Get(kLongTime), StatusIs(absl::StatusCode::kUnavailable, "down"));
    EXPECT_EQ(source_.asked(), asked);
    fake_.Pass(absl::Seconds(pause_s));
  }
  source_.set_error(absl::OkStatus());
  EXPECT_THAT(cache_.Get(kLongTime), IsOkAndHolds("value-7"));
}

TEST_F(CredentialCacheTest, ARefusalEndsThePauseAfterAFailure) {
  EXPECT_THAT(cache_.Get(kLongTime), IsOkAndHolds("value-1"));
  fake_.Pass(absl::Minutes(55));
  source_.set_error(absl::UnavailableError("down"));
  EXPECT_THAT(cache_.Get(kLongTime), IsOkAndHolds("value-1"));
  source_.set_error(absl::OkStatus());
  EXPECT_THAT(cache_.Get(kLongTime), IsOkAndHolds("value-1"));
  cache_.Refused("value-1");
  EXPECT_THAT(cache_.Get(kLongTime), IsOkAndHolds("value-3"));
}

TEST_F(CredentialCacheTest, AValueWhoseSourceMayChangeIsRenewedAtEachRefusal) {
  source_.GiveTheSame();
  source_.set_look_again(kLookAgain);
  EXPECT_THAT(cache_.Get(kLongTime), IsOkAndHolds("same"));
  for (int asked = 2; asked < 5; ++asked) {
    cache_.Refused("same");
    EXPECT_THAT(cache_.Get(kLongTime), IsOkAndHolds("same"));
    cache_.Refused("same");
    EXPECT_THAT(cache_.Get(kLongTime), IsOkAndHolds("same"));
    EXPECT_EQ(source_.asked(), asked);
    fake_.Pass(kBetweenRefusals);
  }
}

TEST_F(CredentialCacheTest, ATimedOutRenewalLeavesNoErrorForOtherCalls) {
  source_.set_before([this] { fake_.Pass(absl::Seconds(3)); });
  source_.set_error(absl::DeadlineExceededError("slow"));
  for (int asked = 1; asked < 4; ++asked) {
    EXPECT_THAT(cache_.Get(absl::Seconds(2)),
                StatusIs(absl::StatusCode::kDeadlineExceeded, "slow"));
    EXPECT_EQ(source_.asked(), asked);
  }
  // A call with 9 s does not run out of time in these 3 s. So its error is kept for the next call.
  EXPECT_THAT(cache_.Get(absl::Seconds(9)), StatusIs(absl::StatusCode::kDeadlineExceeded, "slow"));
  EXPECT_THAT(cache_.Get(absl::Seconds(9)), StatusIs(absl::StatusCode::kDeadlineExceeded, "slow"));
  EXPECT_EQ(source_.asked(), 4);
}

TEST_F(CredentialCacheTest, WhileAValueIsValidATimedOutRenewalPausesRenewals) {
  EXPECT_THAT(cache_.Get(kLongTime), IsOkAndHolds("value-1"));
  fake_.Pass(absl::Minutes(55));
  source_.set_before([this] { fake_.Pass(absl::Seconds(3)); });
  source_.set_error(absl::DeadlineExceededError("slow"));
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(cache_.Get(absl::Seconds(2)), IsOkAndHolds("value-1"));
    EXPECT_EQ(source_.asked(), 2);
  }
}

TEST_F(CredentialCacheTest, TheSourceGetsTheDeadlineOfTheCall) {
  absl::Duration told;
  CredentialCache<std::string> cache(servers_.ForCache(), [&](absl::Duration deadline) {
    told = deadline;
    return source_.Renew();
  });
  EXPECT_THAT(cache.Get(absl::Seconds(7)), IsOk());
  EXPECT_EQ(told, fake_.Get().now() + absl::Seconds(7));
}

// Holds renewals until Open().
class Gate {
 public:
  Source::Before Hold() {
    return [this] {
      ++held_;
      EXPECT_TRUE(WaitUntil([this] { return open_.load() || InterruptRequested(); }));
    };
  }
  bool WaitUntilHeld(int count = 1) {
    return WaitUntil([this, count] { return held_ >= count; });
  }
  void Open() { open_ = true; }

 private:
  std::atomic<int> held_ = 0;
  std::atomic<bool> open_ = false;
};

TEST_F(CredentialCacheTest, ManyThreadsShareOneRenewalAndItsOutcome) {
  for (const bool fails : {false, true}) {
    Source source;
    Gate gate;
    source.set_before(gate.Hold());
    if (fails) source.set_error(absl::UnavailableError("down"));
    CredentialCache<std::string> cache(servers_.ForCache(),
                                       [&source](absl::Duration) { return source.Renew(); });
    std::vector<std::thread> threads;
    std::atomic<int> good = 0;
    std::atomic<int> begun = 0;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([&] {
        ++begun;
        good += cache.Get(kLongTime).ok() ? 1 : 0;
      });
    }
    EXPECT_TRUE(WaitUntil([&] { return begun == 8; }));
    EXPECT_TRUE(gate.WaitUntilHeld());
    gate.Open();
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(source.asked(), 1);
    EXPECT_EQ(good, fails ? 0 : 8);
  }
}

TEST_F(CredentialCacheTest, OtherThreadsUseTheOldValueWhileOneThreadRenewsIt) {
  EXPECT_THAT(cache_.Get(kLongTime), IsOkAndHolds("value-1"));
  fake_.Pass(absl::Minutes(56));
  Gate gate;
  source_.set_before(gate.Hold());
  std::thread renews([this] { EXPECT_THAT(cache_.Get(kLongTime), IsOkAndHolds("value-2")); });
  EXPECT_TRUE(gate.WaitUntilHeld());
  for (int i = 0; i < 3; ++i) EXPECT_THAT(cache_.Get(kLongTime), IsOkAndHolds("value-1"));
  gate.Open();
  renews.join();
  EXPECT_THAT(cache_.Get(kLongTime), IsOkAndHolds("value-2"));
  EXPECT_EQ(source_.asked(), 2);
}

TEST_F(CredentialCacheTest, AWaitingThreadEndsWhenItIsInterrupted) {
  Gate gate;
  source_.set_before(gate.Hold());
  std::thread renews([this] { EXPECT_THAT(cache_.Get(kLongTime), IsOkAndHolds("value-1")); });
  EXPECT_TRUE(gate.WaitUntilHeld());
  InterruptFlag unwanted;
  std::thread waits([this, &unwanted] {
    const InterruptScope scope(unwanted);
    EXPECT_THAT(cache_.Get(kLongTime),
                StatusIs(absl::StatusCode::kCancelled, HasSubstr("no longer")));
  });
  unwanted.Raise();
  waits.join();  // While the renewal still runs.
  gate.Open();
  renews.join();
}

TEST_F(CredentialCacheTest, AWaitingThreadTakesOverTheRenewalOfAnInterruptedThread) {
  Gate gate;
  source_.set_before(gate.Hold());
  InterruptFlag unwanted;
  std::thread renews([this, &unwanted] {
    const InterruptScope scope(unwanted);
    EXPECT_THAT(cache_.Get(kLongTime),
                StatusIs(absl::StatusCode::kCancelled, HasSubstr("no longer")));
  });
  EXPECT_TRUE(gate.WaitUntilHeld());
  std::thread waits([this] { EXPECT_THAT(cache_.Get(kLongTime), IsOkAndHolds("value-2")); });
  unwanted.Raise();
  renews.join();
  EXPECT_TRUE(gate.WaitUntilHeld(2));
  gate.Open();
  waits.join();
}

TEST_F(CredentialCacheTest, AThreadThatWaitsForTooLongGivesUp) {
  Gate gate;
  source_.set_before(gate.Hold());
  std::thread renews([this] { EXPECT_THAT(cache_.Get(kLongTime), IsOk()); });
  EXPECT_TRUE(gate.WaitUntilHeld());
  std::thread waits([this] {
    EXPECT_THAT(cache_.Get(absl::Minutes(2)), StatusIs(absl::StatusCode::kDeadlineExceeded,
                                                       AllOf(HasSubstr("waited 2m for credentials"),
                                                             HasSubstr("another thread"))));
  });
  // The clock goes on until the waiting thread has seen that its time is over.
  std::atomic<bool> over = false;
  std::thread passes([this, &over] {
    while (!over) {
      fake_.Pass(absl::Minutes(2));
      servers_.ForCache().wake();
      std::this_thread::yield();
    }
  });
  waits.join();
  over = true;
  passes.join();
  gate.Open();
  renews.join();
}

}  // namespace
}  // namespace systole
