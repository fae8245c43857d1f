// Makes libjpeg look like a release with other internals, in a program that links this file or
// preloads it. For tests.
//
// Not thread-safe: change `other_libjpeg` only while no image is decoded.
#ifndef SYSTOLE_TESTS_CORE_IMAGE_JPEG_OTHER_LIBJPEG_H_
#define SYSTOLE_TESTS_CORE_IMAGE_JPEG_OTHER_LIBJPEG_H_

namespace systole {

enum class OtherLibjpeg {
  kNone,
  // Huffman tables change once decoding has begun. A decoder that reads the changed tables gets
  // wrong pixels, without an error.
  kOtherTables,
  // The function pointers in `entropy` do not point into libjpeg's code.
  kOtherEntropy,
};

// A process starts with kOtherTables.
extern OtherLibjpeg other_libjpeg;

}  // namespace systole

#endif  // SYSTOLE_TESTS_CORE_IMAGE_JPEG_OTHER_LIBJPEG_H_
