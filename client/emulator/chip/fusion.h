// Which layers a compiler for such a chip would run as one. A row begins with a layer of products,
// or with one that cannot ride on another; what follows it element by element joins it, as long as
// nobody else takes what lies between.
//
// Inside a row, a pass is one stream through the memory. The first pass of a row of products is
// their epilogue: it works on the results while they leave the array and costs no bytes of its own.
//   epilogue    bias, relu, gelu, add, dropout, batch norm's statistics
//   own pass    batch_norm's and layer_norm's scale and shift; pools, unless a pass is open already
//   joins       whatever follows a pass element by element, and a pool
//
// Thread-safe: no state.
#ifndef SYSTOLE_CLIENT_EMULATOR_CHIP_FUSION_H_
#define SYSTOLE_CLIENT_EMULATOR_CHIP_FUSION_H_

#include <cstdint>
#include <vector>

#include "client/emulator/model/model.h"

namespace systole::emulator {

struct Pass {
  // Places in Model::layers, in order. The layer that opened the pass is the first; an epilogue's
  // first is the layer of the products.
  std::vector<int64_t> layers;
};

struct FusedRow {
  bool products = false;  // passes[0] is an epilogue.
  std::vector<Pass> passes;
};

// Every layer stands in exactly one pass. `training`: batch norm needs its statistics before it can
// scale, so it opens a pass; otherwise it is a scale and a shift like any other.
std::vector<FusedRow> FuseLayers(const Model& model, bool training);

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_CHIP_FUSION_H_
