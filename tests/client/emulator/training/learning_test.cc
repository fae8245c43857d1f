// The shipped models learn, and they learn equally well in both numerics.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "client/emulator/array/numerics.h"
#include "client/emulator/model/model.h"
#include "client/emulator/shipped/shipped_files.h"
#include "client/emulator/training/trainer.h"
#include "core/status/status_macros.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "systole/v1/model.pb.h"
#include "tests/client/emulator/training/toy_batch.h"
#include "tests/sanitizers.h"
#include "tests/status_matchers.h"

namespace systole::emulator {
namespace {

constexpr int64_t kCores = 4, kPerCore = 16;

using Pixels = std::vector<uint8_t>;

// Paints 28 x 28 pixels. Every digit has blots of its own. Their place and darkness vary a little
// from picture to picture.
Pixels PaintDigit(int64_t digit, std::mt19937& random) {
  Pixels image(784);
  for (uint8_t& pixel : image) pixel = static_cast<uint8_t>(random() % 60);
  std::mt19937 blots(static_cast<uint32_t>(digit));
  const auto dx = static_cast<int64_t>(random() % 3), dy = static_cast<int64_t>(random() % 3);
  for (int blot = 0; blot < 12; ++blot) {
    const auto x0 = static_cast<int64_t>(blots() % 22), y0 = static_cast<int64_t>(blots() % 22);
    const uint32_t ink = 80 + random() % 100;
    for (int64_t y = y0 + dy; y < y0 + dy + 4; ++y) {
      for (int64_t x = x0 + dx; x < x0 + dx + 4; ++x) {
        image[y * 28 + x] = static_cast<uint8_t>(std::min<uint32_t>(255, image[y * 28 + x] + ink));
      }
    }
  }
  return image;
}

// Paints 32 x 32 x 3 pixels with a flower near the middle. The flower is turned by any angle. It
// has any bright colour, and the ground any dark colour. The number of petals is kind + 2 (2 to 6).
Pixels PaintFlower(int64_t kind, std::mt19937& random) {
  const auto uniform = [&random](float from, float to) {
    return from + (to - from) * static_cast<float>(random() % 1024) / 1024.0f;
  };
  const float x0 = uniform(14, 18), y0 = uniform(14, 18), size = uniform(10, 13);
  const float turn = uniform(0, 7);
  uint32_t petal[3], ground[3];
  for (int c = 0; c < 3; ++c) {
    petal[c] = 150 + random() % 80;
    ground[c] = random() % 80;
  }
  Pixels image;
  for (int y = 0; y < 32; ++y) {
    for (int x = 0; x < 32; ++x) {
      const float dx = static_cast<float>(x) - x0, dy = static_cast<float>(y) - y0;
      const float angle = static_cast<float>(kind + 2) * std::atan2(dy, dx) + turn;
      const float edge = size * (0.6f + 0.4f * std::cos(angle));
      const uint32_t* colour = dx * dx + dy * dy < edge * edge ? petal : ground;
      for (int c = 0; c < 3; ++c) image.push_back(static_cast<uint8_t>(colour[c] + random() % 20));
    }
  }
  return image;
}

// Examples number `first`, `first` + 1, .. of a batch. Example e shows class e % classes.
std::vector<ToyCore<float>> Batch(int64_t first, int64_t classes,
                                  Pixels (*paint)(int64_t, std::mt19937&), float mean, float scale,
                                  const std::vector<int64_t>& shape) {
  std::vector<ToyCore<float>> batch(kCores);
  int64_t example = first;
  for (ToyCore<float>& core : batch) {
    core.image_shape = {kPerCore};
    core.image_shape.insert(core.image_shape.end(), shape.begin(), shape.end());
    core.vector_shape = {kPerCore};
    for (int64_t i = 0; i < kPerCore; ++i, ++example) {
      std::mt19937 random(static_cast<uint32_t>(example));
      for (const uint8_t pixel : paint(example % classes, random)) {
        core.image.push_back((static_cast<float>(pixel) - mean) * scale);
      }
      core.label.push_back(example % classes);
      core.valid.push_back(1);
    }
  }
  return batch;
}

struct Task {
  std::string model;
  int64_t classes;
  Pixels (*paint)(int64_t, std::mt19937&);
  float mean, scale;  // Pixels are normalised with these, as in a feed.
  std::vector<int64_t> shape;
  int64_t steps;
};

absl::StatusOr<Trainer> MakeTrainer(const Task& task, Numerics numerics) {
  v1::Model message;
  SYSTOLE_RETURN_IF_ERROR(ReadModel(task.model, message));
  // The learning rate decays to its end within this short run, so that the result does not depend
  // on luck.
  message.mutable_optimizer()->set_decay_steps(task.steps);
  // The pictures are smaller than those of the shipped model, to save time. The layers take any
  // size.
  message.mutable_input()->Assign(task.shape.begin(), task.shape.end());
  SYSTOLE_ASSIGN_OR_RETURN(const Model model, CompileModel(message));
  return Trainer::Create(
      model, {.num_cores = kCores, .per_core_batch = kPerCore, .threads = 2, .numerics = numerics});
}

// Trains in both numerics on the same batches. `exact` must get 95 % of 512 unseen examples right.
// The number that `fast` gets right may differ by 2 % of the examples.
void ExpectLearnsAlike(const Task& task) {
  absl::StatusOr<Trainer> exact = MakeTrainer(task, Numerics::kExact);
  absl::StatusOr<Trainer> fast = MakeTrainer(task, Numerics::kFast);
  ASSERT_THAT(exact, IsOk());
  ASSERT_THAT(fast, IsOk());
  const auto batch = [&task](int64_t number) {
    return Batch(number * kCores * kPerCore, task.classes, task.paint, task.mean, task.scale,
                 task.shape);
  };
  // With a sanitizer a step takes two seconds. Fewer steps are enough then, because a sanitizer
  // checks the code of a step and not the result of the training.
  const int64_t steps = kSanitized ? task.steps / 10 : task.steps;
  for (int64_t step = 0; step < steps; ++step) {
    const auto examples = batch(step);
    ASSERT_THAT(exact->Step(InputsOf(examples)), IsOk());
    ASSERT_THAT(fast->Step(InputsOf(examples)), IsOk());
  }
  if (kSanitized) return;  // After so few steps the two numerics may differ.
  int64_t exact_correct = 0, fast_correct = 0, all = 0;
  for (int64_t i = 0; i < 8; ++i, all += kCores * kPerCore) {
    const auto examples = batch(1000 + i);
    exact_correct += exact->Evaluate(InputsOf(examples))->correct;
    fast_correct += fast->Evaluate(InputsOf(examples))->correct;
  }
  EXPECT_GE(exact_correct * 100, all * 95);
  EXPECT_LE(std::abs(exact_correct - fast_correct) * 100, all * 2)
      << exact_correct << " and " << fast_correct << " of " << all;
}

TEST(LearningTest, MlpLearnsDigitsAlikeInExactAndFast) {
  ExpectLearnsAlike({"mlp-784", 10, PaintDigit, 0.0f, 1.0f, {784}, 120});
}

TEST(LearningTest, CnnLearnsFlowersAlikeInExactAndFast) {
  ExpectLearnsAlike({"flowers-cnn", 5, PaintFlower, 127.5f, 1 / 63.75f, {32, 32, 3}, 80});
}

}  // namespace
}  // namespace systole::emulator
