// The trainer compares Network::Bytes() with its memory limit. So Bytes() must say how much memory
// a network takes. The test counts this memory in its own aligned operator new, which only
// DeviceArray uses.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <string>

#include "absl/strings/str_cat.h"
#include "client/emulator/model/model.h"
#include "client/emulator/training/network.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace {

std::atomic<int64_t> held_bytes = 0;

// The number of bytes that stand in front of a block, to keep the block's size.
size_t Header(std::align_val_t alignment) {
  return std::max(static_cast<size_t>(alignment), sizeof(size_t));
}

}  // namespace

void* operator new(size_t size, std::align_val_t alignment) {
  const size_t header = Header(alignment);
  const size_t all = (size + 2 * header - 1) / header * header;
  auto* memory = static_cast<char*>(std::aligned_alloc(header, all));
  if (memory == nullptr) std::abort();
  *reinterpret_cast<size_t*>(memory) = size;
  held_bytes += static_cast<int64_t>(size);
  return memory + header;
}

void operator delete(void* p, std::align_val_t alignment) noexcept {
  if (p == nullptr) return;
  char* memory = static_cast<char*>(p) - Header(alignment);
  held_bytes -= static_cast<int64_t>(*reinterpret_cast<size_t*>(memory));
  std::free(memory);
}

namespace systole::emulator {
namespace {

// The bytes that a network holds after a training step. By then its scratch memory is complete.
int64_t BytesHeld(const Model& model, const NetworkOptions& options) {
  const int64_t before = held_bytes;
  Network<float> network(model, options, nullptr);
  for (int64_t s = 0; s < network.num_shards(); ++s) {
    std::fill(network.batch(s).valid.begin(), network.batch(s).valid.end(), uint8_t{1});
  }
  network.Forward(/*training=*/true);
  network.Backward();
  network.Update(0.1f);
  return held_bytes - before;
}

Model ModelOf(const std::string& input, const std::string& layers,
              const std::string& algorithm = "") {
  const absl::StatusOr<Model> model =
      ParseModel(absl::StrCat("input: ", input, " ", layers,
                              " layers { flatten {} } layers { dense { units: 3 } } loss {"
                              " softmax_cross_entropy {} } optimizer { learning_rate: 0.1 ",
                              algorithm, " }"),
                 "test");
  EXPECT_THAT(model, IsOk());
  return *model;
}

// Bytes() must be at least the memory that is held. At most a quarter of Bytes() may be unused. How
// much is unused depends on the tiles and blocks of the instruction set.
void ExpectBytesAreHeld(const Model& model) {
  for (const NetworkOptions& options :
       {NetworkOptions{.num_cores = 1, .images_per_shard = 1},
        NetworkOptions{.num_cores = 2, .shards_per_core = 3, .images_per_shard = 4}}) {
    const int64_t held = BytesHeld(model, options), said = Network<float>::Bytes(model, options);
    EXPECT_LE(held, said);
    EXPECT_GE(held, said - said / 4);
  }
}

TEST(NetworkMemoryTest, BytesMatchTheMemoryHeldByConvolutionsAndPools) {
  ExpectBytesAreHeld(ModelOf(
      "[17, 16, 3]",
      "layers { conv2d { filters: 20 kernel: 5 bias: true } } layers { batch_norm {} }"
      " layers { relu {} } layers { max_pool { window: 3 stride: 2 } }"
      " layers { name: 'a' conv2d { filters: 24 stride: 2 } } layers { dropout { rate: 0.5 } }"
      " layers { name: 'b' conv2d { filters: 24 kernel: 1 } } layers { inputs: ['a', 'b'] add {} }"
      " layers { average_pool {} }"));
}

// The scratch memory for a packed row of 50,000 numbers is 128 times as large as the row. This is
// far more than the layer's own arrays.
TEST(NetworkMemoryTest, BytesIncludeTheScratchMemoryOfWideLayers) {
  ExpectBytesAreHeld(ModelOf("[50000]", ""));
  ExpectBytesAreHeld(ModelOf("[4]", "layers { dense { units: 30000 } }", "adam {}"));
}

// Each layer has only two numbers, but its arrays also have a few hundred bytes of kArraySlack.
TEST(NetworkMemoryTest, BytesMatchTheMemoryHeldByManySmallLayers) {
  std::string layers;
  for (int i = 0; i < 1000; ++i) layers += " layers { dense { units: 1 } }";
  ExpectBytesAreHeld(ModelOf("[2]", layers));
}

// Numerics `fast` copies blocks of patches for oneDNN, and Bytes() counts these copies. oneDNN
// itself allocates little memory.
TEST(NetworkMemoryTest, BytesCoverTheMemoryOfAWideLayerInFastNumerics) {
  const Model model = ModelOf("[6, 6, 2000]", "layers { conv2d { filters: 4 } }");
  const NetworkOptions options = {
      .num_cores = 1, .images_per_shard = 16, .numerics = Numerics::kFast};
  EXPECT_LE(BytesHeld(model, options), Network<float>::Bytes(model, options));
}

}  // namespace
}  // namespace systole::emulator
