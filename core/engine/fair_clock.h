// Decides which stream gets the next turn, by the cost of its work. The method is start-time fair
// queueing (Goyal, Vin, Cheng 1996) on two levels. Peers take turns, and the streams of a peer
// share its turns. So a peer gets its part, even if other peers ask for more and have many streams.
//
// Each peer has a virtual time, and each stream has a virtual time of its own. Both times advance
// by the cost of every piece of work that is taken for the stream. Among the peers that want work,
// the least advanced one goes first. Among the streams of this peer that want work, the least
// advanced one goes first. The cost of a piece is known only when the piece is done. Until then the
// stream is charged an estimate, which comes from its earlier pieces.
//
// The guarantee: let two peers want work all the time, and let no piece cost more than L. Work is
// taken for a peer only while no other peer that wants work is less advanced. One piece then moves
// the peer by L at most. So the times of the two are never more than L apart, as long as each piece
// is charged its cost. From any moment on, neither peer gets more than 2 L more than the other
// (Theorem 1 of the paper). With T threads, T pieces of unknown cost are under way, and the bound
// is (T + 1) L. This bound also requires that no piece is charged more than L while it is under
// way. The charge of a piece is at most the cost of a turn and of one unit (in the engine, an
// example). A piece may have units for many turns, but its rest is given back when a turn ends. The
// bound does not depend on how fast the peers are served. So the bound also holds one level down,
// among the streams of a peer.
//
// Debts are kept: a peer whose streams are all closed is remembered until the other peers have
// reached its time. Otherwise a peer could avoid every charge by closing its stream after each
// piece.
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
    double time = 0;        // The peer's virtual time.
    double now = 0;         // The largest time that a stream had when it got work.
    int64_t streams = 0;    // Open streams.
    int64_t wanting = 0;    // Open streams that want work.
    int64_t under_way = 0;  // Pieces that are taken and not done.
  };

 public:
  // At most this many peers without a stream are remembered. If there are more, the least advanced
  // ones are forgotten.
  static constexpr size_t kMaxDebtors = 1024;

  // A turn ends after the unit that brings the cost of the turn's work to `turn`. The rest of the
  // piece is then given back.
  explicit FairClock(double turn = std::numeric_limits<double>::infinity()) : turn_(turn) {}
  // Accounts refer to the clock.
  FairClock(const FairClock&) = delete;
  FairClock& operator=(const FairClock&) = delete;

  // The account of one stream.
  class Account {
   public:
    // A new stream of `peer`. `unit_cost` is a guess at the cost of a unit of its work.
    Account(FairClock& clock, const std::string& peer, double unit_cost)
        : clock_(&clock), peer_(clock.Enter(peer)), unit_cost_(unit_cost) {}
    Account(Account&&) = default;
    Account& operator=(Account&&) = default;

    // The stream has ended. Pieces under way may still be finished.
    void Close() {
      SetWants(false);
      clock_->Leave(*peer_);
    }

    bool GoesBefore(const Account& other) const {
      return peer_ == other.peer_ ? time_ < other.time_ : peer_->time < other.peer_->time;
    }

    bool wants() const { return wants_; }
    // Whether the stream wants work from now on. A stream gets no credit for time in which it
    // wanted no work.
    void SetWants(bool wants) {
      if (wants_ == wants) return;
      wants_ = wants;
      if (!wants) {
        --peer_->wanting;
        return;
      }
      if (peer_->wanting++ == 0) peer_->time = std::max(peer_->time, clock_->now_);
      time_ = std::max(time_, peer_->now);
    }

    // How many streams of the same peer are open.
    int64_t peer_streams() const { return peer_->streams; }

    // Takes a piece of `units` units for the stream. Returns its charge, which Finish() corrects.
    double Take(int64_t units) {
      const double charged =
          std::min(unit_cost_ * static_cast<double>(units), clock_->turn_ + unit_cost_);
      ++peer_->under_way;
      clock_->now_ = std::max(clock_->now_, peer_->time);
      peer_->time += charged;
      peer_->now = std::max(peer_->now, time_);
      time_ += charged;
      return charged;
    }

    // `units` of the piece are done. Their cost is `cost`, which replaces `charged`. REQUIRES:
    // units > 0. The clock may be destroyed already.
    void Finish(int64_t units, double charged, double cost) {
      --peer_->under_way;
      peer_->time += cost - charged;
      time_ += cost - charged;
      // The last few pieces count most in the estimate, because the next piece will cost about as
      // much.
      constexpr double kWeight = 0.25;
      unit_cost_ += kWeight * (cost / static_cast<double>(units) - unit_cost_);
    }

    // The piece was not begun. It costs nothing.
    void Undo(double charged) {
      --peer_->under_way;
      peer_->time -= charged;
      time_ -= charged;
    }

   private:
    FairClock* clock_;
    std::shared_ptr<Peer> peer_;  // Shared by its streams and, until ForgetPeers(), by the clock.
    double time_ = 0;
    double unit_cost_;
    bool wants_ = false;
  };

  // Peers with a stream.
  int64_t peers() const { return peers_open_; }
  // Peers with a stream, and peers that are remembered without one.
  size_t peers_known() const { return peers_.size(); }

 private:
  std::shared_ptr<Peer> Enter(const std::string& name) {
    std::shared_ptr<Peer>& peer = peers_[name];
    if (peer == nullptr) peer = std::make_shared<Peer>();
    if (peer->streams++ == 0) ++peers_open_;
    return peer;
  }

  void Leave(Peer& peer) {
    if (--peer.streams > 0) return;
    --peers_open_;
    ForgetPeers();
  }

  // Forgets peers that have no stream and no piece under way, and whose time is at most now_. If
  // more than kMaxDebtors peers without a stream are left, forgets the least advanced of these.
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
  double now_ = 0;  // The largest time that a peer had when it got work.
  int64_t peers_open_ = 0;
  std::map<std::string, std::shared_ptr<Peer>> peers_;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_ENGINE_FAIR_CLOCK_H_
