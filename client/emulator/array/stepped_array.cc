#include "client/emulator/array/stepped_array.h"

#include <algorithm>

#include "client/emulator/array/divide_up.h"
#include "client/emulator/array/flush_scope.h"
#include "core/numeric/bf16.h"
#include "core/status/check.h"

namespace systole::emulator {
namespace {

// A run of rows or columns, [begin, end).
struct Range {
  int64_t begin, end;
};

// A stream of `length` operands enters each place i of [0, size), one operand at a time, from time
// i on. Returns the places that get an operand at `time`: those with 0 <= time - i < length.
Range Skewed(int64_t time, int64_t length, int64_t size) {
  return {std::max<int64_t>(0, time - length + 1), std::min(size, time + 1)};
}

}  // namespace

SteppedArray::SteppedArray(int64_t rows, int64_t columns) : grid_(rows, columns) {}

SteppedArray::Mapping SteppedArray::MapProduct(const Product& p) {
  const auto [m, k, n] = p.shape;
  switch (p.dataflow) {
    case Dataflow::kScaleSimOs:
      return {.on_rows = m,
              .on_columns = n,
              .streamed = k,
              .left = {p.a, k, 1},
              .top = {p.b, n, 1},
              .out = {p.out, n, 1},
              .sums_stay = true};
    case Dataflow::kScaleSimIs:
      return {.on_rows = k,
              .on_columns = m,
              .streamed = n,
              .left = {p.b, n, 1},
              .top = {p.a, 1, k},
              .out = {p.out, 1, n}};
    case Dataflow::kWsDb:
    case Dataflow::kScaleSimWs:
      return {.on_rows = k,
              .on_columns = n,
              .streamed = m,
              .left = {p.a, 1, k},
              .top = {p.b, n, 1},
              .out = {p.out, n, 1},
              .back_to_back = p.dataflow == Dataflow::kWsDb};
  }
  SYSTOLE_CHECK(false);
  return {};
}

void SteppedArray::Start(const Product& product) {
  map_ = MapProduct(product);
  const int64_t tiles =
      DivideUp(map_.on_rows, grid_.rows()) * DivideUp(map_.on_columns, grid_.columns());
  next_tile_ = std::min(product.first_tile, tiles);
  end_tile_ = next_tile_ + std::min(product.most_tiles, tiles - next_tile_);
  grid_.Clear();
  tiles_.clear();
  cycle_ = drained_ = 0;
  cycles_ = {};
}

bool SteppedArray::Step() {
  if (tiles_.empty() && next_tile_ == end_tile_) return false;
  const FlushScope flush;
  if (map_.sums_stay) {
    StationarySumsStep();
  } else {
    StationaryOperandStep();
  }
  ++cycle_;
  return true;
}

SteppedArray::Cycles SteppedArray::Multiply(const uint16_t* a, const uint16_t* b, int64_t m,
                                            int64_t k, int64_t n, float* out, Dataflow dataflow) {
  std::fill_n(out, m * n, 0.0f);
  Start({.a = a, .b = b, .shape = {m, k, n}, .out = out, .dataflow = dataflow});
  while (Step()) {
  }
  return cycles_;
}

SteppedArray::Tile SteppedArray::NextTile() {
  const int64_t down = DivideUp(map_.on_rows, grid_.rows());
  const int64_t tile = next_tile_++;
  return {
      .row = tile % down * grid_.rows(), .column = tile / down * grid_.columns(), .load = cycle_};
}

// Whether the tile's last operand reached the last processing element (PE) in a cycle before
// `cycle`.
bool SteppedArray::IsThrough(const Tile& tile, int64_t cycle) const {
  const int64_t way = (grid_.rows() - 1) + (grid_.columns() - 1);
  return cycle - tile.start > map_.streamed - 1 + way;
}

void SteppedArray::StationaryOperandStep() {
  AdvanceTiles();
  FeedLeft();
  const bool loads = FeedShadow();
  bool streams = false;
  for (const Tile& tile : tiles_) {
    if (!tile.started()) break;
    grid_.TakeShadow(cycle_ - tile.start);
    streams = true;
  }
  grid_.StreamCycle(loads);
  ++(streams ? cycles_.stream : cycles_.load);
  for (const Tile& tile : tiles_) {
    if (tile.started()) CollectSums(tile);
  }
  if (streams && IsThrough(tiles_.front(), cycle_ + 1)) tiles_.pop_front();
}

// Starts the tiles that are due. A tile's operands enter from the left when the first column of its
// weights is in place, and all operands of the previous tile have entered. The next tile's weights
// enter from above when the shadow registers are free (ws-db) or the array is empty.
void SteppedArray::AdvanceTiles() {
  const size_t n = tiles_.size();
  if (n > 0 && !tiles_[n - 1].started()) {
    const bool loaded = cycle_ - tiles_[n - 1].load >= grid_.rows();
    const bool is_next = n == 1 || cycle_ - tiles_[n - 2].start >= map_.streamed;
    if (loaded && is_next) tiles_[n - 1].start = cycle_;
  }
  const bool may_load = tiles_.empty() || (map_.back_to_back && tiles_.back().started());
  if (may_load && next_tile_ < end_tile_) tiles_.push_back(NextTile());
}

void SteppedArray::FeedLeft() {
  for (int64_t r = 0; r < grid_.rows(); ++r) grid_.left(r) = 0.0f;
  for (const Tile& tile : tiles_) {
    if (!tile.started()) break;
    const int64_t time = cycle_ - tile.start;
    const auto [begin, end] =
        Skewed(time, map_.streamed, std::min(grid_.rows(), map_.on_rows - tile.row));
    for (int64_t r = begin; r < end; ++r) {
      grid_.left(r) = Bf16ToFloat(map_.left(tile.row + r, time - r));
    }
  }
}

// Feeds weights. The last row enters first, because it has the longest way. A shadow register
// starts to shift when the first weight of its column arrives. Before that, the previous tile may
// still need the register's content.
bool SteppedArray::FeedShadow() {
  bool loads = false;
  for (int64_t c = 0; c < grid_.columns(); ++c) grid_.shift_depth(c) = 0;
  for (const Tile& tile : tiles_) {
    const int64_t time = cycle_ - tile.load;
    const auto [begin, end] = Skewed(time, grid_.rows(), grid_.columns());
    for (int64_t c = begin; c < end; ++c) {
      const int64_t row = tile.row + grid_.rows() - 1 - (time - c), column = tile.column + c;
      const bool used = row < map_.on_rows && column < map_.on_columns;
      grid_.top_shadow(c) = used ? Bf16ToFloat(map_.top(row, column)) : -0.0f;
      grid_.shift_depth(c) = static_cast<int32_t>(time - c + 1);
      loads = true;
    }
  }
  return loads;
}

// Adds the sums in the last row's registers to `out`.
void SteppedArray::CollectSums(const Tile& tile) {
  const int64_t time = cycle_ - tile.start - (grid_.rows() - 1);
  const auto [begin, end] =
      Skewed(time, map_.streamed, std::min(grid_.columns(), map_.on_columns - tile.column));
  for (int64_t c = begin; c < end; ++c) map_.out(time - c, tile.column + c) += grid_.bottom(c);
}

void SteppedArray::StationarySumsStep() {
  if (tiles_.empty()) {
    tiles_.push_back(NextTile());
    tiles_.front().start = cycle_;
  }
  const Tile& tile = tiles_.front();
  FeedLeft();
  FeedTop(tile);
  if (!IsThrough(tile, cycle_)) {
    grid_.AccumulateCycle();
    ++cycles_.stream;
    return;
  }
  CollectRow(tile, grid_.rows() - 1 - drained_);
  grid_.DrainCycle();
  ++cycles_.drain;
  if (++drained_ == grid_.rows()) {
    drained_ = 0;
    tiles_.pop_front();
  }
}

void SteppedArray::FeedTop(const Tile& tile) {
  for (int64_t c = 0; c < grid_.columns(); ++c) grid_.top_b(c) = -0.0f;
  const int64_t time = cycle_ - tile.start;
  const auto [begin, end] =
      Skewed(time, map_.streamed, std::min(grid_.columns(), map_.on_columns - tile.column));
  for (int64_t c = begin; c < end; ++c) {
    grid_.top_b(c) = Bf16ToFloat(map_.top(time - c, tile.column + c));
  }
}

// The last row's registers hold the sums of the tile's row `row`. Adds these sums to `out`.
void SteppedArray::CollectRow(const Tile& tile, int64_t row) {
  if (tile.row + row >= map_.on_rows) return;
  const int64_t end = std::min(grid_.columns(), map_.on_columns - tile.column);
  for (int64_t c = 0; c < end; ++c) {
    map_.out(tile.row + row, tile.column + c) += grid_.bottom(c);
  }
}

}  // namespace systole::emulator
