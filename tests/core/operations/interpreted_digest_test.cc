// Pins the bytes that the references make: they are the same in every release. A deliberate change
// of these bytes needs a new content version.
#include <cstdint>
#include <memory>
#include <vector>

#include "core/checksum/xxh3.h"
#include "core/random/counter_rng.h"
#include "gtest/gtest.h"
#include "tests/core/operations/compared_programs.h"

namespace systole {
namespace {

TEST(InterpretedDigestTest, ThreeThousandRandomProgramsMakeTheBytesThatTheyAlwaysMade) {
  Xxh3Hasher hasher;
  int made = 0;
  for (int64_t round = 0; round < 3000; ++round) {
    CounterRng rng(21, 0, round, 1);
    std::vector<uint8_t> choices(96);
    for (uint8_t& choice : choices) choice = static_cast<uint8_t>(rng.NextU32());
    const RandomProgram drawn = DrawProgram(choices);
    const std::shared_ptr<const Program> program = CompileDrawn(drawn);
    if (program == nullptr) continue;
    const absl::StatusOr<std::vector<uint8_t>> bytes = InterpretDrawn(drawn, *program);
    hasher.UpdateU64(static_cast<uint64_t>(round));
    if (!bytes.ok()) {
      hasher.UpdateU64(static_cast<uint64_t>(bytes.status().code()));
      continue;
    }
    hasher.UpdateU64(bytes->size());
    hasher.Update(absl::string_view(reinterpret_cast<const char*>(bytes->data()), bytes->size()));
    ++made;
  }
  EXPECT_GT(made, 1000);
  EXPECT_EQ(hasher.Digest128Hex(), "d807d475a8fd4324edb375fd4c60c9b1");
}

}  // namespace
}  // namespace systole
