// Whose turn it is: start-time fair queueing (Goyal, Vin, Cheng 1996) by what the work costs.
//
// Each party has an account. Its virtual time advances by the cost of every piece of work that is
// taken for it, so of those that want something the least advanced one is the one that had least,
// and goes first. What a piece costs is known when it is done: until then an estimate stands for
// it, from the party's earlier pieces.
//
// Thread-compatible.
#ifndef SYSTOLE_CORE_PIPELINE_FAIR_CLOCK_H_
#define SYSTOLE_CORE_PIPELINE_FAIR_CLOCK_H_

#include <algorithm>
#include <cstdint>

namespace systole {

class FairClock {
 public:
  class Account {
   public:
    // `unit_cost` is a guess at what a unit of its work costs.
    explicit Account(double unit_cost) : unit_cost_(unit_cost) {}

    bool GoesBefore(const Account& other) const { return time_ < other.time_; }

   private:
    friend class FairClock;
    double time_ = 0;
    double unit_cost_;
  };

  // `account` wants something, after it wanted nothing: it gets no credit for the time between.
  void Join(Account& account) const { account.time_ = std::max(account.time_, now_); }

  // `units` of work are taken for `account`; what they are charged with for now.
  double Take(Account& account, int64_t units) {
    const double charged = account.unit_cost_ * static_cast<double>(units);
    now_ = std::max(now_, account.time_);
    account.time_ += charged;
    return charged;
  }

  // They are done and have cost `cost`, in place of `charged`. REQUIRES: units > 0.
  static void Finish(Account& account, int64_t units, double charged, double cost) {
    account.time_ += cost - charged;
    // The last few pieces count: what the next one costs is like them.
    constexpr double kWeight = 0.25;
    account.unit_cost_ += kWeight * (cost / static_cast<double>(units) - account.unit_cost_);
  }

 private:
  double now_ = 0;  // Where the account stood for which work was taken last, at most.
};

}  // namespace systole

#endif  // SYSTOLE_CORE_PIPELINE_FAIR_CLOCK_H_
