// Makes libjpeg look like a release with other internals, in the program that this is linked into
// or preloaded for. For tests.
//
// Not thread-safe: changed while nothing is decoded.
#ifndef SYSTOLE_TESTS_CORE_IMAGE_JPEG_OTHER_LIBJPEG_H_
#define SYSTOLE_TESTS_CORE_IMAGE_JPEG_OTHER_LIBJPEG_H_

namespace systole {

enum class OtherLibjpeg {
  kNone,
  // Once decoding has begun, Huffman tables are not what they were: who still reads them gets wrong
  // pixels, without an error.
  kOtherTables,
  // The functions of `entropy` are not where libjpeg's code is.
  kOtherEntropy,
};

// kOtherTables from the process's start on.
extern OtherLibjpeg other_libjpeg;

}  // namespace systole

#endif  // SYSTOLE_TESTS_CORE_IMAGE_JPEG_OTHER_LIBJPEG_H_
