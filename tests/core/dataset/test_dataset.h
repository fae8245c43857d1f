// Small datasets in memory for tests of the pipeline and of the code above it.
//
// Thread-compatible.
#ifndef SYSTOLE_TESTS_CORE_DATASET_TEST_DATASET_H_
#define SYSTOLE_TESTS_CORE_DATASET_TEST_DATASET_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/dataset/dataset.h"
#include "core/example/example_builder.h"
#include "core/image/jpeg/jpeg_encoder.h"
#include "core/record/tfrecord/tfrecord_shard.h"
#include "core/status/check.h"
#include "core/storage/memory_source.h"
#include "google/protobuf/text_format.h"
#include "systole/v1/feed.pb.h"
#include "tests/core/record/tfrecord/shard_builder.h"
#include "tests/core/storage/gated_source.h"

namespace systole {

// A JPEG of a size and picture that depend on `number`.
inline std::string TestJpeg(int64_t number) {
  const int width = 40 + static_cast<int>(number % 7) * 5;
  const int height = 30 + static_cast<int>(number % 5) * 6;
  std::vector<uint8_t> pixels;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      pixels.push_back(static_cast<uint8_t>(x * 5 + number * 31));
      pixels.push_back(static_cast<uint8_t>(y * 7 + number * 17));
      pixels.push_back(static_cast<uint8_t>((x * y) / 8 + number));
    }
  }
  absl::StatusOr<std::string> jpeg = EncodeJpeg(pixels, width, height, 3, {.quality = 90});
  SYSTOLE_CHECK(jpeg.ok());
  return *jpeg;
}

// Record `number` of the test datasets: image (JPEG), raw (12 bytes), label (int64), pair (2
// int64s), weight (float), path (3 floats).
inline std::string TestRecord(int64_t number) {
  std::string raw;
  for (int i = 0; i < 12; ++i) raw.push_back(static_cast<char>(number * 12 + i));
  const auto weight = static_cast<float>(number) / 4;
  return ExampleBuilder()
      .AddBytes("image", TestJpeg(number))
      .AddBytes("raw", raw)
      .AddInt64s("label", {number % 5})
      .AddInt64s("pair", {number, -number})
      .AddFloats("weight", {weight})
      .AddFloats("path", {weight, weight + 1, weight + 2})
      .Serialize();
}

// The bytes of the shards of a dataset: `records_per_shard[i]` records in shard i.
inline std::vector<std::string> TestShards(const std::vector<int>& records_per_shard) {
  std::vector<std::string> shards;
  int64_t number = 0;
  for (const int records : records_per_shard) {
    ShardBuilder builder;
    for (int i = 0; i < records; ++i) builder.Add(TestRecord(number++));
    shards.push_back(builder.Build());
  }
  return shards;
}

inline std::shared_ptr<Dataset> OpenTestDataset(const std::vector<std::string>& shard_bytes,
                                                const std::string& name = "test") {
  std::vector<std::unique_ptr<const RecordSource>> shards;
  for (const std::string& bytes : shard_bytes) {
    absl::StatusOr<TfRecordShard> shard = TfRecordShard::Create(std::make_unique<MemorySource>(
        bytes, absl::StrCat("/data/shard-", shards.size(), ".tfrecord")));
    SYSTOLE_CHECK(shard.ok());
    shards.push_back(std::make_unique<TfRecordShard>(*std::move(shard)));
  }
  absl::StatusOr<std::shared_ptr<Dataset>> dataset = Dataset::Create(name, std::move(shards));
  SYSTOLE_CHECK(dataset.ok());
  return *dataset;
}

// Like OpenTestDataset(), with shards that are not on this machine. All reads go through `gate`.
inline std::shared_ptr<Dataset> OpenFarDataset(const std::vector<std::string>& shard_bytes,
                                               std::shared_ptr<Gate> gate,
                                               const std::string& name = "test") {
  std::vector<std::unique_ptr<const RecordSource>> shards;
  for (const std::string& bytes : shard_bytes) {
    absl::StatusOr<TfRecordShard> shard = TfRecordShard::Create(std::make_unique<GatedSource>(
        bytes, absl::StrCat("far://data/shard-", shards.size(), ".tfrecord"), gate,
        /*is_local=*/false));
    SYSTOLE_CHECK(shard.ok());
    shards.push_back(std::make_unique<TfRecordShard>(*std::move(shard)));
  }
  absl::StatusOr<std::shared_ptr<Dataset>> dataset = Dataset::Create(name, std::move(shards));
  SYSTOLE_CHECK(dataset.ok());
  return *dataset;
}

inline v1::FeedSpec SpecFromText(const std::string& text) {
  v1::FeedSpec spec;
  SYSTOLE_CHECK(google::protobuf::TextFormat::ParseFromString(text, &spec));
  return spec;
}

// Outputs of every kind from the records of TestRecord().
inline std::string AllOutputs() {
  return R"pb(
    outputs {
      name: "image"
      feature: "image"
      transforms { decode_jpeg {} }
      transforms { random_resized_crop { height: 16 width: 16 } }
      transforms { random_flip {} }
      transforms {
        normalize {
          mean: [ 1, 2, 3 ]
          stddev: 64
        }
      }
      dtype: BFLOAT16
    }
    outputs {
      name: "center"
      feature: "image"
      transforms { decode_jpeg {} }
      transforms { center_crop { height: 8 width: 8 fraction: 0.9 } }
      dtype: UINT8
      layout: HWCN
    }
    outputs {
      name: "whole"
      feature: "image"
      transforms { decode_jpeg { channels: 1 } }
      transforms { resize { height: 8 width: 6 } }
      dtype: FLOAT32
      layout: NCHW
    }
    outputs {
      name: "raw"
      feature: "raw"
      transforms { decode_raw {} }
      shape: 12
      dtype: UINT8
    }
    outputs { name: "label" feature: "label" dtype: INT32 }
    outputs { name: "pair" feature: "pair" shape: 2 dtype: INT64 }
    outputs { name: "weight" feature: "weight" dtype: FLOAT32 }
    outputs { name: "path" feature: "path" shape: 3 dtype: BFLOAT16 }
    outputs { name: "id" feature: "record_id" dtype: INT64 }
  )pb";
}

}  // namespace systole

#endif  // SYSTOLE_TESTS_CORE_DATASET_TEST_DATASET_H_
