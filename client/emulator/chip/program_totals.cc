#include "client/emulator/chip/program_totals.h"

#include <algorithm>

namespace systole::emulator {
namespace {

// The part of the vector unit's time that the operation's matrix and memory time does not hide.
double VectorExcess(const Op& op) { return std::max(0.0, op.vector_s - op.matrix_s - op.memory_s); }

Bound BoundOf(const LayerCost& layer) {
  if (layer.matrix_s >= layer.memory_s && layer.matrix_s >= layer.vector_s) return Bound::kMatrix;
  return layer.memory_s >= layer.vector_s ? Bound::kMemory : Bound::kVector;
}

// Adds an operation's work to the sums of its layer, or to the sums of the whole step.
template <typename Cost>
void AddWork(const Op& op, Cost& cost) {
  cost.tiles += op.tiles;
  cost.cycles += op.cycles;
  cost.flops += 2 * op.macs;
  cost.memory_bytes += op.bytes;
  cost.matrix_s += op.matrix_s;
  cost.memory_s += op.memory_s;
  cost.vector_s += op.vector_s;
}

template <typename Cost>
double UtilisationOf(const Cost& cost, double places) {
  return cost.cycles > 0 ? cost.flops / 2 / (static_cast<double>(cost.cycles) * places) : 0;
}

}  // namespace

void AddUpTotals(const v1::Chip& chip, ChipProgram& program) {
  StepCost& step = program.step;
  for (const Op& op : program.ops) {
    switch (op.kind) {
      case OpKind::kInfeed:
        break;
      case OpKind::kCoreSum:
        step.core_sum_s += op.transfer_s;
        break;
      case OpKind::kAllReduce:
        (op.layer < 0 ? step.all_reduce_s : step.norm_all_reduce_s) += op.transfer_s;
        break;
      case OpKind::kGemm:
      case OpKind::kVector:
      case OpKind::kUpdate: {
        AddWork(op, step);
        step.vector_excess_s += VectorExcess(op);
        if (op.layer < 0) break;
        LayerCost& layer = program.layers[static_cast<size_t>(op.layer)];
        AddWork(op, layer);
        layer.seconds += op.matrix_s + op.memory_s + VectorExcess(op);
        break;
      }
    }
  }
  const double places = static_cast<double>(chip.array_rows()) *
                        static_cast<double>(chip.array_columns()) *
                        static_cast<double>(chip.matrix_units_per_core());
  for (LayerCost& layer : program.layers) {
    layer.utilisation = UtilisationOf(layer, places);
    layer.bound = BoundOf(layer);
  }
  step.utilisation = UtilisationOf(step, places);
  const auto [shorter, longer] = std::minmax(step.matrix_s, step.memory_s);
  step.compute_s = longer + (1 - program.overlap) * shorter + step.vector_excess_s;
  step.seconds = step.compute_s + step.core_sum_s + step.all_reduce_s + step.norm_all_reduce_s;
}

}  // namespace systole::emulator
