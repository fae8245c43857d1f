// Image files in class folders, and the shard that they form, for tests.
//
// Thread-compatible.
#ifndef SYSTOLE_TESTS_CORE_RECORD_IMAGES_IMAGE_FILES_H_
#define SYSTOLE_TESTS_CORE_RECORD_IMAGES_IMAGE_FILES_H_

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "core/image/jpeg/jpeg_encoder.h"
#include "core/memory/aligned_buffer.h"
#include "core/record/shard_formats.h"
#include "core/record/source/record_source.h"
#include "core/storage/stores/list_shards.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/image/png/png_builder.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/status_matchers.h"

namespace systole {

inline std::string Jpeg(int key, int channels = 3) {
  const std::vector<uint8_t> pixels(static_cast<size_t>(12 * 8 * channels),
                                    static_cast<uint8_t>(key * 20));
  return *EncodeJpeg(pixels, 12, 8, channels, {.quality = 90});
}

inline std::string Png(int channels) {
  return PngOf(std::string(static_cast<size_t>(5 * 4 * channels), 'p'), 5, 4, channels);
}

// The shard of the images that `pattern` matches.
inline absl::StatusOr<std::unique_ptr<RecordSource>> Open(const std::string& pattern,
                                                          const ShardOptions& options = {}) {
  const auto names = ListShards({pattern});
  EXPECT_THAT(names, IsOk());
  const auto shards = GroupShards(*names);
  EXPECT_THAT(shards, IsOk());
  EXPECT_EQ(shards->size(), 1u);
  return OpenShard(shards->front(), options);
}

// All records, or the messages of their errors.
inline std::vector<std::string> Read(const RecordSource& shard) {
  std::vector<std::string> records;
  AlignedBuffer scratch;
  for (int64_t i = 0; i < shard.num_records(); ++i) {
    const auto record = shard.ReadRecord(i, scratch);
    records.push_back(record.ok() ? std::string(*record) : std::string(record.status().message()));
  }
  return records;
}

// Four images in two classes: a/1.jpg, a/2.jpg (grey), b/1.png, b/2.PNG (grey).
class ImageFilesTest : public testing::Test {
 protected:
  ImageFilesTest() {
    std::filesystem::create_directories(folder_ / "a");
    std::filesystem::create_directories(folder_ / "b");
    folder_.Write("a/1.jpg", Jpeg(1));
    folder_.Write("a/2.jpg", Jpeg(2, 1));
    folder_.Write("b/1.png", Png(3));
    folder_.Write("b/2.PNG", Png(1));
  }

  std::unique_ptr<RecordSource> MustOpenAll(const ShardOptions& options = {}) const {
    auto shard = Open(folder_ / "*/*", options);
    EXPECT_THAT(shard, IsOk());
    return *std::move(shard);
  }

  // Writes other bytes into a file without a change of its size or time.
  void ChangeUnnoticed(const std::string& name) const {
    const auto time = std::filesystem::last_write_time(folder_ / name);
    std::string bytes = ReadWholeFile(folder_ / name);
    bytes[bytes.size() / 2] ^= 1;
    folder_.Write(name, bytes);
    std::filesystem::last_write_time(folder_ / name, time);
  }

  const TempFolder folder_;
};

}  // namespace systole

#endif  // SYSTOLE_TESTS_CORE_RECORD_IMAGES_IMAGE_FILES_H_
