#include "client/emulator/training/gradient_plan.h"

#include <algorithm>
#include <iterator>

namespace systole::emulator {
namespace {

class Slots {
 public:
  // Takes the smallest free slot that is large enough. If no free slot is large enough, the largest
  // free slot grows. If no slot is free, makes a new slot.
  int64_t Take(int64_t size) {
    const auto better = [&](int64_t a, int64_t b) {
      const bool fits_a = sizes_[a] >= size, fits_b = sizes_[b] >= size;
      if (fits_a != fits_b) return fits_a;
      return fits_a ? sizes_[a] < sizes_[b] : sizes_[a] > sizes_[b];
    };
    const auto best = std::min_element(free_.begin(), free_.end(), better);
    if (best == free_.end()) {
      sizes_.push_back(size);
      return static_cast<int64_t>(sizes_.size()) - 1;
    }
    const int64_t slot = *best;
    free_.erase(best);
    sizes_[slot] = std::max(sizes_[slot], size);
    return slot;
  }
  void Free(int64_t slot) { free_.push_back(slot); }
  const std::vector<int64_t>& sizes() const { return sizes_; }

 private:
  std::vector<int64_t> sizes_;
  std::vector<int64_t> free_;
};

}  // namespace

GradientPlan PlanGradients(const Model& model) {
  const auto layers = static_cast<int64_t>(model.layers.size());
  GradientPlan plan;
  plan.steps.resize(model.layers.size());
  std::vector<int64_t> slot_of(model.layers.size(), -1);  // Slot of the output's gradient.
  Slots slots;
  slot_of[layers - 1] = slots.Take(model.layers[layers - 1].output.size());  // The loss writes it.
  for (int64_t layer = layers - 1; layer >= 0; --layer) {
    const LayerPlan& of = model.layers[layer];
    GradientPlan::Step& step = plan.steps[layer];
    step.output = slot_of[layer];
    std::vector<int64_t> inputs;  // Without the model's input, which needs no gradient.
    std::copy_if(of.inputs.begin(), of.inputs.end(), std::back_inserter(inputs),
                 [](int64_t input) { return input >= 0; });
    if (!inputs.empty()) {
      // The layer writes straight to the slot of its first input, if it takes that input once and
      // the slot has no contribution yet.
      const int64_t first = inputs[0];
      const bool once = std::count(inputs.begin(), inputs.end(), first) == 1;
      const bool straight = once && slot_of[first] < 0;
      step.written = slots.Take(of.input.size());
      if (straight) slot_of[first] = step.written;
      for (size_t i = straight ? 1 : 0; i < inputs.size(); ++i) {
        int64_t& slot = slot_of[inputs[i]];
        const bool adds = slot >= 0;
        if (!adds) slot = slots.Take(of.input.size());
        step.deliveries.push_back({.to = slot, .adds = adds});
      }
      if (!straight) slots.Free(step.written);
    }
    slots.Free(step.output);
  }
  plan.slot_sizes = slots.sizes();
  return plan;
}

}  // namespace systole::emulator
