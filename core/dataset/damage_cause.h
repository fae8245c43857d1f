// The kinds of damage for which examples are masked. Monitors count by these kinds, so the kinds
// never change. DamageLog::Entry says what exactly was wrong, and where.
//
// Thread-compatible.
#ifndef SYSTOLE_CORE_DATASET_DAMAGE_CAUSE_H_
#define SYSTOLE_CORE_DATASET_DAMAGE_CAUSE_H_

#include <array>
#include <cstddef>
#include <cstdint>

namespace systole {

enum class DamageCause : uint8_t {
  kChecksum,  // The record's bytes do not match their checksum.
  kRecord,    // There is no whole record, for example because a file was cut or a header is
              // damaged.
  kTooLarge,  // The record is larger than a limit.
  kFormat,    // The record's bytes are not of its format, such as tf.train.Example.
  kFeature,   // A feature is missing, or has another type or another number of values.
  kImage,     // An image cannot be decoded or transformed.
  kValue,     // A value other than an image cannot be decoded or transformed.
};
inline constexpr size_t kNumDamageCauses = 7;

// The number of masked examples for each DamageCause.
using MaskedByCause = std::array<int64_t, kNumDamageCauses>;

}  // namespace systole

#endif  // SYSTOLE_CORE_DATASET_DAMAGE_CAUSE_H_
