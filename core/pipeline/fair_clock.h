// Whose turn it is: start-time fair queueing (Goyal, Vin, Cheng 1996) by what the work costs.
//
// Each party has an account. Its virtual time advances by the cost of every piece of work that is
// taken for it. Of the parties that want work, the least advanced one has had least, and goes
// first. The cost of a piece is known only when it is done. Until then an estimate is charged,
// which comes from the party's earlier pieces.
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

  // `account` wants work again, after it wanted none: it gets no credit for the time between.
  void Join(Account& account) const { account.time_ = std::max(account.time_, now_); }

  // Takes `units` of work for `account`. Returns what they are charged with for now.
  double Take(Account& account, int64_t units) {
    const double charged = account.unit_cost_ * static_cast<double>(units);
    now_ = std::max(now_, account.time_);
    account.time_ += charged;
    return charged;
  }

  // The `units` are done and have cost `cost`, in place of `charged`. REQUIRES: units > 0.
  static void Finish(Account& account, int64_t units, double charged, double cost) {
    account.time_ += cost - charged;
    // The last few pieces count most, because the next one will cost about as much.
    constexpr double kWeight = 0.25;
    account.unit_cost_ += kWeight * (cost / static_cast<double>(units) - account.unit_cost_);
  }

 private:
  double now_ = 0;  // The largest time of an account when work was taken for it.
};

}  // namespace systole

#endif  // SYSTOLE_CORE_PIPELINE_FAIR_CLOCK_H_
