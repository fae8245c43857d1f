// Undoes the filters of a PNG's rows. The result does not depend on the instruction set.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_IMAGE_PNG_PNG_UNFILTER_H_
#define SYSTOLE_CORE_IMAGE_PNG_PNG_UNFILTER_H_

#include <cstddef>
#include <cstdint>

namespace systole {

// Up to this many bytes after the last row may be read.
inline constexpr size_t kUnfilterPadding = 3;

// Undoes the filters of `count` rows in place. A row is one byte, the number of its filter, and
// then `row_bytes` bytes of pixels. The `row_bytes` bytes before `rows` are the pixels of the row
// above. For the first row of an image, these bytes are 0. False if a filter's number is not known.
// REQUIRES: `row_bytes` is a multiple of `pixel_bytes` and not 0.
bool UnfilterRows(uint8_t* rows, size_t count, size_t row_bytes, size_t pixel_bytes);

}  // namespace systole

#endif  // SYSTOLE_CORE_IMAGE_PNG_PNG_UNFILTER_H_
