// The only code that uses oneDNN: products of two bf16 matrices in memory, sums in f32.
//
// A product runs only on the calling thread, whatever OMP_NUM_THREADS says. The emulator gives each
// of its threads whole cores, and never splits a product over threads. oneDNN generates code for
// each shape. The code is kept, so only the first product of a shape takes the time for it.
//
// Single-thread: one thread at a time may use it. Consecutive calls may come from different
// threads.
#ifndef SYSTOLE_CLIENT_EMULATOR_ARRAY_ONEDNN_GEMM_H_
#define SYSTOLE_CLIENT_EMULATOR_ARRAY_ONEDNN_GEMM_H_

#include <cstdint>
#include <memory>
#include <tuple>

namespace systole::emulator {

// out[m, n] = (accumulate ? out : 0) + a[m, k] * b[k, n], all row-major. A stride is the number of
// elements from one row to the next. With `transposed`, `a` lies in memory as [k, m], and
// `a_stride` is the number of elements from one of these k rows to the next.
struct StridedGemm {
  int64_t m = 0, k = 0, n = 0;
  int64_t a_stride = 0, b_stride = 0, out_stride = 0;
  bool transposed = false, accumulate = false;

  auto key() const {
    return std::tie(m, k, n, a_stride, b_stride, out_stride, transposed, accumulate);
  }
  friend bool operator<(const StridedGemm& x, const StridedGemm& y) { return x.key() < y.key(); }
};

class OneDnnGemm {
 public:
  OneDnnGemm();
  ~OneDnnGemm();
  OneDnnGemm(OneDnnGemm&&) noexcept;
  OneDnnGemm& operator=(OneDnnGemm&&) noexcept;

  // Whether oneDNN finds bf16 instructions (AVX512_BF16) in this CPU. Always false on CPUs other
  // than x86-64. Also false if the environment variable ONEDNN_MAX_CPU_ISA hides these instructions
  // from oneDNN.
  static bool IsSupported();

  // Returns false if oneDNN has no code or no memory for this product. If so, the contents of `out`
  // are unspecified. REQUIRES: IsSupported(); m, k, n > 0; no stride is shorter than its row.
  bool Multiply(const StridedGemm& shape, const uint16_t* a, const uint16_t* b, float* out);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_ARRAY_ONEDNN_GEMM_H_
