// Compares every register of every PE after every cycle with an array written in the slow and
// obvious way.
#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "client/emulator/array/flush_scope.h"
#include "client/emulator/array/stepped_array.h"
#include "core/numeric/bf16.h"
#include "core/numeric/simd_target.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/emulator/array/wild_operands.h"
#include "tests/status_matchers.h"

namespace systole::emulator {
namespace {

struct Work {
  Dataflow dataflow;
  int64_t rows, columns;
  GemmShape shape;
  std::vector<uint16_t> a, b;
};

// The operands as they enter the array. `Left(i, t)` is the t-th operand to enter row i, where rows
// are numbered over all tiles. `Top(i, j)` is the stationary operand at (i, j), or the i-th operand
// to enter column j.
class Operands {
 public:
  explicit Operands(const Work& work) : w_(work) {
    const auto [m, k, n] = w_.shape;
    on_rows = w_.dataflow == Dataflow::kScaleSimOs ? m : k;
    on_columns = w_.dataflow == Dataflow::kScaleSimIs ? m : n;
    streamed = w_.dataflow == Dataflow::kScaleSimOs   ? k
               : w_.dataflow == Dataflow::kScaleSimIs ? n
                                                      : m;
  }
  float Left(int64_t i, int64_t t) const {
    if (i >= on_rows) return 0.0f;
    if (w_.dataflow == Dataflow::kScaleSimOs) return A(i, t);
    return w_.dataflow == Dataflow::kScaleSimIs ? B(i, t) : A(t, i);
  }
  float Top(int64_t i, int64_t j) const {
    const int64_t limit = w_.dataflow == Dataflow::kScaleSimOs ? streamed : on_rows;
    if (i >= limit || j >= on_columns) return -0.0f;
    return w_.dataflow == Dataflow::kScaleSimIs ? A(j, i) : B(i, j);
  }
  int64_t on_rows, on_columns, streamed;

 private:
  float A(int64_t i, int64_t j) const { return Bf16ToFloat(w_.a[i * w_.shape.k + j]); }
  float B(int64_t i, int64_t j) const { return Bf16ToFloat(w_.b[i * w_.shape.n + j]); }
  const Work& w_;
};

// The registers of one PE: the four numbers, and the mark that travels with a tile's first row.
struct NaivePe {
  PeGrid::Pe numbers;
  bool first = false;
};

class NaiveArray {
 public:
  explicit NaiveArray(const Work& work) : w_(work), operands_(work), now_(work.rows) {
    for (auto& row : now_) row.resize(work.columns);
    const int64_t t = operands_.streamed, r = w_.rows, c = w_.columns;
    tile_rows_ = (operands_.on_rows + r - 1) / r;
    tiles_ = tile_rows_ * ((operands_.on_columns + c - 1) / c);
    // The cycle in which each tile's operands start to enter from the left, by the formulas.
    for (int64_t f = 0; f < tiles_; ++f) {
      switch (w_.dataflow) {
        case Dataflow::kWsDb:
          start_.push_back(r + f * std::max(t, r));
          load_.push_back(f == 0 ? 0 : start_[f - 1]);
          break;
        case Dataflow::kScaleSimOs:
          start_.push_back(f * (r + c + t - 2 + r));
          break;
        case Dataflow::kScaleSimWs:
        case Dataflow::kScaleSimIs:
          load_.push_back(f * (2 * r + c + t - 2));
          start_.push_back(load_[f] + r);
      }
    }
    end_ = start_.back() + t + r + c - 2 + (w_.dataflow == Dataflow::kScaleSimOs ? r : 0);
  }
  int64_t cycles() const { return end_; }
  const PeGrid::Pe& At(int64_t r, int64_t c) const { return now_[r][c].numbers; }

  void Step(int64_t t) {
    const auto before = now_;
    for (int64_t r = 0; r < w_.rows; ++r) {
      const auto [left, left_is_first] = LeftAt(r, t);
      for (int64_t c = 0; c < w_.columns; ++c) {
        const PeGrid::Pe& old = before[r][c].numbers;
        const PeGrid::Pe above = r > 0 ? before[r - 1][c].numbers : TopAt(c, t);
        PeGrid::Pe& pe = now_[r][c].numbers;
        pe.a = c > 0 ? before[r][c - 1].numbers.a : left;
        if (w_.dataflow == Dataflow::kScaleSimOs) {
          pe.b = above.b;
          pe.sum = Drains(t) ? above.sum : std::fma(pe.a, pe.b, old.sum);
        } else {
          now_[r][c].first = c > 0 ? before[r][c - 1].first : left_is_first;
          if (now_[r][c].first) pe.b = old.shadow;
          if (Shifts(r, c, t)) pe.shadow = above.shadow;
          pe.sum = std::fma(pe.a, pe.b, above.sum);
        }
      }
    }
  }

 private:
  int64_t Row0(int64_t tile) const { return tile % tile_rows_ * w_.rows; }
  int64_t Column0(int64_t tile) const { return tile / tile_rows_ * w_.columns; }

  std::pair<float, bool> LeftAt(int64_t r, int64_t t) const {
    for (int64_t f = 0; f < tiles_; ++f) {
      const int64_t i = t - start_[f] - r;
      if (i >= 0 && i < operands_.streamed) return {operands_.Left(Row0(f) + r, i), i == 0};
    }
    return {0.0f, false};
  }
  PeGrid::Pe TopAt(int64_t c, int64_t t) const {
    PeGrid::Pe above;
    if (w_.dataflow == Dataflow::kScaleSimOs) {
      above.b = -0.0f;
      for (int64_t f = 0; f < tiles_; ++f) {
        const int64_t i = t - start_[f] - c;
        if (i >= 0 && i < operands_.streamed) above.b = operands_.Top(i, Column0(f) + c);
      }
      return above;
    }
    for (int64_t f = 0; f < tiles_; ++f) {
      const int64_t age = t - load_[f] - c;
      if (age < 0 || age >= w_.rows) continue;
      above.shadow = operands_.Top(Row0(f) + w_.rows - 1 - age, Column0(f) + c);
    }
    return above;
  }
  bool Shifts(int64_t r, int64_t c, int64_t t) const {
    return std::any_of(load_.begin(), load_.end(),
                       [&](int64_t load) { return r <= t - load - c && t - load - c < w_.rows; });
  }
  bool Drains(int64_t t) const {
    const int64_t streams = w_.rows + w_.columns + operands_.streamed - 2;
    return t % (streams + w_.rows) >= streams;
  }

  const Work& w_;
  Operands operands_;
  std::vector<std::vector<NaivePe>> now_;
  int64_t tile_rows_, tiles_, end_;
  std::vector<int64_t> load_, start_;
};

void ExpectSameRegistersThroughout(const Work& work) {
  std::vector<float> out(static_cast<size_t>(work.shape.m * work.shape.n));
  SteppedArray array(work.rows, work.columns);
  array.Start({.a = work.a.data(),
               .b = work.b.data(),
               .shape = work.shape,
               .out = out.data(),
               .dataflow = work.dataflow});
  NaiveArray naive(work);
  for (int64_t t = 0; t < naive.cycles(); ++t) {
    ASSERT_TRUE(array.Step());
    const FlushScope flush;
    naive.Step(t);
    for (int64_t r = 0; r < work.rows; ++r) {
      for (int64_t c = 0; c < work.columns; ++c) {
        const PeGrid::Pe got = array.grid().At(r, c), want = naive.At(r, c);
        ASSERT_EQ(BitsOf(got.a), BitsOf(want.a)) << "cycle " << t << ", PE " << r << " " << c;
        ASSERT_EQ(BitsOf(got.b), BitsOf(want.b)) << "cycle " << t << ", PE " << r << " " << c;
        ASSERT_EQ(BitsOf(got.shadow), BitsOf(want.shadow)) << "cycle " << t << " " << r << " " << c;
        ASSERT_EQ(BitsOf(got.sum), BitsOf(want.sum)) << "cycle " << t << ", PE " << r << " " << c;
      }
    }
  }
  EXPECT_FALSE(array.Step());
}

TEST(SteppedRegistersTest, EveryRegisterEqualsTheNaiveArraysAfterEveryCycle) {
  std::mt19937 random(11);
  const auto up_to = [&random](int64_t n) { return 1 + static_cast<int64_t>(random() % n); };
  const std::vector<std::string> targets = SupportedSimdTargets();
  for (int i = 0; i < 240; ++i) {
    Work work = {.dataflow = static_cast<Dataflow>(i % 4),
                 .rows = up_to(7),
                 .columns = up_to(20),
                 .shape = {up_to(12), up_to(16), up_to(40)}};
    const auto wildness = static_cast<Wildness>(i / 4 % kWildnesses);
    work.a = WildOperands(work.shape.m * work.shape.k, wildness, random);
    work.b = WildOperands(work.shape.k * work.shape.n, wildness, random);
    const std::string& target = targets[i / 16 % targets.size()];
    SCOPED_TRACE(testing::Message() << target << " " << DataflowName(work.dataflow) << " "
                                    << work.rows << "x" << work.columns << " " << work.shape.m
                                    << "," << work.shape.k << "," << work.shape.n);
    ASSERT_THAT(ForceSimdTarget(target), IsOk());
    ExpectSameRegistersThroughout(work);
    if (HasFatalFailure()) break;
  }
  ASSERT_THAT(ForceSimdTarget(""), IsOk());
}

// A tile has one row, and the array is much wider than high. So a new tile enters every other
// cycle, and ten tiles are in the array at once, each with its own weights.
TEST(SteppedRegistersTest, ManyTilesInTheArrayAtOnceKeepTheirWeights) {
  std::mt19937 random(12);
  Work work = {.dataflow = Dataflow::kWsDb, .rows = 2, .columns = 20, .shape = {1, 30, 45}};
  work.a = WildOperands(30, Wildness::kTame, random);
  work.b = WildOperands(30 * 45, Wildness::kTame, random);
  ExpectSameRegistersThroughout(work);
}

}  // namespace
}  // namespace systole::emulator
