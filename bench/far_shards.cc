#include "bench/far_shards.h"

#include <chrono>
#include <cstdint>
#include <filesystem>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "bench/corpora.h"
#include "core/plan/read_blocks.h"
#include "core/record/source/record_source.h"
#include "core/record/source/shard_format.h"
#include "core/status/check.h"
#include "core/storage/byte_source.h"

namespace systole::bench {
namespace {

constexpr ObjectServerLink kLink = {.latency = std::chrono::milliseconds(20),
                                    .bytes_per_second = 400'000'000};
constexpr int64_t kBatch = 64;
// A block has 4.2 MB, like the blocks that ReadBlocks (core/plan/read_blocks.h) makes without
// shuffling. A window has 16 blocks: 67 MB, a quarter of the read budget. ProposeWindow() proposes
// this size of the window, too.
constexpr int64_t kBlockRecords = 41;
constexpr int64_t kWindowRecords = 16 * kBlockRecords;

std::shared_ptr<const FeedPlan> MakePlan(const std::shared_ptr<Dataset>& dataset,
                                         v1::Shuffle::Mode mode, Work work) {
  v1::FeedSpec spec;
  spec.set_dataset("far");
  spec.set_seed(7);
  spec.mutable_shuffle()->set_mode(mode);
  if (mode == v1::Shuffle::WINDOW) {
    spec.mutable_shuffle()->set_block_records(kBlockRecords);
    spec.mutable_shuffle()->set_window_records(kWindowRecords);
  }
  spec.set_global_batch(kBatch);
  v1::Output& output = *spec.add_outputs();
  output.set_dtype(v1::UINT8);
  if (work == Work::kDecode) {
    output.set_name("image");
    output.set_feature("image");
    output.add_transforms()->mutable_decode_jpeg();
    v1::RandomResizedCrop& crop = *output.add_transforms()->mutable_random_resized_crop();
    crop.set_height(224);
    crop.set_width(224);
  } else {
    output.set_name("blob");
    output.set_feature("blob");
    output.add_shape(kBlobBytes);
    output.add_transforms()->mutable_decode_raw();
  }
  absl::StatusOr<std::shared_ptr<const FeedPlan>> plan = FeedPlan::Create(spec, dataset);
  SYSTOLE_CHECK(plan.ok());
  return *plan;
}

std::shared_ptr<Dataset> Open(absl::Span<const std::string> names, const ShardOptions& options) {
  absl::StatusOr<std::shared_ptr<Dataset>> dataset = Dataset::Open("far", names, options);
  SYSTOLE_CHECK(dataset.ok());
  return *dataset;
}

}  // namespace

ObjectServer& TheServer() {
  static ObjectServer server(CorporaFolder(), kLink);
  return server;
}

FarShards::FarShards(Work work)
    : work_(work), paths_(work == Work::kDecode ? PhotographShards() : BlobShards()) {
  OpenFar();
  near_ = Open(paths_, {});
}

void FarShards::OpenFar() {
  std::vector<std::string> urls;
  ++openings_;
  for (const std::string& path : paths_) {
    urls.push_back(absl::StrCat(TheServer().Url(path), "?opening=", openings_));
  }
  far_ = Open(urls, {.index_dir = indexes_.path()});
}

std::shared_ptr<const FeedPlan> FarShards::Far(v1::Shuffle::Mode mode) const {
  return MakePlan(far_, mode, work_);
}

std::shared_ptr<const FeedPlan> FarShards::Near(v1::Shuffle::Mode mode) const {
  return MakePlan(near_, mode, work_);
}

double FarShards::bytes() const {
  double bytes = 0;
  for (const std::string& path : paths_) {
    bytes += static_cast<double>(std::filesystem::file_size(path));
  }
  return bytes;
}

std::vector<FarBlock> FarShards::Blocks() const {
  const std::shared_ptr<const FeedPlan> plan = Far(v1::Shuffle::NONE);
  const ReadBlocks blocks(plan->order(), /*keeps_all=*/false);
  std::vector<FarBlock> all;
  for (int64_t record = 0; record < far_->num_records(); record += all.back().records) {
    const ShardPlace place = far_->map().Find(record);
    const auto shard = static_cast<size_t>(place.shard);
    const ReadBlock block = blocks.BlocksOf(*far_->shards()[shard], place.index, record).front();
    all.push_back({.shard = shard,
                   .offset = block.offset,
                   .size = block.size,
                   .records = block.num_records()});
  }
  return all;
}

std::vector<FetchRange> FarShards::Ranges() const {
  std::vector<FetchRange> ranges;
  for (const FarBlock& block : Blocks()) {
    ranges.push_back({.url = TheServer().Url(paths_[block.shard]),
                      .offset = static_cast<int64_t>(block.offset),
                      .size = static_cast<int64_t>(block.size)});
  }
  return ranges;
}

BlockWant FarShards::WantOf(const FarBlock& block) const {
  const ByteSource* const source = far_->shards()[block.shard]->far_bytes();
  return {.uses = {{.range = {.source = source, .offset = block.offset, .size = block.size},
                    .records = block.records,
                    .records_in_block = block.records}},
          .feed = 1,
          .dataset = 1,
          .owner = far_};
}

}  // namespace systole::bench
