#include "client/emulator/training/make_layer.h"

#include "client/emulator/training/add_layer.h"
#include "client/emulator/training/batch_norm_layer.h"
#include "client/emulator/training/dropout_layer.h"
#include "client/emulator/training/linear_layer.h"
#include "client/emulator/training/pool_layer.h"
#include "core/status/check.h"

namespace systole::emulator {

template <typename T>
std::unique_ptr<Layer<T>> MakeLayer(const LayerPlan& plan, int64_t images, bool needs_d_in,
                                    const LayerParameters<T>& parameters) {
  switch (plan.kind) {
    case LayerKind::kConv2d:
    case LayerKind::kDense:
      return std::make_unique<LinearLayer<T>>(plan, images, needs_d_in, parameters);
    case LayerKind::kBatchNorm:
      return std::make_unique<BatchNormLayer<T>>(plan, parameters);
    case LayerKind::kRelu:
      return std::make_unique<ReluLayer<T>>(plan);
    case LayerKind::kMaxPool:
    case LayerKind::kAveragePool:
      return std::make_unique<PoolLayer<T>>(plan, images);
    case LayerKind::kAdd:
      return std::make_unique<AddLayer<T>>(plan);
    case LayerKind::kDropout:
      return std::make_unique<DropoutLayer<T>>(plan);
    case LayerKind::kLayerNorm:
    case LayerKind::kGelu:
    case LayerKind::kAttention:
      break;
  }
  SYSTOLE_CHECK(false);  // Trainer::Create refuses these.
}

template <typename T>
int64_t LayerBytes(const LayerPlan& plan, int64_t images, bool needs_d_in) {
  switch (plan.kind) {
    case LayerKind::kConv2d:
    case LayerKind::kDense:
      return LinearLayer<T>::Bytes(plan, images, needs_d_in);
    case LayerKind::kMaxPool:
    case LayerKind::kAveragePool:
      return PoolLayer<T>::Bytes(plan, images);
    case LayerKind::kBatchNorm:
    case LayerKind::kRelu:
    case LayerKind::kAdd:
    case LayerKind::kDropout:
    case LayerKind::kLayerNorm:
    case LayerKind::kGelu:
    case LayerKind::kAttention:
      break;
  }
  return 0;
}

void PlanScratch(const LayerPlan& plan, bool needs_d_in, ScratchPlan& scratch) {
  if (plan.kind != LayerKind::kConv2d && plan.kind != LayerKind::kDense) return;
  LinearLayer<float>::PlanScratch(plan, needs_d_in, scratch);
}

template std::unique_ptr<Layer<float>> MakeLayer(const LayerPlan&, int64_t, bool,
                                                 const LayerParameters<float>&);
template std::unique_ptr<Layer<double>> MakeLayer(const LayerPlan&, int64_t, bool,
                                                  const LayerParameters<double>&);
template int64_t LayerBytes<float>(const LayerPlan&, int64_t, bool);
template int64_t LayerBytes<double>(const LayerPlan&, int64_t, bool);

}  // namespace systole::emulator
