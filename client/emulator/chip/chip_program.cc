#include "client/emulator/chip/chip_program.h"

#include "core/status/check.h"

namespace systole::emulator {

absl::string_view OpKindName(OpKind kind) {
  switch (kind) {
    case OpKind::kInfeed:
      return "infeed";
    case OpKind::kGemm:
      return "gemm";
    case OpKind::kVector:
      return "vector";
    case OpKind::kCoreSum:
      return "core-sum";
    case OpKind::kAllReduce:
      return "all-reduce";
    case OpKind::kUpdate:
      return "update";
  }
  SYSTOLE_CHECK(false);
  return "";
}

absl::string_view BoundName(Bound bound) {
  switch (bound) {
    case Bound::kMatrix:
      return "matrix";
    case Bound::kMemory:
      return "memory";
    case Bound::kVector:
      return "vector";
  }
  SYSTOLE_CHECK(false);
  return "";
}

}  // namespace systole::emulator
