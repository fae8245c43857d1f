// Makes a layer from its plan. Says beforehand how much memory the layer takes.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CLIENT_EMULATOR_TRAINING_MAKE_LAYER_H_
#define SYSTOLE_CLIENT_EMULATOR_TRAINING_MAKE_LAYER_H_

#include <cstdint>
#include <memory>

#include "client/emulator/array/scratch_plan.h"
#include "client/emulator/model/model.h"
#include "client/emulator/training/layer.h"

namespace systole::emulator {

// Makes a layer for slices of at most `images` examples. `needs_d_in` is false if Backward() always
// gets a null d_in.
template <typename T>
std::unique_ptr<Layer<T>> MakeLayer(const LayerPlan& plan, int64_t images, bool needs_d_in,
                                    const LayerParameters<T>& parameters);

// Memory that MakeLayer's result holds for itself, in bytes.
template <typename T>
int64_t LayerBytes(const LayerPlan& plan, int64_t images, bool needs_d_in);

// Adds the layer's matrix products to the plan of its shard's scratch memory.
void PlanScratch(const LayerPlan& plan, bool needs_d_in, ScratchPlan& scratch);

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_TRAINING_MAKE_LAYER_H_
