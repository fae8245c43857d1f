#include "tests/system/kinds_of_feed.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "client/step/step.h"
#include "core/batch/slice_layout.h"
#include "core/record/arrays/array_source.h"
#include "core/record/source/record_source.h"
#include "core/status/check.h"
#include "core/textproto/message_text.h"
#include "gtest/gtest.h"
#include "tests/core/record/tfrecord/shard_builder.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

constexpr int kImageHeight = 4;

}  // namespace

RowsOfArrays::RowsOfArrays(int rows, int image_width) : rows_(rows), image_width_(image_width) {
  const int row_bytes = kImageHeight * image_width * 3;
  for (int row = 0; row < rows; ++row) {
    labels_.push_back(row % 8);
    for (int i = 0; i < row_bytes; ++i) {
      images_.push_back(static_cast<uint8_t>(row * 31 + i * 7 + i / 251));
    }
  }
  auto table = ArrayTable::Create({{.name = "image",
                                    .dtype = DType::kUint8,
                                    .row_shape = {kImageHeight, image_width, 3},
                                    .data = reinterpret_cast<const char*>(images_.data()),
                                    .stride_bytes = row_bytes},
                                   {.name = "label",
                                    .dtype = DType::kInt64,
                                    .data = reinterpret_cast<const char*>(labels_.data()),
                                    .stride_bytes = sizeof(int64_t)}},
                                  rows, /*owner=*/nullptr, /*threads=*/1);
  SYSTOLE_CHECK(table.ok());
  table_ = *std::move(table);
}

std::shared_ptr<const Dataset> RowsOfArrays::InMemory(int members) const {
  std::vector<std::unique_ptr<const RecordSource>> shards;
  shards.push_back(std::make_unique<ArraySource>(table_));
  absl::StatusOr<std::shared_ptr<Dataset>> one = Dataset::Create("rows", std::move(shards));
  SYSTOLE_CHECK(one.ok());
  if (members == 1) return *std::move(one);
  absl::StatusOr<std::shared_ptr<Dataset>> joined = Dataset::Join(
      std::vector<std::shared_ptr<const Dataset>>(static_cast<size_t>(members), *one));
  SYSTOLE_CHECK(joined.ok());
  return *std::move(joined);
}

std::string RowsOfArrays::Shard() const {
  ShardBuilder shard;
  for (int64_t row = 0; row < rows_; ++row) shard.Add(table_->RecordOf(row));
  return shard.Build();
}

std::string KindOfFeed::SpecText(const RowsOfArrays& rows, const FeedCut& cut) const {
  std::string text =
      absl::StrCat(members, " seed: 3 epochs: 0 global_batch: ", cut.global_batch,
                   " num_cores: ", cut.num_cores, " tail: ", pads ? "PAD" : "DROP",
                   " outputs { name: 'image' feature: 'image' transforms { decode_raw {} } "
                   "transforms { random_flip {} } dtype: UINT8 shape: [",
                   kImageHeight, ", ", rows.image_width(),
                   ", 3] } outputs { name: 'label' feature: 'label' } "
                   "outputs { name: 'id' feature: 'record_id' }");
  for (const auto& [example, weights] : changes) {
    // A feed that pads begins a new step with each epoch. All other feeds have full steps only.
    const int64_t in_epoch = pads ? example % num_records : example;
    if (in_epoch % cut.global_batch != 0) {
      absl::StrAppend(&text, " weights { from_example: ", example, " weights: [", weights, "] }");
      continue;
    }
    const int64_t steps_per_epoch = (num_records + cut.global_batch - 1) / cut.global_batch;
    const int64_t epoch = pads ? example / num_records : 0;
    absl::StrAppend(&text,
                    " weights { from_step: ", epoch * steps_per_epoch + in_epoch / cut.global_batch,
                    " weights: [", weights, "] }");
  }
  return text;
}

v1::FeedSpec KindOfFeed::Spec(const RowsOfArrays& rows, const FeedCut& cut) const {
  v1::FeedSpec spec;
  EXPECT_THAT(ParseTextproto(SpecText(rows, cut), "spec", spec), IsOk());
  return spec;
}

std::vector<KindOfFeed> KindsOfFeed(int rows) {
  SYSTOLE_CHECK(rows % 32 == 0 && rows >= 96);
  const std::string not_three = "select { where { feature: 'label' not_in: 3 } } ";
  // How many of the last three quarters of the rows meet the condition `not_three`.
  const int64_t chosen = rows * 3 / 4 * 7 / 8;
  constexpr int64_t kTaken = 35;  // With 384 rows, `all` is 288, a multiple of kFeedUnit.
  const int64_t all = 1 + chosen + kTaken;
  return {
      {.name = "Arrays",
       .members = "dataset: 'rows' shuffle { mode: GLOBAL }",
       .num_records = rows,
       .pads = true},
      {.name = "Where",
       .members = absl::StrCat("dataset: 'rows' ", not_three,
                               "shuffle { mode: WINDOW block_records: 4 window_records: 20 }"),
       .num_records = rows * 7 / 8,
       .pads = true},
      {.name = "Weights",
       .members = absl::StrCat("mixture { dataset: 'rows' weight: 1 select { take: ", rows / 2,
                               " } } mixture { dataset: 'rows' weight: 2 select { skip: ",
                               rows / 2 + 5, " } } shuffle { mode: GLOBAL }"),
       .num_members = 2,
       .num_records = rows - 5,
       .changes = {{0, "3, 1"},
                   {2 * kFeedUnit, "0, 1"},
                   {3 * kFeedUnit + 7, "1, 1"},
                   {5 * kFeedUnit, "5, 2"}}},
      {.name = "WhereAndWeights",
       .members = absl::StrCat(
           "mixture { dataset: 'rows' weight: 1 select { where { feature: 'label' in: [1, 5] } } "
           "select { take: 1 } } mixture { dataset: 'rows' weight: 3 select { skip: ",
           rows / 4, " } ", not_three, "} mixture { dataset: 'rows' weight: 1 select { take: ",
           kTaken, " } } shuffle { mode: GLOBAL }"),
       .num_members = 3,
       .num_records = all,
       .pads = true,
       .changes = {{all, "0, 2, 1"}, {all + kFeedUnit, "1, 1, 1"}, {3 * all, "0, 0, 1"}}},
  };
}

std::vector<std::string> ExampleLines(Feed& feed, int64_t steps) {
  std::vector<std::string> lines;
  const SliceLayout& layout = feed.layout();
  std::vector<uint8_t> slice(static_cast<size_t>(layout.slice_bytes()));
  for (; steps > 0; --steps) {
    absl::StatusOr<std::optional<Step>> step = feed.Next();
    EXPECT_THAT(step, IsOk());
    if (!step.ok() || !step->has_value()) break;
    for (int core = feed.core_begin(); core < feed.core_end(); ++core) {
      for (size_t i = 0; i < layout.tensors().size(); ++i) {
        const TensorView tensor = (*step)->Tensor(core, static_cast<int>(i));
        std::memcpy(slice.data() + layout.tensors()[i].offset, tensor.data,
                    static_cast<size_t>(tensor.num_bytes()));
      }
      const uint8_t* const valid = (*step)->Tensor(core, layout.valid_index()).data;
      for (int64_t slot = 0; slot < layout.per_core_batch(); ++slot) {
        if (valid[slot] == 0) continue;
        lines.push_back(absl::StrCat((*step)->number(), " ", core, " ", slot, " ",
                                     ExampleDigest(layout, slot, slice.data())));
      }
    }
  }
  return lines;
}

std::vector<std::string> DigestsIn(const std::vector<std::string>& lines) {
  std::vector<std::string> digests;
  for (const std::string& line : lines) digests.push_back(line.substr(line.rfind(' ') + 1));
  return digests;
}

}  // namespace systole
