#include "client/emulator/array/numerics.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "client/emulator/array/onednn_gemm.h"

namespace systole::emulator {

absl::string_view NumericsName(Numerics numerics) {
  return numerics == Numerics::kFast ? "fast" : "exact";
}

absl::StatusOr<Numerics> ParseNumerics(absl::string_view name) {
  for (const Numerics numerics : {Numerics::kExact, Numerics::kFast}) {
    if (name == NumericsName(numerics)) return numerics;
  }
  return absl::InvalidArgumentError(absl::StrCat("--numerics '", name, "': want exact or fast"));
}

std::string MissingNumericsNote(Numerics numerics) {
  if (numerics == Numerics::kExact || OneDnnGemm::IsSupported()) return "";
#if defined(__x86_64__)
  constexpr absl::string_view kWhy = "this CPU has no bf16 products (AVX512_BF16)";
#else
  constexpr absl::string_view kWhy = "oneDNN has bf16 products for x86-64 only";
#endif
  return absl::StrCat("--numerics fast had the bits and the speed of 'exact', because ", kWhy);
}

}  // namespace systole::emulator
