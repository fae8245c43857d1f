// The lanes of a feed. A lane brings a part of the feed's steps, by one stream after another. It
// has at most one stream at a time, and the memory of the step that the stream is bringing.
// LaneTable only keeps the streams. Its caller starts and cancels them, and decides which steps a
// lane brings.
//
// Thread-compatible. Only LandedChunk::Put() may run at the same time as other functions.
#ifndef SYSTOLE_CLIENT_LANES_LANE_TABLE_H_
#define SYSTOLE_CLIENT_LANES_LANE_TABLE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/lanes/arrived_chunk.h"
#include "client/lanes/chunk_stream.h"
#include "client/lanes/feed_lane.h"
#include "client/lanes/keeper_work.h"
#include "client/lanes/step_finisher.h"
#include "client/schedule/step_schedule.h"
#include "client/servers/server_link.h"
#include "client/step/feed_client_stats.h"
#include "client/step/step.h"
#include "client/step/step_shelf.h"
#include "client/verdict/step_spans.h"
#include "systole/v1/service.pb.h"

namespace systole {

// A chunk that has a place in a step, between LaneTable::Accept() and LaneTable::Landed().
class LandedChunk {
 public:
  // Copies the chunk's data to its place. If the data is compact, StepFinisher finishes it there.
  // Call Put() without holding a lock, because it may copy a megabyte. No other thread touches the
  // step's memory meanwhile: the callbacks of a stream run one at a time, and the keeper (the
  // thread that opens and ends streams: feed_lanes.h) uses the memory only after the stream has
  // ended.
  void Put(const ArrivedChunk& chunk);

 private:
  friend class LaneTable;

  ChunkPlace place_;
  std::shared_ptr<StepShelf> shelf_;
  std::shared_ptr<const StepShape> shape_;
  std::shared_ptr<const StepFinisher> finisher_;  // Set if the data is compact.
  StepBuffer fresh_;                              // The step's memory, if this is its first chunk.
  uint8_t* step_ = nullptr;
  absl::Status memory_;  // An error if there was no memory for the step.
  absl::Status put_;
};

class LaneTable {
 public:
  // Passes `listener` to the streams.
  explicit LaneTable(ChunkListener& listener) : listener_(listener) {}

  // Sets the shape of steps. Call it once, before all functions below. `finisher` is null if
  // no tensor travels in its compact form. `always_compact`: FeedClientOptions::finish is "client".
  void Start(std::shared_ptr<const StepShape> shape, std::shared_ptr<const StepFinisher> finisher,
             bool always_compact, std::shared_ptr<StepShelf> shelf);
  const std::shared_ptr<const StepShape>& shape() const { return shape_; }

  // Makes a stream for `action`, which the caller starts. `request` has the spec and the identity.
  ChunkStream* Open(const OpenStream& action, const ServerLink& link,
                    v1::StreamStepsRequest request);
  // Stops the stream of the action's lane. `reading` is the lane whose callback is running now. If
  // both are the same lane, the callback ends the stream. Otherwise the stream is added to those
  // that `work` cancels.
  void Stop(const StopStream& action, int reading, KeeperWork& work);
  ChunkStream* StreamOf(int lane) const { return lanes_.at(lane).stream.get(); }
  // TakeStep() hands out the lane's complete step. TakeSpans() says which stages held up the step,
  // and when. If another lane was bringing the same step, that lane's stages are included.
  StepBuffer TakeStep(int lane);
  StepSpans TakeSpans(int lane, int64_t step);
  // Whether the lane's tensors come in their compact form (v1::CompactForm).
  bool IsCompact(int lane) const { return lanes_.at(lane).compact; }
  // Ends the lane. Returns the memory of the lane's incomplete step, or null. The caller gives this
  // memory back without holding the lock.
  StepBuffer Close(int lane);

  // Checks the chunk's header, and moves the lane's cursor past the chunk. Nullopt: the caller must
  // stop the stream. EndingOf() then returns the reason, except after Stop(). `shared`: the stream
  // has shared memory.
  std::optional<LandedChunk> Accept(int lane, const ArrivedChunk& chunk, bool shared,
                                    FeedClientStats& stats);
  // Takes in the result of Put(), and returns what the caller does next. `link` is the link to the
  // lane's server. The chunk came at `arrived`, and Put() returned at `handled`.
  enum class Outcome { kReadOn, kStop, kStepComplete };
  Outcome Landed(int lane, LandedChunk landed, const ArrivedChunk& chunk, ServerLink& link,
                 absl::Duration arrived, absl::Duration handled, FeedClientStats& stats);
  int ServerOf(int lane) const { return lanes_.at(lane).server; }
  // The lane's first step that is not complete. REQUIRES: the lane has a stream.
  int64_t StepOf(int lane) const { return lanes_.at(lane).cursor->step(); }

  // Call it in the stream's last callback.
  void StreamEnded(int lane, StreamEnd end) { lanes_.at(lane).ended = std::move(end); }
  // The lanes whose stream has ended.
  std::vector<int> Ended() const;
  // Why the lane's stream ended. REQUIRES: Ended() has the lane. Nullopt: all steps of the stream
  // had come, or Stop() was called.
  std::optional<LaneEnding> EndingOf(int lane) const;
  // Makes a lane of Ended() idle again. `failed`: the next stream is a retry. Returns the stream,
  // for the caller to destroy.
  std::unique_ptr<ChunkStream> TakeStream(int lane, bool failed);
  // The servers whose streams are under way.
  std::set<int> Streaming() const;
  // Whether no lane has a stream.
  bool idle() const;

 private:
  ChunkListener& listener_;
  std::shared_ptr<const StepShape> shape_;
  std::shared_ptr<const StepFinisher> finisher_;
  bool always_compact_ = false;
  std::shared_ptr<StepShelf> shelf_;
  std::map<int, FeedLane> lanes_;
};

}  // namespace systole

#endif  // SYSTOLE_CLIENT_LANES_LANE_TABLE_H_
