// The list of the operation table's rows. Only the table and the operations' own .cc files use it.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_OPERATIONS_OPS_OPERATION_ROWS_H_
#define SYSTOLE_CORE_OPERATIONS_OPS_OPERATION_ROWS_H_

#include "core/operations/ops/operation_row.h"

namespace systole {

// One line for each operation. `OperationRow NAME()` is defined in the operation's .cc.
#define SYSTOLE_OPERATIONS(ROW)   \
  ROW(DecodeJpegRow)              \
  ROW(DecodeRawRow)               \
  ROW(RandomResizedCropRow)       \
  ROW(CenterCropRow)              \
  ROW(RandomCropRow)              \
  ROW(ResizeRow)                  \
  ROW(RandomFlipRow)              \
  ROW(BrightnessRow)              \
  ROW(RoundToUint8Row)            \
  ROW(NormalizeRow)               \
  ROW(ResizeWithPadRow)           \
  ROW(CropOrPadRow)               \
  ROW(CentralCropRow)             \
  ROW(CropRow)                    \
  ROW(PadRow)                     \
  ROW(FlipLeftRightRow)           \
  ROW(FlipUpDownRow)              \
  ROW(RandomFlipUpDownRow)        \
  ROW(TransposeRow)               \
  ROW(Rot90Row)                   \
  ROW(ContrastRow)                \
  ROW(SaturationRow)              \
  ROW(HueRow)                     \
  ROW(GammaRow)                   \
  ROW(GrayscaleRow)               \
  ROW(PerImageStandardizationRow) \
  ROW(CastRow)                    \
  ROW(ClipByValueRow)             \
  ROW(RandomErasingRow)           \
  ROW(OneHotRow)                  \
  ROW(LabelMapRow)                \
  ROW(TrivialAugmentRow)          \
  ROW(DecodePngRow)               \
  ROW(DecodeImageRow)

#define SYSTOLE_DECLARE_ROW(NAME) OperationRow NAME();
SYSTOLE_OPERATIONS(SYSTOLE_DECLARE_ROW)
#undef SYSTOLE_DECLARE_ROW

}  // namespace systole

#endif  // SYSTOLE_CORE_OPERATIONS_OPS_OPERATION_ROWS_H_
