// Checks the parameters of mixup and cutmix (v1::Mix), and makes their draws for an example.
// core/engine mixes the pixels and labels, because it has the partner, which is the other example.
//
// Thread-compatible value types.
#ifndef SYSTOLE_CORE_OPERATIONS_OPS_MIX_DRAWS_H_
#define SYSTOLE_CORE_OPERATIONS_OPS_MIX_DRAWS_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "core/image/window/crop.h"
#include "core/operations/ops/draws.h"
#include "systole/v1/feed.pb.h"

namespace systole {

// The number that keys the draws of v1::Mix. It is far from the numbers of transforms
// (OperationRow::draws), which count from 1. The bytes of feeds depend on it, so never change it.
inline constexpr uint32_t kMixPurpose = 1 << 10;

// The most examples of a group. One thread makes a group, so a larger group would delay other work.
inline constexpr int64_t kMaxMixGroup = 256;
// The largest alpha. With a larger alpha, every share would be about one half.
inline constexpr float kMaxMixAlpha = 1000;

struct MixDraw {
  enum class Kind {
    kNone,    // The example stays as it is.
    kMixup,   // Images become own_share * own + (1 - own_share) * partner.
    kCutmix,  // Images get the partner's pixels in `box`.
  };
  Kind kind = Kind::kNone;
  float own_share = 1;  // The share of the example's own labels, for both kinds. 0 to 1.
  CropRect box;         // kCutmix: not empty, inside the image.
};

class MixDraws {
 public:
  // For images of height x width pixels.
  //   InvalidArgument  a parameter of `mix` is out of range; the message names its field.
  static absl::StatusOr<MixDraws> Create(const v1::Mix& mix, int height, int width);

  // Draws the kind (UniformFloat), then lambda (SymmetricBeta), then for cutmix the row and the
  // column of the box's centre (UniformInt).
  MixDraw Of(const ExampleKey& example) const;

 private:
  MixDraws(const v1::Mix& mix, int height, int width);

  Draws draws_;
  float mixup_alpha_;
  float cutmix_alpha_;
  float mixup_below_;   // A draw below this number selects mixup.
  float cutmix_below_;  // A larger draw that is below this number selects cutmix.
  int height_;
  int width_;
};

// Writes the defaults into fields that are not set.
void WriteMixDefaults(v1::Mix& mix);

// Draws from Beta(alpha, alpha). Takes two words of `rng`, whatever alpha is. REQUIRES: alpha > 0.
float SymmetricBeta(float alpha, CounterRng& rng);

}  // namespace systole

#endif  // SYSTOLE_CORE_OPERATIONS_OPS_MIX_DRAWS_H_
