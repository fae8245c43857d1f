// A small tree of JPEGs in folders of classes, and shards packed from it, for tests.
//
// Thread-compatible.
#ifndef SYSTOLE_TESTS_CLIENT_CLI_IMAGE_FOLDER_H_
#define SYSTOLE_TESTS_CLIENT_CLI_IMAGE_FOLDER_H_

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/shards/packer.h"
#include "core/image/jpeg/jpeg_encoder.h"
#include "core/record/tfrecord/record_reader.h"
#include "core/status/check.h"
#include "core/storage/local/file_source.h"
#include "tests/core/storage/temp_folder.h"

namespace systole {

// A JPEG of a smooth pattern that depends on `key`.
inline std::string TestJpeg(int width, int height, int channels, int key,
                            JpegEncoderOptions options = {}) {
  std::vector<uint8_t> pixels;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      for (int c = 0; c < channels; ++c) {
        pixels.push_back(static_cast<uint8_t>(key * 37 + x * 2 + y * 3 + c * 40));
      }
    }
  }
  const auto jpeg = EncodeJpeg(pixels, width, height, channels, options);
  SYSTOLE_CHECK(jpeg.ok());
  return *jpeg;
}

// Writes `per_class` images of 40 x 30 pixels for each class. Image k of a class has key k.
inline void FillImageFolder(const TempFolder& folder, const std::vector<std::string>& classes,
                            int per_class) {
  for (const std::string& name : classes) {
    std::filesystem::create_directory(folder / name);
    for (int k = 0; k < per_class; ++k) {
      folder.Write(absl::StrCat(name, "/", k, ".jpg"), TestJpeg(40, 30, 3, k));
    }
  }
}

inline absl::StatusOr<PackReport> PackQuietly(const std::string& dir, const std::string& prefix,
                                              const PackOptions& options) {
  return Pack(dir, prefix, options,
              {.begins = [](absl::string_view, int64_t) {}, .done = [](int64_t) { return true; }});
}

// Packs the images in `dir`, and stops in the pass named `in` once `after` files are done.
inline absl::Status PackAndStop(const std::string& dir, const std::string& prefix,
                                const std::string& in, int64_t after) {
  std::string pass;
  std::atomic<int64_t> done = 0;
  return Pack(dir, prefix, {.plan = {.shards = 4}, .threads = 1},
              {.begins =
                   [&](absl::string_view name, int64_t) {
                     pass = std::string(name);
                     done = 0;
                   },
               .done = [&](int64_t files) { return (done += files) < after || pass != in; }})
      .status();
}

// The payloads of a shard.
inline std::vector<std::string> ReadPayloads(const std::string& path) {
  std::vector<std::string> payloads;
  const auto source = FileSource::Open(path);
  SYSTOLE_CHECK(source.ok());
  auto reader = RecordReader::Create(**source);
  SYSTOLE_CHECK(reader.ok());
  while (true) {
    const auto payload = reader->Next();
    SYSTOLE_CHECK(payload.ok());
    if (!payload->has_value()) return payloads;
    payloads.emplace_back(**payload);
  }
}

}  // namespace systole

#endif  // SYSTOLE_TESTS_CLIENT_CLI_IMAGE_FOLDER_H_
