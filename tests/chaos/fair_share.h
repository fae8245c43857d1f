// Checks a feed while other peers try to take all of a server. The feed must get the right bytes,
// and at least half of the rate that it gets beside honest readers.
//
// Thread-compatible.
#ifndef SYSTOLE_TESTS_CHAOS_FAIR_SHARE_H_
#define SYSTOLE_TESTS_CHAOS_FAIR_SHARE_H_

#include <vector>

#include "systole/v1/service.pb.h"
#include "tests/chaos/chaos_feed.h"
#include "tests/chaos/crowd.h"

namespace systole {

class FairShareTest : public ChaosTest {
 protected:
  // Expects that a feed of server 0 gets the right bytes while the object that `disturb` returns is
  // alive. In the full run the feed must also get half of the rate that it gets beside `honest`
  // readers. The two rates are measured in turns and their medians are compared, because the
  // machine has other work, too.
  template <typename Disturb>
  void ExpectFairShare(int honest, Disturb disturb) {
    {
      const auto disturbance = disturb();
      const auto feed = StartFeed(20, {"--connect-timeout", "300"});
      ExpectUndisturbed(*feed, 20);
    }
    std::vector<double> disturbed;
    std::vector<double> beside_honest;
    for (int round = 0; round < Times(0, 3) && !HasFailure(); ++round) {
      {
        const ReaderCrowd readers(address(0), Spec(), {.honest = honest});
        beside_honest.push_back(StepsPerSecond());
      }
      const auto disturbance = disturb();
      disturbed.push_back(StepsPerSecond());
    }
    if (!HasFailure() && !disturbed.empty()) CompareRates(disturbed, beside_honest, honest);
  }

  static v1::FeedSpec Spec();

 private:
  // The rate of a trainer that takes 100 MB/s at most. This pace leaves some time to the server, to
  // its crowd and to the machine's other work.
  double StepsPerSecond();
  static void CompareRates(const std::vector<double>& disturbed,
                           const std::vector<double>& beside_honest, int honest);
};

}  // namespace systole

#endif  // SYSTOLE_TESTS_CHAOS_FAIR_SHARE_H_
