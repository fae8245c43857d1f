// Makes files that resemble photographs. They show only the texture of client/texture. In this
// texture a JPEG decoder finds about as many coefficients as in real photographs. README.md says
// how they were compared with real ones.
//
// Thread-safe: no state.
#ifndef SYSTOLE_BENCH_PHOTOGRAPHS_H_
#define SYSTOLE_BENCH_PHOTOGRAPHS_H_

#include <cstdint>
#include <string>
#include <vector>

namespace systole::bench {

constexpr int kPhotographWidth = 500;
constexpr int kPhotographHeight = 375;

// Makes a baseline JPEG in colour, 4:2:0, of the size above. The same seed gives the same file. The
// mean size of such files is between 80 and 110 kB.
std::string MakePhotograph(uint64_t seed);
// Makes a JPEG of another size and quality.
std::string MakePhotograph(uint64_t seed, int width, int height, int quality);

// The pixels of such a photograph before it is encoded: [height, width, 3].
std::vector<uint8_t> PhotographPixels(uint64_t seed, int width, int height);

// The pixels of PhotographPixels() as a PNG. As in libpng for photographs, each row has the filter
// whose result has the least sum of absolute values, and zlib packs the rows at its default level.
std::string MakePngPhotograph(uint64_t seed, int width, int height);

}  // namespace systole::bench

#endif  // SYSTOLE_BENCH_PHOTOGRAPHS_H_
