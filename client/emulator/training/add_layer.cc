#include "client/emulator/training/add_layer.h"

#include <algorithm>

#include "client/emulator/array/vector_unit.h"

namespace systole::emulator {

template <typename T>
void AddLayer<T>::Forward(int /*phase*/, const StepContext<T>& step, absl::Span<const T* const> in,
                          T* out) {
  const int64_t n = step.images * size_;
  std::copy_n(in[0], n, out);
  for (const T* addend : in.subspan(1)) GetVectorUnit<T>().add(n, addend, out);
}

template <typename T>
void AddLayer<T>::Backward(int /*phase*/, const StepContext<T>& step,
                           absl::Span<const T* const> /*in*/, const T* d_out, T* d_in) {
  if (d_in != nullptr) std::copy_n(d_out, step.images * size_, d_in);
}

template class AddLayer<float>;
template class AddLayer<double>;

}  // namespace systole::emulator
