// Photograph-like JPEGs: nothing but the texture of client/texture, so that a decoder finds about
// as many coefficients in them as in real ones. README.md says how the two were compared.
//
// Thread-safe: no state.
#ifndef SYSTOLE_BENCH_PHOTOGRAPHS_H_
#define SYSTOLE_BENCH_PHOTOGRAPHS_H_

#include <cstdint>
#include <string>

namespace systole::bench {

constexpr int kPhotographWidth = 500;
constexpr int kPhotographHeight = 375;

// A baseline JPEG in colour, 4:2:0, the same for the same seed and size. Those of the size above
// have 80 to 110 kB on average.
std::string MakePhotograph(uint64_t seed);
// Makes a JPEG of another size and quality.
std::string MakePhotograph(uint64_t seed, int width, int height, int quality);

}  // namespace systole::bench

#endif  // SYSTOLE_BENCH_PHOTOGRAPHS_H_
