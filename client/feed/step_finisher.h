// Finishes tensors that travel compactly: derives from a feed spec what to ask the servers for
// instead, and makes of what comes the bytes that a server would have sent, straight in their place
// in the step.
//
//   server: .. resize, flip, round_to_uint8 -> uint8 -> wire
//   client: chunk -> normalise, cast -> its place; places that are not valid -> zeros
//
// The bits are the server's, because both ends use core/numeric/normalise.h.
//
// Thread-compatible; immutable, so any number of threads may use it.
#ifndef SYSTOLE_CLIENT_FEED_STEP_FINISHER_H_
#define SYSTOLE_CLIENT_FEED_STEP_FINISHER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "client/feed/step.h"
#include "core/numeric/normalise.h"
#include "proto/framing/chunk.h"
#include "systole/v1/feed.pb.h"

namespace systole {

class StepFinisher {
 public:
  // `finished` is the shape that a server described for `spec`. Null if nothing of it can travel
  // compactly; see v1::Wire for what can.
  static std::shared_ptr<const StepFinisher> Create(const v1::FeedSpec& spec,
                                                    std::shared_ptr<const StepShape> finished);

  // What to ask the servers for: as the spec, but the outputs that travel compactly end as uint8.
  const v1::FeedSpec& spec() const { return spec_; }
  // Of that.
  const std::shared_ptr<const StepShape>& shape() const { return shape_; }
  // Bytes of a finished step for each one that travels; more than 1.
  double ratio() const;

  // Puts a chunk of shape() where it belongs in a finished step, and checks its CRC.
  //   DataLoss  it does not match; that place then holds anything.
  // REQUIRES: a LaneCursor of shape() accepted its header; `step` holds a step of the finished
  // shape.
  absl::Status Place(const ReceivedChunk& chunk, uint8_t* step) const;

  // To be called when every chunk of a step was placed: what padding and masked records came as
  // zeros is zeros again.
  void Complete(uint8_t* step) const;

 private:
  StepFinisher(v1::FeedSpec spec, std::shared_ptr<const StepShape> shape,
               std::shared_ptr<const StepShape> finished,
               std::vector<std::optional<TensorNormaliser>> normalisers)
      : spec_(std::move(spec)),
        shape_(std::move(shape)),
        finished_(std::move(finished)),
        normalisers_(std::move(normalisers)) {}

  const v1::FeedSpec spec_;
  const std::shared_ptr<const StepShape> shape_;
  const std::shared_ptr<const StepShape> finished_;
  // By tensor; none: it travels as it is.
  const std::vector<std::optional<TensorNormaliser>> normalisers_;
};

}  // namespace systole

#endif  // SYSTOLE_CLIENT_FEED_STEP_FINISHER_H_
