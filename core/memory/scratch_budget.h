// Divides a capacity of scratch memory among threads: decides how much each thread may take, and
// which threads wait. Each thread has an account and works in turns. In a turn the thread takes
// more and more memory. At the end of the turn it gives the memory back, except a part that it
// keeps for the next turn.
//
//   Take() -> true                         .. EndTurn()
//   Take() -> false, .. again .. -> true   .. EndTurn()
//   Take() -> false, .. Leave()                           if the memory is not needed any more
//
// A thread that waits for more memory still holds the memory that it took before, so all threads
// could wait for each other. To prevent this, one of them, the *elder*, never waits. If a thread
// must wait and there is no elder, the thread that has waited longest becomes the elder. It stays
// the elder until its memory, together with the memory of the other threads, fits the capacity.
//
// No thread waits for ever, because an elder does not wait, so its turn ends. At the end of the
// turn the elder keeps only memory that fits, and the next thread in line becomes the elder. (If an
// elder's read hangs, its turn does not end. StepDown() then lets another thread become the elder.)
//
// The bound: used_bytes() is at most the capacity plus the bytes that the elder holds. All other
// threads together hold at most the capacity, because they take only memory that fits. When an
// elder becomes an ordinary thread again, its memory fits, too. A thread that stepped down counts
// like an elder here, until its turn ends or its memory fits.
//
// Large images do not hold up small images: a thread that needs at most kOrdinaryBytes, the memory
// of ordinary images, does not wait for the elder. Threads that need more leave a quarter of the
// capacity to threads that need at most kOrdinaryBytes.
//
// A ScratchBudget has no lock and no clock. Thread-compatible.
#ifndef SYSTOLE_CORE_MEMORY_SCRATCH_BUDGET_H_
#define SYSTOLE_CORE_MEMORY_SCRATCH_BUDGET_H_

#include <cstdint>
#include <list>

namespace systole {

class ScratchBudget {
 public:
  // The memory that a thread needs for ordinary images, also if it serves several feeds in a row.
  static constexpr int64_t kOrdinaryBytes = int64_t{8} << 20;

  // The account of a thread. It must exist until its last turn has ended with EndTurn(account, 0).
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
    int64_t kept_ = 0;     // The part of held_ that the account keeps between its turns.
    bool waits_ = false;   // Whether the account is in line.
    bool beyond_ = false;  // Whether the account is the elder, or has stepped down.
  };

  explicit ScratchBudget(int64_t capacity_bytes) : capacity_(capacity_bytes) {}

  // Takes `bytes` if they fit, or if the account is the elder or becomes the elder. Otherwise puts
  // the account in line and returns false. After false, call Take() again with the same number
  // whenever another account has changed.
  bool Take(Account& account, int64_t bytes);
  // Takes the account out of the line, because it does not need the bytes any more.
  void Leave(Account& account);
  // Gives back some of what was taken in this turn.
  void GiveBack(Account& account, int64_t bytes);
  // Gives back all but `kept` bytes, which the account holds until its next turn. False: these
  // bytes do not fit beside the bytes of other accounts, or the accounts would keep more than
  // most_kept(). All bytes were then given back.
  // REQUIRES: 0 <= kept <= held_bytes().
  bool EndTurn(Account& account, int64_t kept);
  // If the account is the elder, lets another account become the elder. The account keeps its
  // bytes.
  void StepDown(Account& account);

  int64_t capacity_bytes() const { return capacity_; }
  int64_t used_bytes() const { return ordinary_ + beyond_; }
  // The part of used_bytes() that the elder and the accounts that stepped down hold.
  int64_t beyond_bytes() const { return beyond_; }
  bool someone_waits() const { return !line_.empty(); }
  bool IsElder(const Account& account) const { return elder_ == &account; }

 private:
  // All accounts together keep at most this many bytes between their turns.
  int64_t most_kept() const { return capacity_ / 8 * 7; }

  bool Fits(const Account& account, int64_t bytes) const;
  // Changes the bytes that the account holds, and all sums that include these bytes.
  void Add(Account& account, int64_t bytes);
  void SetBeyond(Account& account, bool beyond);
  // Ends the elder's role if the elder does not wait and its memory fits beside the memory of the
  // others. If there is no elder then, makes the first account in line, if any, the elder.
  void FindElder();

  const int64_t capacity_;
  int64_t ordinary_ = 0;     // The bytes held by accounts that are not beyond_.
  int64_t beyond_ = 0;       // The bytes held by accounts that are beyond_.
  int64_t first_bytes_ = 0;  // The sum of min(held_, kOrdinaryBytes) over all accounts.
  int64_t kept_ = 0;
  Account* elder_ = nullptr;
  std::list<Account*> line_;  // The longest wait is first. If anyone waits, there is an elder.
};

}  // namespace systole

#endif  // SYSTOLE_CORE_MEMORY_SCRATCH_BUDGET_H_
