#include "client/emulator/training/dropout_layer.h"

#include <algorithm>
#include <cstdint>

#include "core/random/philox.h"

namespace systole::emulator {
namespace {

// The last word of a Philox counter. Each use of a seed has its own word, so that it draws numbers
// of its own. The initial weights use 0.
constexpr uint32_t kDropoutDraws = 1;
constexpr int64_t kBlock = 4;  // Words of a Philox block.

}  // namespace

template <typename T>
void DropoutLayer<T>::Drop(const StepContext<T>& step, const T* from, T* to) const {
  const int64_t size = plan_.output.size();
  const T scale = T{1} / (T{1} - static_cast<T>(plan_.drop_rate));
  const auto number = static_cast<uint64_t>(step.step);
  const PhiloxBlock stream = Philox4x32(
      {LowWord(number), HighWord(number), static_cast<uint32_t>(plan_.number), kDropoutDraws},
      {LowWord(step.seed), HighWord(step.seed)});
  for (int64_t image = 0; image < step.images; ++image, from += size, to += size) {
    const auto place = static_cast<uint32_t>(step.first_example + image);
    for (int64_t at = 0; at < size; at += kBlock) {
      const PhiloxBlock words =
          Philox4x32({static_cast<uint32_t>(at / kBlock), place, stream[2], stream[3]},
                     {stream[0], stream[1]});
      for (int64_t i = at; i < std::min(at + kBlock, size); ++i) {
        const float draw = static_cast<float>(words[i - at] >> 8) * 0x1p-24f;
        to[i] = draw < plan_.drop_rate ? T{0} : from[i] * scale;
      }
    }
  }
}

template <typename T>
void DropoutLayer<T>::Forward(int /*phase*/, const StepContext<T>& step,
                              absl::Span<const T* const> in, T* out) {
  if (step.training) {
    Drop(step, in[0], out);
  } else {
    std::copy_n(in[0], step.images * plan_.output.size(), out);
  }
}

template <typename T>
void DropoutLayer<T>::Backward(int /*phase*/, const StepContext<T>& step,
                               absl::Span<const T* const> /*in*/, const T* d_out, T* d_in) {
  if (d_in != nullptr) Drop(step, d_out, d_in);
}

template class DropoutLayer<float>;
template class DropoutLayer<double>;

}  // namespace systole::emulator
