// Ten thousand feeds in virtual time. SYSTOLE_SIMULATION_SEED=N runs seed N alone.
#include "tests/client/schedule/simulation.h"

#include <cstdint>
#include <cstdlib>
#include <string>
#include <variant>

#include "absl/strings/numbers.h"
#include "gtest/gtest.h"
#include "tests/sanitizers.h"

namespace systole {
namespace {

// This many seeds take a few seconds.
constexpr uint64_t kSeeds = kSanitized ? 1'000 : 10'000;
constexpr uint64_t kSeedsForABug = 1'000;

TEST(SimulationTest, WhateverHappensEveryStepComesOnceInOrderAndInTime) {
  uint64_t begin = 0, end = kSeeds;
  if (const char* const one = std::getenv("SYSTOLE_SIMULATION_SEED"); one != nullptr) {
    ASSERT_TRUE(absl::SimpleAtoi(one, &begin)) << one;
    end = begin + 1;
  }
  ScheduleCounts sum;
  int64_t gave_up = 0;
  absl::Duration longest;
  for (uint64_t seed = begin; seed < end; ++seed) {
    const SimulationResult result = Simulation(seed).Run();
    ASSERT_EQ(result.wrong, "") << "replay with SYSTOLE_SIMULATION_SEED=" << seed;
    gave_up += result.gave_up ? 1 : 0;
    if (!result.gave_up) longest = std::max(longest, result.longest_wait);
    sum.retries += result.counts.retries;
    sum.hedges_won += result.counts.hedges_won;
    sum.hedges_lost += result.counts.hedges_lost;
    sum.relieved_steps += result.counts.relieved_steps;
    sum.membership_changes += result.counts.membership_changes;
    sum.probes += result.counts.probes;
  }
  if (end - begin == 1) return;
  // Everything that the simulation should cover has happened.
  EXPECT_GT(gave_up, 0);
  EXPECT_GT(sum.retries, 0);
  EXPECT_GT(sum.hedges_won, 0);
  EXPECT_GT(sum.hedges_lost, 0);
  EXPECT_GT(sum.relieved_steps, 0);
  EXPECT_GT(sum.membership_changes, 0);
  EXPECT_GT(sum.probes, 0);
}

TEST(SimulationTest, EveryStepComesOnceInOrderAndInTimeWithFewServersInUse) {
  for (uint64_t seed = 0; seed < kSeeds / 2; ++seed) {
    const int first_servers = 1 + static_cast<int>(seed % 3);
    const SimulationResult result = Simulation(seed, nullptr, first_servers).Run();
    ASSERT_EQ(result.wrong, "") << "seed " << seed;
  }
}

// Expects that one of the seeds finds the bug, with `message`. Prints the first such seed.
void ExpectFound(const std::string& message, const std::function<PlantedBug()>& bug) {
  for (uint64_t seed = 0; seed < kSeedsForABug; ++seed) {
    const SimulationResult result = Simulation(seed, bug()).Run();
    if (result.wrong.find(message) == std::string::npos) continue;
    std::cout << "seed " << seed << ": " << result.wrong << '\n';
    return;
  }
  ADD_FAILURE() << "none of " << kSeedsForABug << " seeds finds: " << message;
}

TEST(SimulationTest, FindsALostWakeUp) {
  ExpectFound("though the window has room", [] {
    return [resumed = 0](const ScheduleEvent&, ScheduleActions& actions) mutable {
      for (size_t i = 0; i < actions.size(); ++i) {
        if (!std::holds_alternative<ResumeStream>(actions[i]) || ++resumed != 50) continue;
        actions.erase(actions.begin() + static_cast<ptrdiff_t>(i));  // Loses the 50th ResumeStream.
        return;
      }
    };
  });
}

TEST(SimulationTest, FindsAStepThatIsDeliveredTwice) {
  ExpectFound("is delivered twice", [] {
    // The bug: a step is delivered although another lane's copy came first.
    return [steps = std::map<int, OpenStream>()](const ScheduleEvent& event,
                                                 ScheduleActions& actions) mutable {
      const StepArrived* const arrived = std::get_if<StepArrived>(&event);
      if (arrived != nullptr) {
        OpenStream& stream = steps[arrived->lane];
        bool delivers = false;
        for (const ScheduleAction& action : actions) {
          delivers = delivers || std::holds_alternative<DeliverStep>(action);
        }
        if (!delivers) {
          actions.push_back(DeliverStep{.lane = arrived->lane, .step = stream.first_step});
        }
        stream.first_step += stream.stride;
      }
      for (const ScheduleAction& action : actions) {
        if (const OpenStream* const open = std::get_if<OpenStream>(&action)) {
          steps[open->lane] = *open;
        }
      }
    };
  });
}

TEST(SimulationTest, FindsAHedgeOfAStepThatHasAlreadyCome) {
  ExpectFound("is asked for though it has come", [] {
    // The bug: the last step is hedged although it has come.
    return [last = OpenStream{.lane = -1}](const ScheduleEvent& event,
                                           ScheduleActions& actions) mutable {
      const StepArrived* const arrived = std::get_if<StepArrived>(&event);
      std::optional<OpenStream> hedge;
      for (const ScheduleAction& action : actions) {
        if (const OpenStream* const open = std::get_if<OpenStream>(&action)) last = *open;
        const DeliverStep* const delivers = std::get_if<DeliverStep>(&action);
        if (arrived == nullptr || delivers == nullptr || last.lane < 0) continue;
        if (delivers->step != last.first_step + (last.count - 1) * last.stride) continue;
        hedge = OpenStream{.lane = 1'000'000,
                           .server = last.server,
                           .first_step = delivers->step,
                           .count = 1,
                           .stride = 1};
      }
      if (hedge.has_value()) actions.push_back(*hedge);
    };
  });
}

}  // namespace
}  // namespace systole
