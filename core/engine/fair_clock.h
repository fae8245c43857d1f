// Whose turn it is: start-time fair queueing (Goyal, Vin, Cheng 1996) by what the work costs, on
// two levels. First peers take turns, then the streams of each peer. So a peer gets its part
// whatever the others ask for, and however many streams they ask with.
//
// Each peer has a virtual time, and each stream one among those of its peer. Both advance by the
// cost of every piece of work that is taken for the stream. Of the peers that want work the least
// advanced one goes first, and of its streams the least advanced one. The cost of a piece is known
// only when it is done. Until then an estimate is charged, which comes from the stream's earlier
// pieces.
//
// What is promised: let two peers want work all the time, and no piece cost more than L. A peer is
// taken for only while none that wants is less advanced, and one piece then moves it by L at most.
// So the times of the two are never more than L apart, as long as what is charged is what it costs;
// and neither had more than 2 L more than the other since any moment of this time (Theorem 1
// there). With T threads T pieces are under way whose cost is not known, so it is (T + 1) L in
// place of L, where L is also the most that a piece is charged with. That is a turn and a unit: a
// piece may have units for many turns, but what a turn leaves of it is given back. The rate at
// which all are served does not come in. So the same holds one level down, for the streams of a
// peer by what the peer gets.
//
// What is owed stays: a peer whose streams are all closed is remembered until the others have had
// as much. Otherwise it would pay for nothing by closing a stream after each piece.
//
// Thread-compatible.
#ifndef SYSTOLE_CORE_ENGINE_FAIR_CLOCK_H_
#define SYSTOLE_CORE_ENGINE_FAIR_CLOCK_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>

namespace systole {

class FairClock {
 private:
  struct Peer {
    double time = 0;        // Among peers.
    double now = 0;         // The largest time of a stream of it when work was taken for it.
    int64_t streams = 0;    // That are open.
    int64_t wanting = 0;    // Of these, the ones that want work.
    int64_t under_way = 0;  // Pieces that are taken and not done.
  };

 public:
  // Peers without a stream that are remembered. Then the one that owes least is forgotten.
  static constexpr size_t kMaxDebtors = 1024;

  // A piece is given back after the unit with which it has cost `turn`.
  explicit FairClock(double turn = std::numeric_limits<double>::infinity()) : turn_(turn) {}

  // One stream's. Only the clock touches it.
  class Account {
   public:
    bool GoesBefore(const Account& other) const {
      return peer_ == other.peer_ ? time_ < other.time_ : peer_->time < other.peer_->time;
    }

    bool wants() const { return wants_; }
    // Streams of its peer that are open.
    int64_t peer_streams() const { return peer_->streams; }

   private:
    friend class FairClock;
    std::shared_ptr<Peer> peer_;
    double time_ = 0;
    double unit_cost_ = 0;
    bool wants_ = false;
  };

  // A new stream of `peer`. `unit_cost` is a guess at what a unit of its work costs.
  Account Open(const std::string& peer, double unit_cost) {
    std::shared_ptr<Peer>& known = peers_[peer];
    if (known == nullptr) known = std::make_shared<Peer>();
    if (known->streams++ == 0) ++peers_open_;
    Account account;
    account.peer_ = known;
    account.unit_cost_ = unit_cost;
    return account;
  }

  // The stream has ended. Pieces under way may still be finished.
  void Close(Account& account) {
    SetWants(account, false);
    if (--account.peer_->streams > 0) return;
    --peers_open_;
    ForgetPeers();
  }

  // Whether the stream wants work from now on. Who wanted none gets no credit for that time.
  void SetWants(Account& account, bool wants) {
    if (account.wants_ == wants) return;
    account.wants_ = wants;
    Peer& peer = *account.peer_;
    if (!wants) {
      --peer.wanting;
      return;
    }
    if (peer.wanting++ == 0) peer.time = std::max(peer.time, now_);
    account.time_ = std::max(account.time_, peer.now);
  }

  // Takes a piece of `units` for the stream. Returns what it is charged with for now.
  double Take(Account& account, int64_t units) {
    const double unit_cost = account.unit_cost_;
    const double charged = std::min(unit_cost * static_cast<double>(units), turn_ + unit_cost);
    Peer& peer = *account.peer_;
    ++peer.under_way;
    now_ = std::max(now_, peer.time);
    peer.time += charged;
    peer.now = std::max(peer.now, account.time_);
    account.time_ += charged;
    return charged;
  }

  // `units` of the piece are done and have cost `cost`, in place of `charged`. REQUIRES: units > 0.
  static void Finish(Account& account, int64_t units, double charged, double cost) {
    --account.peer_->under_way;
    account.peer_->time += cost - charged;
    account.time_ += cost - charged;
    // The last few pieces count most, because the next one will cost about as much.
    constexpr double kWeight = 0.25;
    account.unit_cost_ += kWeight * (cost / static_cast<double>(units) - account.unit_cost_);
  }

  // Peers with a stream.
  int64_t peers() const { return peers_open_; }
  // And those that are remembered without one.
  size_t peers_known() const { return peers_.size(); }

 private:
  // Those without a stream that owe nothing; and of the others some, if they are too many.
  void ForgetPeers() {
    const auto idle = [](const Peer& peer) { return peer.streams == 0 && peer.under_way == 0; };
    std::erase_if(peers_, [&](const auto& known) {
      return idle(*known.second) && known.second->time <= now_;
    });
    while (peers_.size() > static_cast<size_t>(peers_open_) + kMaxDebtors) {
      auto least = peers_.end();
      for (auto it = peers_.begin(); it != peers_.end(); ++it) {
        if (it->second->streams > 0) continue;
        if (least == peers_.end() || it->second->time < least->second->time) least = it;
      }
      peers_.erase(least);
    }
  }

  const double turn_;
  double now_ = 0;  // The largest time of a peer when work was taken for it.
  int64_t peers_open_ = 0;
  std::map<std::string, std::shared_ptr<Peer>> peers_;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_ENGINE_FAIR_CLOCK_H_
