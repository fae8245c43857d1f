#include "tests/core/image/jpeg/other_libjpeg.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>

// Needs <cstdio>.
#include "jpeglib.h"
// After jpeglib.h:
#include "jpegint.h"

namespace systole {

OtherLibjpeg other_libjpeg = OtherLibjpeg::kOtherTables;

namespace {

boolean (*real_decode_mcu)(j_decompress_ptr, JBLOCKROW*) = nullptr;

boolean DecodeMcu(j_decompress_ptr cinfo, JBLOCKROW* blocks) {
  return real_decode_mcu(cinfo, blocks);
}

// Changes one symbol: a run of 6 zeros before a value of one bit becomes a run of 5. libjpeg has
// already made its lookup tables, so it does not read short codes from this table again.
void ChangeOneSymbol(JHUFF_TBL& table) {
  std::replace(std::begin(table.huffval), std::end(table.huffval), UINT8{0x61}, UINT8{0x51});
}

}  // namespace
}  // namespace systole

// This replaces libjpeg's own function.
extern "C" __attribute__((visibility("default"))) boolean jpeg_start_decompress(
    j_decompress_ptr cinfo) {
  using systole::OtherLibjpeg;
  static const auto real =
      reinterpret_cast<boolean (*)(j_decompress_ptr)>(dlsym(RTLD_NEXT, "jpeg_start_decompress"));
  if (real == nullptr) std::abort();
  const boolean started = real(cinfo);
  // An image of several scans has other tables for each scan.
  if (cinfo->progressive_mode || cinfo->arith_code || jpeg_has_multiple_scans(cinfo)) {
    return started;
  }
  if (systole::other_libjpeg == OtherLibjpeg::kOtherTables) {
    systole::ChangeOneSymbol(*cinfo->ac_huff_tbl_ptrs[0]);
  }
  if (systole::other_libjpeg == OtherLibjpeg::kOtherEntropy) {
    systole::real_decode_mcu = cinfo->entropy->decode_mcu;
    cinfo->entropy->decode_mcu = systole::DecodeMcu;
  }
  return started;
}
