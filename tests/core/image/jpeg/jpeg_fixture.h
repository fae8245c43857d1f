// JPEGs of every kind for tests, and an oracle that decodes the whole image with libjpeg in the
// plainest way. It does not depend on core/image. libjpeg errors end the test program.
//
// Thread-safe: no state.
#ifndef SYSTOLE_TESTS_CORE_IMAGE_JPEG_JPEG_FIXTURE_H_
#define SYSTOLE_TESTS_CORE_IMAGE_JPEG_JPEG_FIXTURE_H_

#include <cstdint>
#include <string>
#include <vector>

namespace systole {

enum class JpegColour { kGrey, kRgb, kYcc, kCmyk, kCmykNoAdobe, kYcck };

struct JpegKind {
  const char* name;
  JpegColour colour = JpegColour::kYcc;
  // Sampling factors of the first component. The other components have 1x1.
  int h = 1;
  int v = 1;
  bool progressive = false;
  // A progressive image whose low bits never arrive, so libjpeg smooths its block borders.
  bool coarse = false;
  // One scan per component instead of one for all, still sequential.
  bool separate_scans = false;
  int restart_interval = 0;  // In MCUs.
  bool arithmetic = false;
};

// JPEGs with every sampling and every colour model that the decoder must handle.
const std::vector<JpegKind>& AllJpegKinds();

// Smooth colours with edges and noise, so that neighbouring pixels differ. The shape is [height,
// width, channels].
std::vector<uint8_t> TestPixels(int width, int height, int channels, uint32_t seed);

// A JPEG of TestPixels.
std::string MakeJpeg(const JpegKind& kind, int width, int height, uint32_t seed);

struct Decoded {
  int width;
  int height;
  int channels;  // 1, 3, or 4 for CMYK.
  bool adobe;    // saw_Adobe_marker.
  std::vector<uint8_t> pixels;
};

struct OracleOptions {
  bool grey = false;  // Not possible for CMYK.
  bool ifast = false;
  bool fancy_upsampling = true;
  int divisor = 1;  // The image is decoded at 1 / divisor.
};

// The whole image as libjpeg gives it: grey, RGB or CMYK.
Decoded DecodeWhole(const std::string& jpeg, const OracleOptions& options);

// The result of plain libjpeg for an image that may be damaged.
struct BareOutcome {
  bool error = false;           // There are no pixels after an error.
  int64_t warnings = 0;         // libjpeg went on after these.
  std::vector<uint8_t> pixels;  // Grey or RGB, all rows.
};

// Reads all rows and, with `finish`, the bytes after them up to the end of the image. Not for CMYK.
BareOutcome DecodeDamaged(const std::string& jpeg, bool finish);

// Returns a rectangle of interleaved pixels.
std::vector<uint8_t> Cut(const std::vector<uint8_t>& pixels, int image_width, int channels, int y,
                         int x, int height, int width);

}  // namespace systole

#endif  // SYSTOLE_TESTS_CORE_IMAGE_JPEG_JPEG_FIXTURE_H_
