// Finishes tensors that travel compactly (v1::CompactForm). Turns arriving chunks into the bytes of
// finished tensors, directly in their place in the step.
//
//   server: .. resize, flip, round_to_uint8 -> uint8 -> network
//   client: chunk -> scale and bias, or a table; cast -> its place; places not valid -> zeros
//
// The server would make the same tensors, bit for bit: client and server both use
// core/numeric/normalise.h, and a table holds the results of the server's own operations.
//
// Thread-compatible; immutable, so any number of threads may use it.
#ifndef SYSTOLE_CLIENT_LANES_STEP_FINISHER_H_
#define SYSTOLE_CLIENT_LANES_STEP_FINISHER_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/step/step.h"
#include "core/numeric/normalise.h"
#include "core/numeric/value_table.h"
#include "proto/framing/chunk.h"
#include "systole/v1/service.pb.h"

namespace systole {

class StepFinisher {
 public:
  // `finished` is the shape that `answer` describes. Returns null if no tensor has a compact form.
  //   Internal  a tensor cannot be finished. This cannot happen if `answer` passed
  //             CheckFeedAnswer().
  static absl::StatusOr<std::shared_ptr<const StepFinisher>> Create(
      const v1::ResolveFeedResponse& answer, std::shared_ptr<const StepShape> finished);

  // The shape of a step as it travels, with uint8 for the tensors in compact form.
  const std::shared_ptr<const StepShape>& shape() const { return shape_; }

  // Puts a chunk of shape() where it belongs in a finished step, and checks its CRC.
  //   DataLoss  the CRC does not match; the chunk's place then holds unspecified bytes.
  // REQUIRES: a LaneCursor of shape() accepted the chunk's header. `step` holds a step of the
  // finished shape.
  absl::Status Place(const ReceivedChunk& chunk, uint8_t* step) const;

  // Call it when every chunk of a step was placed. Padding and masked examples travel as zeros.
  // Place() treats these zeros like other values, and may turn them into other numbers. Complete()
  // sets these examples to zeros again.
  void Complete(uint8_t* step) const;

 private:
  // How a tensor is finished. monostate: the tensor travels finished.
  using Rule = std::variant<std::monostate, TensorNormaliser, ValueTable>;
  static absl::StatusOr<Rule> RuleOf(const v1::TensorDescription& tensor);

  StepFinisher(std::shared_ptr<const StepShape> shape, std::shared_ptr<const StepShape> finished,
               std::vector<Rule> rules)
      : shape_(std::move(shape)), finished_(std::move(finished)), rules_(std::move(rules)) {}

  const std::shared_ptr<const StepShape> shape_;
  const std::shared_ptr<const StepShape> finished_;
  const std::vector<Rule> rules_;  // One for each tensor.
};

}  // namespace systole

#endif  // SYSTOLE_CLIENT_LANES_STEP_FINISHER_H_
