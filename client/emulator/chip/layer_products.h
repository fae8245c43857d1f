// The matrix products of one layer. For a batch of B, [H,W,Ci] -> [H',W',Co], a window of kh x kw:
//   conv2d   forward          M = B*H'*W'   K = kh*kw*Ci   N = Co
//            weight gradient  M = kh*kw*Ci  K = B*H'*W'    N = Co, or the transposed product
//            input gradient   M = B*H*W     K = kh*kw*Co   N = Ci
//                             With stride s, no zeros are inserted. The input's places form s*s
//                             phases. Each phase is a product with only those weights that act on
//                             the places of the phase. (1x1 with stride 2: one phase has a product,
//                             and the gradient of the other three phases is zero.)
//   dense    like conv2d with a 1 x 1 window: M = B*positions, K = in, N = out
//   attention with P positions and heads of D channels. The products below are done for every
//            example and every head, and have M,K,N:
//            forward          Q*K^T: P,D,P    A*V: P,P,D
//            input gradient   of V: P,P,D     of A: P,D,P     of Q: P,P,D     of K: P,P,D
// Other layers have no products.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CLIENT_EMULATOR_CHIP_LAYER_PRODUCTS_H_
#define SYSTOLE_CLIENT_EMULATOR_CHIP_LAYER_PRODUCTS_H_

#include <cstdint>
#include <vector>

#include "client/emulator/array/cycle_model.h"
#include "client/emulator/model/model.h"

namespace systole::emulator {

struct Product {
  GemmShape gemm;
  int64_t repeats = 1;  // The number of products of this shape, on different operands.
};

struct LayerProducts {
  std::vector<Product> forward;
  std::vector<Product> input_gradient;
  std::vector<Product> weight_gradient;
};

// REQUIRES: 1 <= batch <= 2^20.
LayerProducts ProductsOf(const LayerPlan& layer, int64_t batch);

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_CHIP_LAYER_PRODUCTS_H_
