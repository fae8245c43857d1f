// The books of the scratch memory that threads share: who may take how much, and who waits. Each
// thread has an account and a turn, in which it takes more and more. At its end it gives back all,
// but for what it keeps for the next one.
//
//   Take() -> true                         .. EndTurn()
//   Take() -> false, .. again .. -> true   .. EndTurn()    or Leave(), if it is not wanted any more
//
// A thread that takes a second time holds what it took first, so all could wait for each other.
// Hence one of them, the *elder*, never waits. If somebody must wait and nobody is the elder, the
// one who has waited longest is. It is so until it fits in with the others.
//
// Nobody waits for ever: an elder does not wait, so its turn ends, and then it keeps what fits, or
// nothing. The next one in line becomes the elder. (An elder whose read hangs ends no turn;
// StepDown() lets another be the elder.)
//
// The bound: used <= capacity + what the elder holds. For all others together hold at most the
// capacity. They take only what leaves that so; and an elder becomes one of them only when it fits.
// Those who stepped down count as elders here, until they end their turns or fit.
//
// What a thread needs for ordinary images (kOrdinaryBytes) does not wait for the elder, and a
// quarter of the capacity is left for that by whoever needs more: large images should not hold up
// small ones.
//
// No lock, no clock. Thread-compatible.
#ifndef SYSTOLE_CORE_MEMORY_SCRATCH_BUDGET_H_
#define SYSTOLE_CORE_MEMORY_SCRATCH_BUDGET_H_

#include <cstdint>
#include <list>

namespace systole {

class ScratchBudget {
 public:
  // What a thread takes for photographs, of several feeds in turn.
  static constexpr int64_t kOrdinaryBytes = int64_t{8} << 20;

  // A thread's. Must outlive its use here, and its last turn must have kept nothing.
  class Account {
   public:
    Account() = default;
    Account(const Account&) = delete;
    Account& operator=(const Account&) = delete;

    int64_t held_bytes() const { return held_; }
    bool waits() const { return waits_; }

   private:
    friend class ScratchBudget;
    int64_t held_ = 0;
    int64_t kept_ = 0;     // From its last turn to the next; part of held_.
    bool waits_ = false;   // It stands in line.
    bool beyond_ = false;  // It is the elder, or has stepped down.
  };

  explicit ScratchBudget(int64_t capacity_bytes) : capacity_(capacity_bytes) {}

  // Takes `bytes`, or puts the account in line and returns false. It is then to be called again,
  // with the same number, whenever something changed.
  bool Take(Account& account, int64_t bytes);
  // Out of the line: it does not want them any more.
  void Leave(Account& account);
  // Gives back some of what was taken in this turn.
  void GiveBack(Account& account, int64_t bytes);
  // Gives back all but `kept` bytes, which it has when the next turn begins. False: they do not fit
  // in with what others hold and keep, so it gave back all. REQUIRES: 0 <= kept <= held_bytes().
  bool EndTurn(Account& account, int64_t kept);
  // If it is the elder, lets another be. What it holds stays.
  void StepDown(Account& account);

  int64_t capacity_bytes() const { return capacity_; }
  int64_t used_bytes() const { return ordinary_ + beyond_; }
  // What elders hold of that.
  int64_t beyond_bytes() const { return beyond_; }
  bool someone_waits() const { return !line_.empty(); }
  bool IsElder(const Account& account) const { return elder_ == &account; }

 private:
  // All accounts together keep at most so much of the capacity.
  int64_t most_kept() const { return capacity_ / 8 * 7; }

  bool Fits(const Account& account, int64_t bytes) const;
  // Changes what it holds, and every sum with it.
  void Add(Account& account, int64_t bytes);
  void SetBeyond(Account& account, bool beyond);
  // Whether the elder still has to be one, and who is the next.
  void FindElder();

  const int64_t capacity_;
  int64_t ordinary_ = 0;     // Held by accounts that are not beyond_.
  int64_t beyond_ = 0;       // Held by the others.
  int64_t first_bytes_ = 0;  // Of all of this, the first kOrdinaryBytes of each account.
  int64_t kept_ = 0;
  Account* elder_ = nullptr;
  std::list<Account*> line_;  // The longest waiting first. Not empty: there is an elder.
};

}  // namespace systole

#endif  // SYSTOLE_CORE_MEMORY_SCRATCH_BUDGET_H_
