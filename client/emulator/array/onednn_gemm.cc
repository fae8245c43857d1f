#include "client/emulator/array/onednn_gemm.h"

#include <map>
#include <unordered_map>

#include "client/emulator/array/device_array.h"
#include "dnnl.hpp"

// These two functions belong to libgomp, which oneDNN runs on. They are declared here, because g++
// and clang keep omp.h in different places and clang's needs another package. Both functions affect
// the calling thread only.
extern "C" {
int omp_get_max_threads();
void omp_set_num_threads(int threads);
}

namespace systole::emulator {
namespace {

// While this object exists, oneDNN uses one thread only. It gets the number of threads from
// libgomp, both when it plans a product and when it computes one.
class OneThreadScope {
 public:
  OneThreadScope() : saved_(omp_get_max_threads()) { omp_set_num_threads(1); }
  ~OneThreadScope() { omp_set_num_threads(saved_); }
  OneThreadScope(const OneThreadScope&) = delete;
  OneThreadScope& operator=(const OneThreadScope&) = delete;

 private:
  const int saved_;
};

// The engine is never deleted, because oneDNN keeps generated code that refers to it until the
// process ends.
const dnnl::engine& CpuEngine() {
  static const auto* const engine = new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return *engine;
}

// The product of two matrices of given shapes, planned and ready to run.
struct Product {
  explicit Product(const StridedGemm& s) {
    using dnnl::memory;
    const memory::dims a_strides =
        s.transposed ? memory::dims{1, s.a_stride} : memory::dims{s.a_stride, 1};
    const memory::desc a_desc({s.m, s.k}, memory::data_type::bf16, a_strides);
    const memory::desc b_desc({s.k, s.n}, memory::data_type::bf16, {s.b_stride, 1});
    const memory::desc out_desc({s.m, s.n}, memory::data_type::f32, {s.out_stride, 1});
    dnnl::primitive_attr attributes;
    // Multiply() passes scratch memory to oneDNN. oneDNN's own scratch memory belongs to the thread
    // that made the product, and a later call may come from another thread.
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    if (s.accumulate) {
      dnnl::post_ops add;
      add.append_sum(1.0f);
      attributes.set_post_ops(add);
    }
#if DNNL_VERSION_MAJOR < 3  // Debian 12 has 2.6, Debian 13 has 3.7.
    const dnnl::matmul::primitive_desc plan({a_desc, b_desc, out_desc}, attributes, CpuEngine());
#else
    const dnnl::matmul::primitive_desc plan(CpuEngine(), a_desc, b_desc, out_desc, attributes);
#endif
    scratch_bytes = static_cast<int64_t>(plan.scratchpad_desc().get_size());
    matmul = dnnl::matmul(plan);
    a = memory(a_desc, CpuEngine(), nullptr);
    b = memory(b_desc, CpuEngine(), nullptr);
    out = memory(out_desc, CpuEngine(), nullptr);
    scratch = memory(plan.scratchpad_desc(), CpuEngine(), nullptr);
    arguments = {{DNNL_ARG_SRC, a},
                 {DNNL_ARG_WEIGHTS, b},
                 {DNNL_ARG_DST, out},
                 {DNNL_ARG_SCRATCHPAD, scratch}};
  }

  int64_t scratch_bytes = 0;
  dnnl::matmul matmul;
  dnnl::memory a, b, out, scratch;
  std::unordered_map<int, dnnl::memory> arguments;
};

}  // namespace

class OneDnnGemm::Impl {
 public:
  void Multiply(const StridedGemm& shape, const uint16_t* a, const uint16_t* b, float* out) {
    const OneThreadScope one_thread;
    const auto found = products_.find(shape);
    Product& product = found != products_.end() ? found->second
                                                : products_.try_emplace(shape, shape).first->second;
    if (scratch_.size() < product.scratch_bytes) {
      scratch_ = DeviceArray<uint8_t>(product.scratch_bytes);
    }
    product.a.set_data_handle(const_cast<uint16_t*>(a));  // oneDNN only reads `a` and `b`.
    product.b.set_data_handle(const_cast<uint16_t*>(b));
    product.out.set_data_handle(out);
    product.scratch.set_data_handle(scratch_.data());
    product.matmul.execute(stream_, product.arguments);
    stream_.wait();
  }

 private:
  dnnl::stream stream_{CpuEngine()};
  std::map<StridedGemm, Product> products_;
  DeviceArray<uint8_t> scratch_;  // Large enough for every product so far.
};

OneDnnGemm::OneDnnGemm() = default;
OneDnnGemm::~OneDnnGemm() = default;
OneDnnGemm::OneDnnGemm(OneDnnGemm&&) noexcept = default;
OneDnnGemm& OneDnnGemm::operator=(OneDnnGemm&&) noexcept = default;

bool OneDnnGemm::IsSupported() {
#if defined(__x86_64__)
  static const bool supported = [] {
    // In the value of an instruction set, each bit stands for a feature of the CPU.
    const auto wanted = static_cast<unsigned>(dnnl::cpu_isa::avx512_core_bf16);
    return (static_cast<unsigned>(dnnl::get_effective_cpu_isa()) & wanted) == wanted;
  }();
  return supported;
#else
  return false;
#endif
}

bool OneDnnGemm::Multiply(const StridedGemm& shape, const uint16_t* a, const uint16_t* b,
                          float* out) {
  try {
    if (impl_ == nullptr) impl_ = std::make_unique<Impl>();
    impl_->Multiply(shape, a, b, out);
    return true;
  } catch (const dnnl::error&) {
    return false;
  }
}

}  // namespace systole::emulator
