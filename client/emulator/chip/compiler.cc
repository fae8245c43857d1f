#include "client/emulator/chip/compiler.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "client/emulator/chip/all_reduce_model.h"
#include "client/emulator/chip/chip.h"
#include "client/emulator/chip/fusion.h"
#include "client/emulator/chip/layer_products.h"
#include "client/emulator/chip/pass_cost.h"
#include "client/emulator/chip/product_price.h"
#include "client/emulator/chip/program_totals.h"
#include "client/emulator/chip/update_cost.h"
#include "core/status/status_macros.h"

namespace systole::emulator {
namespace {

constexpr int64_t kLargestCoreBatch = int64_t{1} << 20;
constexpr double kBf16Bytes = 2, kF32Bytes = 4;
// Vector operations of the loss and its gradient for each class of each example. exp counts as one
// operation.
constexpr double kLossOps = 6;

double Size(int64_t a) { return static_cast<double>(a); }

absl::string_view KindName(LayerKind kind) {
  switch (kind) {
    case LayerKind::kConv2d:
      return "conv2d";
    case LayerKind::kBatchNorm:
      return "batch_norm";
    case LayerKind::kRelu:
      return "relu";
    case LayerKind::kMaxPool:
      return "max_pool";
    case LayerKind::kAveragePool:
      return "average_pool";
    case LayerKind::kDense:
      return "dense";
    case LayerKind::kAdd:
      return "add";
    case LayerKind::kDropout:
      return "dropout";
    case LayerKind::kLayerNorm:
      return "layer_norm";
    case LayerKind::kGelu:
      return "gelu";
    case LayerKind::kAttention:
      return "attention";
  }
  return "";
}

// Lowers row by row: forward in order, then the loss, backward in reverse, the sum of gradients and
// the update.
class Lowering {
 public:
  Lowering(const Model& model, const v1::Chip& chip, const v1::Slice& slice,
           const CompileOptions& options)
      : model_(model),
        chip_(chip),
        slice_(slice),
        options_(options),
        rows_(FuseLayers(model, options.training)) {}

  absl::StatusOr<ChipProgram> Run();

 private:
  const LayerPlan& First(const FusedRow& row) const {
    return model_.layers[static_cast<size_t>(row.passes.front().layers.front())];
  }
  double Activation(const Shape& shape) const {
    return kBf16Bytes * Size(options_.per_core_batch) * Size(shape.size());
  }

  void SetFacts();
  void AddInfeed();
  void AddRow(const FusedRow& row);
  absl::Status LowerForward(size_t row);
  absl::Status LowerBackward(size_t row);
  void AddLoss();
  absl::Status AddGradientSum();
  void AddUpdate();
  // Adds a pass of a row. If the row has products, pass 0 is the products' epilogue and is not
  // added here.
  void AddPass(size_t row, size_t pass, bool backward);
  absl::Status AddStatisticsSum(size_t row, size_t pass, absl::string_view direction);
  absl::Status AddAllReduce(std::string name, int64_t layer, double bytes);
  // Every product gets an equal part of `bytes` and `vector_s`.
  absl::Status AddProducts(size_t row, absl::string_view direction,
                           const std::vector<Product>& products, double bytes, double vector_s,
                           bool may_transpose);
  void CountMemory();

  const Model& model_;
  const v1::Chip& chip_;
  const v1::Slice& slice_;
  const CompileOptions& options_;
  const std::vector<FusedRow> rows_;
  ChipProgram program_;
};

void Lowering::SetFacts() {
  program_.model = model_.name;
  program_.chip = chip_.name();
  program_.slice = slice_.name();
  program_.chips = ChipsOf(slice_);
  program_.cores = program_.chips * chip_.cores();
  program_.per_core_batch = options_.per_core_batch;
  program_.training = options_.training;
  program_.dataflow = options_.dataflow;
  program_.overlap = options_.overlap.value_or(chip_.overlap());
  program_.peak_flops = PeakFlops(chip_) / Size(chip_.cores());
  program_.memory_bytes_per_s = chip_.memory_bytes_per_s() / Size(chip_.cores());
  program_.ridge_flops_per_byte = RidgeFlopsPerByte(chip_);
  program_.memory_bytes = Size(chip_.memory_bytes()) / Size(chip_.cores());
}

void Lowering::AddInfeed() {
  const InfeedBytes bytes = CountInfeedBytes(model_.input_shape, options_.per_core_batch,
                                             DTypeBytes(options_.dtype), options_.layout);
  const double seconds = Size(chip_.cores()) * bytes.padded / chip_.host_bytes_per_s();
  program_.infeed = {.layout = options_.layout,
                     .dtype = options_.dtype,
                     .useful_bytes = bytes.useful,
                     .padded_bytes = bytes.padded,
                     .seconds = seconds};
  program_.ops.push_back(
      {.kind = OpKind::kInfeed, .name = "infeed", .bytes = bytes.padded, .transfer_s = seconds});
}

void Lowering::AddRow(const FusedRow& row) {
  const LayerPlan& first = First(row);
  LayerCost cost = {.name = first.name, .kind = std::string(KindName(first.kind))};
  for (const Pass& pass : row.passes) {
    for (const int64_t layer : pass.layers) {
      const LayerPlan& plan = model_.layers[static_cast<size_t>(layer)];
      if (&plan != &first) cost.fused.push_back(plan.name);
    }
  }
  if (row.products) {
    const Product forward = ProductsOf(first, options_.per_core_batch).forward.front();
    cost.gemm = forward.gemm;
    cost.repeats = forward.repeats;
  }
  program_.layers.push_back(std::move(cost));
}

absl::Status Lowering::AddProducts(size_t row, absl::string_view direction,
                                   const std::vector<Product>& products, double bytes,
                                   double vector_s, bool may_transpose) {
  const std::string name = absl::StrCat(First(rows_[row]).name, " ", direction);
  for (const Product& product : products) {
    absl::StatusOr<Op> op = PriceProduct(product, chip_, options_.dataflow);
    if (op.ok() && may_transpose) {
      const GemmShape& gemm = product.gemm;
      absl::StatusOr<Op> other =
          PriceProduct({.gemm = {gemm.n, gemm.k, gemm.m}}, chip_, options_.dataflow);
      if (!other.ok() || other->cycles < op->cycles) op = std::move(other);
    }
    if (!op.ok()) {
      return absl::Status(op.status().code(), absl::StrCat(name, ": ", op.status().message()));
    }
    op->name = name;
    op->layer = static_cast<int64_t>(row);
    op->bytes = bytes / Size(static_cast<int64_t>(products.size()));
    op->memory_s = op->bytes / program_.memory_bytes_per_s;
    op->vector_s = vector_s / Size(static_cast<int64_t>(products.size()));
    program_.ops.push_back(*std::move(op));
  }
  return absl::OkStatus();
}

void Lowering::AddPass(size_t row, size_t pass, bool backward) {
  const PassCosts costs =
      CostOf(model_, rows_[row], pass, options_.per_core_batch, options_.training, chip_);
  const PassCost& cost = backward ? costs.backward : costs.forward;
  const LayerPlan& first =
      model_.layers[static_cast<size_t>(rows_[row].passes[pass].layers.front())];
  program_.ops.push_back({.kind = OpKind::kVector,
                          .name = absl::StrCat(first.name, backward ? " backward" : " forward"),
                          .layer = static_cast<int64_t>(row),
                          .bytes = cost.bytes,
                          .memory_s = cost.bytes / program_.memory_bytes_per_s,
                          .vector_s = cost.vector_s});
}

absl::Status Lowering::AddAllReduce(std::string name, int64_t layer, double bytes) {
  AllReduceShape shape = {
      .bytes = bytes, .link_bytes_per_s = chip_.link_bytes_per_s(), .hop_s = chip_.hop_s()};
  for (const v1::Axis& axis : slice_.axes()) {
    shape.axes.push_back({.chips = axis.chips(), .ring = axis.ring()});
  }
  SYSTOLE_ASSIGN_OR_RETURN(const double seconds, AllReduceSeconds(shape));
  program_.ops.push_back({.kind = OpKind::kAllReduce,
                          .name = std::move(name),
                          .layer = layer,
                          .bytes = bytes,
                          .transfer_s = seconds});
  return absl::OkStatus();
}

// In each direction, batch norm adds up two numbers for every channel over all chips.
absl::Status Lowering::AddStatisticsSum(size_t row, size_t pass, absl::string_view direction) {
  const LayerPlan& norm =
      model_.layers[static_cast<size_t>(rows_[row].passes[pass].layers.front())];
  if (norm.kind != LayerKind::kBatchNorm || norm.local_statistics || !options_.training) {
    return absl::OkStatus();
  }
  return AddAllReduce(absl::StrCat(norm.name, " statistics ", direction), static_cast<int64_t>(row),
                      2 * kF32Bytes * Size(norm.output.channels));
}

// Bytes that an attention layer moves for its scores. A head's scores stay in the vector memory if,
// in f32, they fit into half of this memory. If they fit, inference moves no scores, and training
// writes them once and reads them once, as bfloat16. If they do not fit, every step between the
// products reads and writes the scores in the core's main memory.
struct ScoreBytes {
  double forward = 0, backward = 0;
};
ScoreBytes ScoreBytesOf(const LayerPlan& layer, const CompileOptions& options,
                        const v1::Chip& chip) {
  if (layer.kind != LayerKind::kAttention) return {};
  const double positions = Size(layer.output.height * layer.output.width);
  const double one_head = positions * positions;
  const double all = kBf16Bytes * one_head * Size(layer.heads) * Size(options.per_core_batch);
  if (kF32Bytes * one_head <= Size(chip.vector_memory_bytes_per_core()) / 2) {
    return {.forward = options.training ? all : 0, .backward = all};
  }
  return {.forward = 4 * all, .backward = 6 * all};
}

absl::Status Lowering::LowerForward(size_t row) {
  const FusedRow& fused = rows_[row];
  const LayerPlan& first = First(fused);
  for (size_t pass = 0; pass < fused.passes.size(); ++pass) {
    if (pass > 0 || !fused.products) {
      SYSTOLE_RETURN_IF_ERROR(AddStatisticsSum(row, pass, "forward"));
      AddPass(row, pass, /*backward=*/false);
      continue;
    }
    const double bytes = Activation(first.input) + Activation(first.output) +
                         kBf16Bytes * Size(first.weights) +
                         ScoreBytesOf(first, options_, chip_).forward;
    const PassCosts costs =
        CostOf(model_, fused, 0, options_.per_core_batch, options_.training, chip_);
    SYSTOLE_RETURN_IF_ERROR(AddProducts(row, "forward",
                                        ProductsOf(first, options_.per_core_batch).forward, bytes,
                                        costs.forward.vector_s, /*may_transpose=*/false));
  }
  return absl::OkStatus();
}

// The epilogue's backward operations are charged to the weight gradient or, if the layer has no
// weights, to the input gradient. The weight gradient is written as f32, which is twice the bytes
// of the weights.
absl::Status Lowering::LowerBackward(size_t row) {
  const FusedRow& fused = rows_[row];
  const LayerPlan& first = First(fused);
  for (size_t pass = fused.passes.size(); pass-- > 0;) {
    if (pass == 0 && fused.products) break;
    const LayerPlan& opened = model_.layers[static_cast<size_t>(fused.passes[pass].layers.front())];
    if (!opened.needs_input_gradient() && opened.weights == 0) continue;
    SYSTOLE_RETURN_IF_ERROR(AddStatisticsSum(row, pass, "backward"));
    AddPass(row, pass, /*backward=*/true);
  }
  if (!fused.products) return absl::OkStatus();
  const LayerProducts products = ProductsOf(first, options_.per_core_batch);
  const double x = Activation(first.input), y = Activation(first.output);
  const double w = kBf16Bytes * Size(first.weights);
  const double vector_s =
      CostOf(model_, fused, 0, options_.per_core_batch, true, chip_).backward.vector_s;
  const bool weighted = !products.weight_gradient.empty();
  if (weighted) {
    SYSTOLE_RETURN_IF_ERROR(AddProducts(row, "weight gradient", products.weight_gradient,
                                        x + y + 2 * w, vector_s, /*may_transpose=*/true));
  }
  if (!first.needs_input_gradient()) return absl::OkStatus();
  // An attention layer reads its output's gradient and its input, and writes the input's gradient.
  const double bytes =
      weighted ? y + w + x : y + 2 * x + ScoreBytesOf(first, options_, chip_).backward;
  return AddProducts(row, "input gradient", products.input_gradient, bytes, weighted ? 0 : vector_s,
                     /*may_transpose=*/false);
}

void Lowering::AddLoss() {
  const double logits = Size(options_.per_core_batch) * Size(model_.classes);
  const double bytes = 2 * kF32Bytes * logits;  // Reads the logits and writes their gradient.
  program_.ops.push_back({.kind = OpKind::kVector,
                          .name = "loss",
                          .bytes = bytes,
                          .memory_s = bytes / program_.memory_bytes_per_s,
                          .vector_s = VectorSeconds(logits, kLossOps, chip_)});
}

// First each chip adds up the gradients of its own cores: every core's gradients are read, and
// their sum is written.
absl::Status Lowering::AddGradientSum() {
  const double gradients = kF32Bytes * Size(model_.parameters);
  if (chip_.cores() > 1) {
    const double bytes = Size(chip_.cores() + 1) * gradients;
    program_.ops.push_back({.kind = OpKind::kCoreSum,
                            .name = "gradients of the chip's cores",
                            .bytes = bytes,
                            .transfer_s = bytes / chip_.memory_bytes_per_s()});
  }
  return AddAllReduce("gradients", -1, gradients);
}

void Lowering::AddUpdate() {
  const UpdateCost cost = UpdateCostOf(model_.optimizer);
  const double bytes = cost.bytes_per_parameter * Size(model_.parameters);
  program_.ops.push_back(
      {.kind = OpKind::kUpdate,
       .name = "update",
       .bytes = bytes,
       .memory_s = bytes / program_.memory_bytes_per_s,
       .vector_s = VectorSeconds(Size(model_.parameters), cost.ops_per_parameter, chip_)});
}

void Lowering::CountMemory() {
  const double parameters = kF32Bytes * Size(model_.parameters);
  double activations = 0;
  double largest_row = 0;
  for (const FusedRow& row : rows_) {
    const LayerPlan& first = First(row);
    const LayerPlan& last = model_.layers[static_cast<size_t>(row.passes.back().layers.back())];
    // If the row has a second pass, that pass needs the first layer's output again in the backward
    // direction, so the output is kept.
    const double between = row.passes.size() > 1 ? Activation(first.output) : 0;
    activations +=
        between + Activation(last.output) + ScoreBytesOf(first, options_, chip_).backward;
    largest_row = std::max(largest_row, Activation(first.input) + Activation(first.output));
  }
  program_.needed_memory_bytes = parameters + 2 * program_.infeed.padded_bytes;
  if (!options_.training) {
    program_.needed_memory_bytes += largest_row;
    return;
  }
  const auto copies = Size(1 + UpdateCostOf(model_.optimizer).numbers_per_parameter);
  program_.needed_memory_bytes += activations + parameters * copies;
}

absl::StatusOr<ChipProgram> Lowering::Run() {
  SetFacts();
  AddInfeed();
  for (size_t row = 0; row < rows_.size(); ++row) {
    AddRow(rows_[row]);
    SYSTOLE_RETURN_IF_ERROR(LowerForward(row));
  }
  if (options_.training) {
    AddLoss();
    for (size_t row = rows_.size(); row-- > 0;) SYSTOLE_RETURN_IF_ERROR(LowerBackward(row));
    SYSTOLE_RETURN_IF_ERROR(AddGradientSum());
    AddUpdate();
  }
  CountMemory();
  AddUpTotals(chip_, program_);
  return std::move(program_);
}

absl::Status CheckOptions(const CompileOptions& options) {
  if (options.per_core_batch < 1 || options.per_core_batch > kLargestCoreBatch) {
    return absl::InvalidArgumentError(absl::StrCat("per_core_batch is ", options.per_core_batch,
                                                   ", want 1 to ", kLargestCoreBatch));
  }
  if (options.overlap.has_value() && !(*options.overlap >= 0 && *options.overlap <= 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("overlap is ", *options.overlap, ", want 0 to 1"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ChipProgram> CompileProgram(const Model& model, const v1::Chip& chip,
                                           const CompileOptions& options) {
  SYSTOLE_RETURN_IF_ERROR(CheckChip(chip));
  SYSTOLE_RETURN_IF_ERROR(CheckOptions(options));
  SYSTOLE_ASSIGN_OR_RETURN(const v1::Slice* slice, FindSlice(chip, options.slice));
  return Lowering(model, chip, *slice, options).Run();
}

}  // namespace systole::emulator
