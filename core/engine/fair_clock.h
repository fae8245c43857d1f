// Decides which stream gets the next turn, by the cost of the work that each stream got before. The
// method is start-time fair queueing (Goyal, Vin, Cheng 1996) on two levels. Peers take turns, and
// the streams of a peer share the peer's turns. So a peer gets its part, even if other peers ask
// for more and have many streams.
//
// Each peer and each stream has a virtual time. When a piece of work is taken for a stream, the
// time of the stream and the time of its peer advance by the cost of the piece. Among the peers
// that want work, the least advanced peer goes first. Among the streams of this peer that want
// work, the least advanced stream goes first. The cost of a piece is known only when the piece is
// done. Until then the stream and its peer are charged an estimate, which comes from the stream's
// earlier pieces.
//
// The guarantee: let two peers want work all the time, and let no piece cost more than L. Work is
// taken for a peer only while no other peer that wants work is less advanced, and one piece moves
// the peer by L at most. So if each piece is charged its cost at once, the times of the two peers
// are never more than L apart. In any period, the work of one peer costs at most 2 L more than the
// work of the other (Theorem 1 of the paper). With T threads, up to T pieces of unknown cost are
// under way, and the bound is (T + 1) L instead of 2 L.
//   The bound (T + 1) L also requires that no piece is charged more than L while it is under way.
// So the charge of a piece is at most the cost of a turn and of one unit (in the engine, a unit is
// an example). A piece may have more units, but those that are left when the turn ends are given
// back.
//   The bound does not depend on how fast the peers are served. So among the streams of a peer the
// bound holds as well.
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
    double now = 0;         // The largest time that one of its streams had when it got work.
    int64_t streams = 0;    // Open streams.
    int64_t wanting = 0;    // Open streams that want work.
    int64_t under_way = 0;  // Pieces that are taken and not done.
  };

 public:
  // At most this many peers without a stream are remembered. If there are more, the least advanced
  // ones are forgotten.
  static constexpr size_t kMaxDebtors = 1024;

  // The caller ends a turn after the unit that brings the cost of the turn's work to `turn`, and
  // gives back the rest of the piece.
  explicit FairClock(double turn = std::numeric_limits<double>::infinity()) : turn_(turn) {}
  // Cannot be copied, because accounts refer to the clock.
  FairClock(const FairClock&) = delete;
  FairClock& operator=(const FairClock&) = delete;

  // The account of one stream.
  class Account {
   public:
    // Opens the account of a new stream of `peer`. `unit_cost` is a guess at the cost of one unit
    // of the stream's work.
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
    // Says whether the stream wants work from now on. A stream gets no credit for time in which it
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

    // Takes a piece of `units` units for the stream. Returns the estimated cost that is charged
    // for the piece until Finish().
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
      // The last few pieces count most in the estimate, because the next piece probably costs about
      // as much as these.
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

  // Forgets the peers without a stream and without a piece under way whose time is at most now_. If
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
