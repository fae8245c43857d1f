// Decides which layers run as one row, as a chip's compiler would. A row begins with a layer of
// matrix products, or with a layer that cannot join an earlier row. An element-wise layer after
// this layer joins the row if at least one of its inputs goes to no other layer.
//
// A row consists of passes. A pass streams its data through the memory once. If a row has products,
// its first pass is the products' epilogue. The epilogue works on the results as they leave the
// array, and moves no bytes of its own.
//   epilogue    bias, relu, gelu, add, dropout, batch norm's statistics
//   own pass    batch_norm's and layer_norm's scale and shift; a pool that follows an epilogue
//   joins       after an own pass, any element-wise layer or pool that opens no pass joins the
//               row's last pass
//
// Thread-safe: no state.
#ifndef SYSTOLE_CLIENT_EMULATOR_CHIP_FUSION_H_
#define SYSTOLE_CLIENT_EMULATOR_CHIP_FUSION_H_

#include <cstdint>
#include <vector>

#include "client/emulator/model/model.h"

namespace systole::emulator {

struct Pass {
  // Indices into Model::layers, in order. The layer that opened the pass is the first. In an
  // epilogue the layer of the products is the first.
  std::vector<int64_t> layers;
};

struct FusedRow {
  bool products = false;  // passes[0] is an epilogue.
  std::vector<Pass> passes;
};

// Every layer is in exactly one pass. In training, a batch norm needs its statistics before it can
// scale, so it opens a pass. In inference, a batch norm is only a scale and a shift, and joins the
// row's last pass.
std::vector<FusedRow> FuseLayers(const Model& model, bool training);

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_CHIP_FUSION_H_
