// A row of the operation table (operation_table.h): the facts about one operation.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_OPERATIONS_OPS_OPERATION_ROW_H_
#define SYSTOLE_CORE_OPERATIONS_OPS_OPERATION_ROW_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/operations/ops/draws.h"
#include "core/operations/ops/operation.h"
#include "systole/v1/feed.pb.h"

namespace systole {

// The arguments from which an operation is made.
struct OperationArguments {
  const v1::Transform& transform;  // With all defaults: from WithDefaults() (operation_table.h).
  Draws draws;
  absl::Span<const int64_t> stored_shape;  // Output.shape.
};

// An operation as `systole ops` and the table in core/README.md describe it.
struct OperationGuide {
  absl::string_view summary;  // One sentence.
  absl::string_view example;  // As written in a spec, in textproto.
  // The operation's names in other libraries. A name is empty if the library has no such operation.
  absl::string_view tensorflow = "";
  absl::string_view torchvision = "";
  absl::string_view dali = "";
  // How the operation's values compare with TensorFlow's: "exact"; "within NUMBER", then the size
  // that the number is relative to; or "different: ", then the reason. Empty if TensorFlow has no
  // such operation. parity_test checks each "exact" and each number.
  absl::string_view parity = "";
  // A TensorFlow function that does in one call the work of two transforms: this operation, and the
  // transform that usually comes before it. For crop, this is decode_and_crop_jpeg.
  // combined_parity says how the function's values compare with ours. Both texts are empty if there
  // is no such function.
  absl::string_view combined_tensorflow = "";
  absl::string_view combined_parity = "";
};

struct OperationRow {
  v1::Transform::KindCase kind = v1::Transform::KIND_NOT_SET;

  OperationGuide guide;

  // The `purpose` in Draws(): a different number for each operation that draws random numbers. 0:
  // the operation draws nothing. Never change the number, because the bytes of feeds depend on it.
  uint32_t draws = 0;

  // Whether the operation takes a `tf_seed`, with which it draws as TensorFlow's stateless op does.
  bool tensorflow_draws = false;

  // Creates the operation. InvalidArgument if a field is out of range. The message names the
  // field; the caller puts the operation's name before the message.
  absl::StatusOr<std::unique_ptr<const Operation>> (*create)(const OperationArguments&) = nullptr;

  // Writes the defaults into fields that are not set. Null: no field has a default.
  void (*write_defaults)(v1::Transform&) = nullptr;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_OPERATIONS_OPS_OPERATION_ROW_H_
