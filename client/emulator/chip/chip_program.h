// A model lowered ahead of time for one chip and one batch size. A program has every operation of a
// training step (or of an inference), in order, and the operation's cost. README.md gives the rules
// and their sources.
//
// All costs are those of one core. All cores do the same work. A layer's row covers the forward and
// backward pass of the layer and of the layers fused with it.
//
// Thread-compatible value types.
#ifndef SYSTOLE_CLIENT_EMULATOR_CHIP_CHIP_PROGRAM_H_
#define SYSTOLE_CLIENT_EMULATOR_CHIP_CHIP_PROGRAM_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "client/emulator/array/cycle_model.h"
#include "client/emulator/chip/infeed_layout.h"
#include "core/tensor/dtype.h"

namespace systole::emulator {

enum class OpKind {
  kInfeed,     // The transfer from the host into the core's memory.
  kGemm,       // Matrix products, with the element-wise operations in their epilogue.
  kVector,     // A pass of element-wise operations over the memory.
  kCoreSum,    // The chip's cores add up their gradients.
  kAllReduce,  // The chips add up gradients or batch norm's statistics.
  kUpdate,     // The optimizer.
};
// "infeed", "gemm", "vector", "core-sum", "all-reduce", "update".
absl::string_view OpKindName(OpKind kind);

struct Op {
  OpKind kind = OpKind::kVector;
  std::string name;    // "conv1 forward".
  int64_t layer = -1;  // Index into ChipProgram::layers; -1: belongs to the whole step.

  // kGemm: `repeats` products of this shape, one after the other, such as one for each head and
  // example of an attention layer.
  GemmShape gemm;
  int64_t repeats = 1;
  int64_t tiles = 0;   // How often an array is filled, in all repeats together.
  int64_t cycles = 0;  // The array's cycles, in all repeats together.
  double macs = 0;

  // The bytes moved in the core's memory. kInfeed: padded bytes over the host's link. kCoreSum:
  // bytes moved in the chip's memory. kAllReduce: the size of each chip's buffer.
  double bytes = 0;
  // The time that each part of the core takes. These times may overlap: see StepCost.
  double matrix_s = 0;
  double memory_s = 0;
  double vector_s = 0;
  double transfer_s = 0;  // kInfeed, kCoreSum, kAllReduce.
};

// What limits a layer: the part of the core with the longest of the layer's three times.
enum class Bound { kMatrix, kMemory, kVector };
// "matrix", "memory", "vector".
absl::string_view BoundName(Bound bound);

struct LayerCost {
  std::string name;
  std::string kind;                // "conv2d"
  std::vector<std::string> fused;  // Names of the layers that are fused with this layer, in order.
  // The forward pass's first product, and how often it is repeated. All are 0 if the layer has no
  // products.
  GemmShape gemm;
  int64_t repeats = 0;

  // These are sums of the forward and the backward pass.
  int64_t tiles = 0;
  int64_t cycles = 0;
  double utilisation = 0;  // How busy the core's matrix units are in `cycles`; 0 if cycles is 0.
  double flops = 0;        // 2 for each multiply-accumulate of the products.
  double memory_bytes = 0;
  double matrix_s = 0;
  double memory_s = 0;
  double vector_s = 0;
  // A sum over the layer's operations. Each operation adds matrix_s + memory_s, as if these never
  // overlapped. If the operation's vector_s is longer than this sum, the excess is added, too.
  double seconds = 0;
  Bound bound = Bound::kMatrix;

  // The layer's coordinates in the roofline plot. 0 if the divisor is 0.
  double flops_per_byte() const { return memory_bytes > 0 ? flops / memory_bytes : 0; }
  double flops_per_s() const { return seconds > 0 ? flops / seconds : 0; }
};

// One step of one core.
//   compute_s = longer + (1 - overlap) * shorter of (matrix_s, memory_s), + vector_excess_s
//   seconds   = compute_s + core_sum_s + all_reduce_s + norm_all_reduce_s
// The infeed of the next step runs at the same time and is not included.
struct StepCost {
  int64_t tiles = 0;
  int64_t cycles = 0;
  double utilisation = 0;  // Defined as in LayerCost.
  double flops = 0;
  double memory_bytes = 0;  // Of all operations except infeed, core sum and all-reduces.
  double matrix_s = 0;
  double memory_s = 0;
  double vector_s = 0;
  // The part of vector_s that is not hidden by the matrix and memory time of the same operation.
  double vector_excess_s = 0;
  double compute_s = 0;
  double core_sum_s = 0;
  double all_reduce_s = 0;       // For the gradients.
  double norm_all_reduce_s = 0;  // For batch norm's statistics.
  double seconds = 0;
};

// One core's input of one step.
struct InfeedCost {
  InfeedLayout layout = InfeedLayout::kHwcnTiled;
  DType dtype = DType::kBfloat16;
  double useful_bytes = 0;
  double padded_bytes = 0;
  // The transfer from the host. All of the chip's cores share one link.
  double seconds = 0;
};

struct ChipProgram {
  std::string model;
  std::string chip;
  std::string slice;
  int64_t chips = 0;
  int64_t cores = 0;
  int64_t per_core_batch = 0;
  bool training = true;
  Dataflow dataflow = Dataflow::kWsDb;
  double overlap = 0;

  std::vector<Op> ops;  // In the order in which they run.
  std::vector<LayerCost> layers;
  StepCost step;
  InfeedCost infeed;

  // The peaks of one core.
  double peak_flops = 0;
  double memory_bytes_per_s = 0;
  double ridge_flops_per_byte = 0;
  // A rough estimate of the memory that a step needs: parameters, gradients, the optimizer's
  // numbers, activations for the backward pass, two infeed buffers.
  double needed_memory_bytes = 0;
  double memory_bytes = 0;  // The memory of a core.

  int64_t global_batch() const { return cores * per_core_batch; }
  // Examples a second of the whole slice, if the feed keeps up.
  double examples_per_s() const { return static_cast<double>(global_batch()) / step.seconds; }
  // The useful bytes of the input tensor that a feed must deliver to the whole slice each second.
  double feed_bytes_per_s() const {
    return static_cast<double>(cores) * infeed.useful_bytes / step.seconds;
  }
};

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_CHIP_CHIP_PROGRAM_H_
