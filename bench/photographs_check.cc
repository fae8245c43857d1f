// Compares the photographs that benchmarks make with real ones.
//
//   photographs_check FOLDER   FOLDER has JPEGs of about the same size and quality.
//                              photographs_check.sh makes such a folder.
//
// libjpeg-turbo decodes both kinds in turns. The program prints their mean bytes and times. It
// fails if the times per image, or the times per byte, differ by more than 15 %.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "bench/bare_decoder.h"
#include "bench/photographs.h"
#include "bench/rounds.h"
#include "core/image/jpeg/jpeg_decoder.h"

namespace systole::bench {
namespace {

constexpr double kTolerance = 0.15;
constexpr int kMade = 64;

struct Photograph {
  std::string jpeg;
  CropRect whole;
};

struct Photographs {
  std::vector<Photograph> images;
  double mean_bytes = 0;

  void Add(std::string jpeg, int height, int width) {
    const double bytes = static_cast<double>(jpeg.size());
    images.push_back({std::move(jpeg), WholeImage(height, width)});
    mean_bytes += (bytes - mean_bytes) / static_cast<double>(images.size());
  }
};

Photographs Make() {
  Photographs made;
  for (int seed = 0; seed < kMade; ++seed) {
    made.Add(MakePhotograph(seed), kPhotographHeight, kPhotographWidth);
  }
  return made;
}

// The JPEGs of a folder; none if it cannot be read.
Photographs Read(const char* folder) {
  Photographs real;
  absl::StatusOr<JpegDecoder> decoder = JpegDecoder::Create();
  if (!decoder.ok()) return real;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    std::ifstream file(entry.path(), std::ios::binary);
    std::string jpeg(std::istreambuf_iterator<char>(file), {});
    const absl::StatusOr<ImageInfo> info = decoder->ReadHeader(jpeg);
    if (!info.ok()) {
      std::fprintf(stderr, "%s: %s\n", entry.path().c_str(), info.status().ToString().c_str());
      continue;
    }
    real.Add(std::move(jpeg), info->height, info->width);
  }
  return real;
}

// Decodes the photographs for about half a second.
Sample Decode(BareDecoder& bare, const Photographs& photographs) {
  const auto count = static_cast<int64_t>(photographs.images.size());
  const int64_t passes = std::max<int64_t>(1, 640 / count);
  return Measure(static_cast<double>(passes * count), [&] {
    for (int64_t pass = 0; pass < passes; ++pass) {
      for (const Photograph& image : photographs.images) bare.Decode(image.jpeg, image.whole);
    }
  });
}

double MedianSeconds(const std::vector<Sample>& samples) {
  std::vector<double> seconds;
  for (const Sample& sample : samples) seconds.push_back(sample.seconds / sample.amount);
  return Median(seconds);
}

void Print(const char* name, const Photographs& photographs, double seconds) {
  std::printf("%-5s %4zu photographs, mean %6.0f bytes, decoded in %4.0f us each, %.2f ns a byte\n",
              name, photographs.images.size(), photographs.mean_bytes, seconds * 1e6,
              seconds * 1e9 / photographs.mean_bytes);
}

int Main(int argc, char** argv) {
  const Photographs real = argc == 2 ? Read(argv[1]) : Photographs();
  if (real.images.empty()) {
    std::fprintf(stderr, "usage: photographs_check FOLDER, a folder of JPEGs\n");
    return 2;
  }
  const Photographs made = Make();
  BareDecoder bare;
  const auto samples =
      TakeTurns({[&] { return Decode(bare, made); }, [&] { return Decode(bare, real); }});
  const double made_seconds = MedianSeconds(samples[0]);
  const double real_seconds = MedianSeconds(samples[1]);
  Print("made", made, made_seconds);
  Print("real", real, real_seconds);
  const double by_image = made_seconds / real_seconds;
  const double by_byte = by_image * real.mean_bytes / made.mean_bytes;
  std::printf("made / real: %.2f by image, %.2f by byte\n", by_image, by_byte);
  if (std::abs(by_image - 1) <= kTolerance && std::abs(by_byte - 1) <= kTolerance) return 0;
  std::fprintf(stderr, "both ratios must be within %.2f of 1\n", kTolerance);
  return 1;
}

}  // namespace
}  // namespace systole::bench

int main(int argc, char** argv) { return systole::bench::Main(argc, argv); }
