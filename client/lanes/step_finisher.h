// Finishes tensors that travel compactly. It derives from a feed spec the spec to ask servers for
// instead. It turns the chunks that come into the bytes that a server would have sent for the feed
// spec, straight in their place in the step.
//
//   server: .. resize, flip, round_to_uint8 -> uint8 -> wire
//   client: chunk -> normalise, cast -> its place; places that are not valid -> zeros
//
// The bits are those that a server makes, because both ends use core/numeric/normalise.h.
//
// Thread-compatible; immutable, so any number of threads may use it.
#ifndef SYSTOLE_CLIENT_LANES_STEP_FINISHER_H_
#define SYSTOLE_CLIENT_LANES_STEP_FINISHER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "client/step/step.h"
#include "core/numeric/normalise.h"
#include "proto/framing/chunk.h"
#include "systole/v1/feed.pb.h"

namespace systole {

class StepFinisher {
 public:
  // `finished` is the shape that a server described for `spec`. Returns null if no output can
  // travel compactly; see v1::Wire for what can.
  static std::shared_ptr<const StepFinisher> Create(const v1::FeedSpec& spec,
                                                    std::shared_ptr<const StepShape> finished);

  // The spec to ask servers for: as the feed's, but outputs that travel compactly end as uint8.
  const v1::FeedSpec& spec() const { return spec_; }
  // The shape of that spec's steps.
  const std::shared_ptr<const StepShape>& shape() const { return shape_; }
  // Bytes of a finished step divided by the bytes that travel; more than 1.
  double ratio() const;

  // Puts a chunk of shape() where it belongs in a finished step, and checks its CRC.
  //   DataLoss  the CRC does not match; the chunk's place then holds unspecified bytes.
  // REQUIRES: a LaneCursor of shape() accepted its header; `step` holds a step of the finished
  // shape.
  absl::Status Place(const ReceivedChunk& chunk, uint8_t* step) const;

  // Call it when every chunk of a step was placed. Padding and masked examples travel as zeros,
  // which Place() has normalised too; this makes them zeros again.
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
  // By tensor; nullopt: the tensor travels as it is.
  const std::vector<std::optional<TensorNormaliser>> normalisers_;
};

}  // namespace systole

#endif  // SYSTOLE_CLIENT_LANES_STEP_FINISHER_H_
