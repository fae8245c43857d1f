#include "core/engine/group_mixer.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "core/batch/slice_layout.h"
#include "core/interrupt/interrupt.h"
#include "core/numeric/bf16.h"
#include "core/numeric/canonical_nan.h"
#include "core/numeric/float16.h"
#include "core/status/check.h"
#include "core/tensor/dtype.h"

namespace systole {
namespace {

// How many elements of each example are mixed at a time: few enough that the elements of a whole
// group stay in the processor's cache. MixRun() also copies this many of a group's first example.
constexpr int64_t kRun = 1024;

using Run = std::array<float, kRun>;

// The values of a tensor's examples, as float32.
class Values {
 public:
  Values(const SliceTensor& tensor, uint8_t* slice)
      : tensor_(tensor), dtype_(tensor.spec.dtype), values_(slice + tensor.offset) {}

  // Elements [first, first + count) of the example in `slot`. REQUIRES: count <= kRun.
  void Load(int64_t slot, int64_t first, int64_t count, Run& out) const {
    if (dtype_ == DType::kFloat32) {
      Gather(slot, first, count, out.data());
      return;
    }
    const auto n = static_cast<size_t>(count);
    std::array<uint16_t, kRun> halves;
    Gather(slot, first, count, halves.data());
    const absl::Span<const uint16_t> from(halves.data(), n);
    if (dtype_ == DType::kFloat16) {
      Float16ToFloat(from, absl::MakeSpan(out.data(), n));
    } else {
      Bf16ToFloat(from, absl::MakeSpan(out.data(), n));
    }
  }

  // Writes elements [first, first + count), rounded to the tensor's type.
  void Store(int64_t slot, int64_t first, int64_t count, const float* in) const {
    if (dtype_ == DType::kFloat32) {
      Scatter(slot, first, count, in);
      return;
    }
    const auto n = static_cast<size_t>(count);
    std::array<uint16_t, kRun> halves;
    const absl::Span<const float> from(in, n);
    if (dtype_ == DType::kFloat16) {
      RoundToFloat16(from, absl::MakeSpan(halves.data(), n));
    } else {
      RoundToBf16(from, absl::MakeSpan(halves.data(), n));
    }
    Scatter(slot, first, count, halves.data());
  }

 private:
  // `at` is the place of element `first` of the example. The next element is `stride` bytes after
  // it.
  struct Position {
    uint8_t* at = nullptr;
    int64_t stride = 0;
  };

  Position PositionOf(int64_t slot, int64_t first, int64_t element_bytes) const {
    const ExamplePieces pieces = PiecesOf(tensor_, slot);
    // Either the example is one piece, or each of its elements is a piece.
    const int64_t stride = pieces.count == 1 ? element_bytes : pieces.stride;
    return {.at = values_ + pieces.offset + first * stride, .stride = stride};
  }

  template <typename T>
  void Gather(int64_t slot, int64_t first, int64_t count, T* out) const {
    auto [at, stride] = PositionOf(slot, first, sizeof(T));
    if (stride == sizeof(T)) {
      std::memcpy(out, at, static_cast<size_t>(count) * sizeof(T));
      return;
    }
    for (int64_t i = 0; i < count; ++i, at += stride) std::memcpy(out + i, at, sizeof(T));
  }

  template <typename T>
  void Scatter(int64_t slot, int64_t first, int64_t count, const T* in) const {
    auto [at, stride] = PositionOf(slot, first, sizeof(T));
    if (stride == sizeof(T)) {
      std::memcpy(at, in, static_cast<size_t>(count) * sizeof(T));
      return;
    }
    for (int64_t i = 0; i < count; ++i, at += stride) std::memcpy(at, in + i, sizeof(T));
  }

  const SliceTensor& tensor_;
  const DType dtype_;
  uint8_t* const values_;
};

// A range of elements of a row.
struct Columns {
  int64_t begin = 0;
  int64_t end = 0;

  bool empty() const { return begin >= end; }
};

// Returns which elements of `run` the draw changes. `run` is a part of row `row`.
Columns ChangedBy(const MixDraw& draw, const MixedTensor& tensor, int64_t row, const Columns& run) {
  if (draw.kind == MixDraw::Kind::kNone) return {};
  if (draw.kind == MixDraw::Kind::kMixup || !tensor.is_image) return run;
  const int64_t y = row % tensor.image_height;
  if (y < draw.box.y || y >= draw.box.y + draw.box.height) return {};
  const int64_t left = draw.box.x;
  const int64_t right = left + draw.box.width;
  return {.begin = std::max(run.begin, left * tensor.pixel_elements),
          .end = std::min(run.end, right * tensor.pixel_elements)};
}

// Mixes a run of a row, example after example. The partner of an example is the next example. The
// partner of the last example is the first example. An example is mixed with the unmixed values of
// its partner. So each example is loaded before it changes, and a copy of the unmixed first example
// is kept for the last example.
void MixRun(const MixedTensor& tensor, const Values& values, int64_t row, const Columns& run,
            int64_t begin, absl::Span<const MixDraw> draws) {
  const auto group = static_cast<int64_t>(draws.size());
  const int64_t first = row * tensor.row_elements + run.begin;
  const int64_t count = run.end - run.begin;
  Run runs[2];
  Run* own = &runs[0];
  Run* partner = &runs[1];
  Run first_example;
  bool has_own = false;  // Whether `own` is loaded.
  bool first_changed = false;
  for (int64_t i = 0; i < group; ++i) {
    const MixDraw& draw = draws[static_cast<size_t>(i)];
    const Columns changed = ChangedBy(draw, tensor, row, run);
    if (changed.empty()) {
      has_own = false;
      continue;
    }
    if (!has_own) values.Load(begin + i, first, count, *own);
    if (i == 0) {
      first_example = *own;
      first_changed = true;
    }
    if (i + 1 == group && first_changed) {
      *partner = first_example;
    } else {
      values.Load(begin + (i + 1) % group, first, count, *partner);
    }
    const auto from = static_cast<size_t>(changed.begin - run.begin);
    const auto to = static_cast<size_t>(changed.end - run.begin);
    if (draw.kind == MixDraw::Kind::kCutmix && tensor.is_image) {
      std::copy(partner->begin() + from, partner->begin() + to, own->begin() + from);
    } else {
      // Each product is rounded before the addition, so the bits are the same on every CPU.
      const float own_share = draw.own_share;
      const float partner_share = 1 - own_share;
      for (size_t k = from; k < to; ++k) {
        (*own)[k] = CanonicalNan(own_share * (*own)[k] + partner_share * (*partner)[k]);
      }
    }
    values.Store(begin + i, first + changed.begin - run.begin, changed.end - changed.begin,
                 own->data() + from);
    std::swap(own, partner);
    has_own = true;
  }
}

}  // namespace

void MixGroup(const MixPlan& plan, const SliceLayout& layout, int64_t begin,
              absl::Span<const MixDraw> draws, uint8_t* slice) {
  SYSTOLE_CHECK(static_cast<int64_t>(draws.size()) == plan.group);
  const bool cuts = std::any_of(draws.begin(), draws.end(), [](const MixDraw& draw) {
    return draw.kind == MixDraw::Kind::kCutmix;
  });
  for (MixedTensor tensor : plan.tensors) {
    if (!cuts) {
      // No draw has a rectangle, so all rows are mixed as one row. Many short rows would cost more.
      tensor.row_elements *= tensor.rows;
      tensor.rows = 1;
    }
    const Values values(layout.tensors()[static_cast<size_t>(tensor.tensor)], slice);
    for (int64_t row = 0; row < tensor.rows; ++row) {
      for (int64_t at = 0; at < tensor.row_elements; at += kRun) {
        if (InterruptRequested()) return;
        const Columns run = {.begin = at, .end = std::min(at + kRun, tensor.row_elements)};
        MixRun(tensor, values, row, run, begin, draws);
      }
    }
  }
}

void MixExamples(const FeedPlan& plan, int64_t begin, absl::Span<const Place> places,
                 uint8_t* slice) {
  const MixPlan& mix = *plan.mix();
  const SliceLayout& layout = plan.layout();
  const auto group = static_cast<size_t>(mix.group);
  SYSTOLE_CHECK(begin % mix.group == 0 && places.size() % group == 0);
  const uint8_t* const valid =
      slice + layout.tensors()[static_cast<size_t>(layout.valid_index())].offset + begin;
  std::array<MixDraw, kMaxMixGroup> draws;
  for (size_t first = 0; first < places.size(); first += group) {
    bool any = false;
    for (size_t i = 0; i < group; ++i) {
      const size_t own = first + i;
      const size_t partner = first + (i + 1) % group;
      MixDraw& draw = draws[i];
      draw = {};
      if (valid[own] == 0 || valid[partner] == 0) continue;
      const Place& place = places[own];
      draw =
          mix.draws.Of({.seed = plan.spec().seed(), .epoch = place.pass, .record = *place.record});
      any = any || draw.kind != MixDraw::Kind::kNone;
    }
    if (!any) continue;
    MixGroup(mix, layout, begin + static_cast<int64_t>(first),
             absl::MakeConstSpan(draws.data(), group), slice);
  }
}

}  // namespace systole
