// A systolic array stepped cycle by cycle. The matrix unit's values and the cycle model are
// compared with it. Operands enter at the edges when they are due, every register moves in every
// cycle, and sums leave at the bottom. The cycles are counted as they happen, not computed by a
// formula.
//
// Weight-stationary (ws-db, scalesim-ws): the weights `b` ([k, n]) are cut into tiles of R x C. A
// tile's weights enter from above into the shadow registers, last row first. Column c starts c
// cycles after column 0. R cycles after the start of column 0, the first row of `a` enters from the
// left. Row r of the array starts r cycles after row 0. So the first row of `a` needs r + c cycles
// from its entry to the processing element PE (r, c). In each cycle the first row reaches one
// diagonal of PEs. Just before this cycle, the shadow weights of these PEs become their weights.
// Sums leave below the last row and are added up in f32 outside.
//   ws-db        tiles overlap: when a tile's first row has entered, the next tile's weights begin
//                to enter. When the weights of column 0 are in place, and this tile's last row has
//                entered row 0 of the array, the next tile's rows follow without a pause.
//   scalesim-ws  a tile's weights enter after the last sum of the previous tile has left.
// Input-stationary (scalesim-is): computes the transposed product, b' * a', as scalesim-ws does.
// Output-stationary (scalesim-os): `out` ([m, n]) is cut into tiles. `a` enters from the left, row
// r with a delay of r cycles. `b` enters from above, column c with a delay of c cycles. PE (r, c)
// keeps the sum of row r and column c. When the last operands have met in the last PE, the sums
// move down and out in R more cycles ("drain").
//
// Thread-compatible.
#ifndef SYSTOLE_CLIENT_EMULATOR_ARRAY_STEPPED_ARRAY_H_
#define SYSTOLE_CLIENT_EMULATOR_ARRAY_STEPPED_ARRAY_H_

#include <cstdint>
#include <deque>
#include <limits>

#include "client/emulator/array/cycle_model.h"
#include "client/emulator/array/pe_grid.h"

namespace systole::emulator {

class SteppedArray {
 public:
  // REQUIRES: rows, columns > 0.
  SteppedArray(int64_t rows, int64_t columns);

  struct Product {
    const uint16_t* a = nullptr;  // [m, k] bf16, row-major; must live until the last step.
    const uint16_t* b = nullptr;  // [k, n], stored like a.
    GemmShape shape;              // REQUIRES: all > 0.
    float* out = nullptr;         // [m, n]: the accumulators, which sums are added to.
    Dataflow dataflow = Dataflow::kScaleSimWs;
    // Which of the product's tiles to compute; by default all tiles. Several arrays can share a
    // product if each gets other tiles. Tiles are counted first along the dimension that lies on
    // the array's rows.
    int64_t first_tile = 0;
    int64_t most_tiles = std::numeric_limits<int64_t>::max();
  };
  // Begins a product and clears every register.
  //
  // In places that a tile does not use, a sum that counts meets only a = +0 and b = -0. That
  // changes no bit, because x + (0 * -0) is x for every x, -0 included.
  void Start(const Product& product);
  // Runs one cycle in a FlushScope. If the product is complete, runs no cycle and returns false.
  bool Step();

  struct Cycles {
    int64_t load = 0;    // Cycles in which weights enter and nothing else happens.
    int64_t stream = 0;  // Cycles in which operands from the left move through the array.
    int64_t drain = 0;   // Cycles in which stationary sums leave.

    int64_t total() const { return load + stream + drain; }
  };
  // The cycles of this product since Start().
  const Cycles& cycles() const { return cycles_; }
  // The PEs as they are after the last step.
  const PeGrid& grid() const { return grid_; }

  // out = a * b: clears `out`, calls Start(), and runs all steps.
  Cycles Multiply(const uint16_t* a, const uint16_t* b, int64_t m, int64_t k, int64_t n, float* out,
                  Dataflow dataflow = Dataflow::kScaleSimWs);

 private:
  // Element (i, j) lies at data[i * i_stride + j * j_stride].
  template <typename T>
  struct Matrix {
    T* data = nullptr;
    int64_t i_stride = 0, j_stride = 0;
    T& operator()(int64_t i, int64_t j) const { return data[i * i_stride + j * j_stride]; }
  };
  // How the product lies on the array: one of its dimensions lies on the rows and another on the
  // columns. The third dimension streams.
  struct Mapping {
    int64_t on_rows = 0, on_columns = 0, streamed = 0;
    Matrix<const uint16_t> left;  // (on_rows, streamed)
    Matrix<const uint16_t> top;   // (on_rows, on_columns), or (streamed, on_columns) if sums stay.
    Matrix<float> out;            // (streamed, on_columns), or (on_rows, on_columns) if sums stay.
    bool sums_stay = false;
    bool back_to_back = false;
  };
  struct Tile {
    static constexpr int64_t kNotYet = -1;
    int64_t row = 0, column = 0;  // Its first element in (on_rows, on_columns).
    int64_t load = 0;             // The cycle in which its first weight enters from above,
    int64_t start = kNotYet;      // and the cycle in which its first operand enters from the left.
    bool started() const { return start != kNotYet; }
  };

  static Mapping MapProduct(const Product& product);
  Tile NextTile();
  bool IsThrough(const Tile& tile, int64_t cycle) const;
  void StationaryOperandStep();
  void StationarySumsStep();
  void AdvanceTiles();
  void FeedLeft();
  bool FeedShadow();
  void FeedTop(const Tile& tile);
  void CollectSums(const Tile& tile);
  void CollectRow(const Tile& tile, int64_t row);

  PeGrid grid_;
  Mapping map_;
  std::deque<Tile> tiles_;  // Tiles that enter the array or are in it, oldest first.
  int64_t next_tile_ = 0, end_tile_ = 0;
  int64_t cycle_ = 0;    // The current cycle, counted from 0.
  int64_t drained_ = 0;  // Rows of stationary sums that have left.
  Cycles cycles_;
};

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_ARRAY_STEPPED_ARRAY_H_
