// A real server and a real client: whatever form the tensors travel in, the trainer gets the same
// bytes.
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "client/feed/feed_client.h"
#include "core/numeric/simd_target.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/server.h"
#include "tests/core/dataset/test_dataset.h"
#include "tests/core/record/tfrecord/shard_builder.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/server/listen_on.h"
#include "tests/server/rpc/test_catalogue.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

// Record 4 of 13 is damaged, so that a MASK feed has masked and padded places.
std::string ShardWithDamage() {
  ShardBuilder builder;
  uint64_t middle = 0;
  for (int64_t i = 0; i < 13; ++i) {
    const uint64_t begin = builder.size();
    builder.Add(TestRecord(i));
    if (i == 4) middle = (begin + builder.size()) / 2;
  }
  return WithFlippedBit(builder.Build(), middle * 8);
}

std::unique_ptr<Server> StartServer(const TempFolder& folder, const std::string& listen) {
  absl::StatusOr<Catalogue> catalogue = OpenTestCatalogue(folder / "a-*.tfrecord");
  EXPECT_THAT(catalogue, IsOk());
  absl::StatusOr<std::unique_ptr<Server>> server =
      Server::Start(*std::move(catalogue), ListenOn(listen));
  EXPECT_THAT(server, IsOk());
  return *std::move(server);
}

// Pixels of each layout, type, number of channels and kind of normalize, compact or not, and all
// other kinds of outputs.
std::string Outputs() {
  const std::string three =
      "transforms { normalize { scale: 0.00392156862745098 mean: [0.485, 0.456, 0.406] "
      "stddev: [0.229, 0.224, 0.225] } }";
  const std::string scalar = "transforms { normalize { mean: 127.5 stddev: 63.75 } }";
  std::string outputs = AllOutputs();
  int number = 0;
  const std::string hwcn = "HWCN";
  for (const char* dtype : {"FLOAT32", "BFLOAT16"}) {
    for (const std::string& layout : {std::string("NHWC"), std::string("NCHW"), hwcn}) {
      for (const int channels : {1, 3}) {
        for (const std::string& normalize : {std::string(), scalar, three}) {
          if (channels == 1 && normalize == three) continue;
          const std::string end =
              absl::StrCat(normalize, " dtype: ", dtype, " layout: ", layout, " }");
          absl::StrAppend(&outputs, "outputs { name: 'a", number,
                          "' feature: 'image' transforms { decode_jpeg { channels: ", channels,
                          " } } transforms { random_resized_crop { height: 7 width: 5 } } "
                          "transforms { random_flip {} } transforms { round_to_uint8 {} } ",
                          end);
          ++number;
          // A spec has 64 outputs at most.
          if (channels == 1 && (normalize.empty() || layout == hwcn)) continue;
          absl::StrAppend(&outputs, "outputs { name: 'z", number,
                          "' feature: 'raw' shape: ", channels == 1 ? "[3, 4, 1]" : "[2, 2, 3]",
                          " transforms { decode_raw {} } ",
                          number % 2 == 0 ? "transforms { random_flip {} } " : "", end);
        }
      }
    }
  }
  // Always finished.
  absl::StrAppend(&outputs,
                  "outputs { name: 'tiles' feature: 'raw' shape: [2, 2, 3] dtype: BFLOAT16 "
                  "layout: HWCN_TILED transforms { decode_raw {} } ",
                  three, " }");
  return outputs;
}

v1::FeedSpec Spec(v1::Wire wire, const std::string& outputs = Outputs()) {
  v1::FeedSpec spec = SpecFromText(
      absl::StrCat("dataset: 'test' seed: 3 shuffle { mode: GLOBAL } global_batch: 8 num_cores: 2 "
                   "epochs: 2 tail: PAD on_corrupt: MASK ",
                   outputs));
  spec.set_wire(wire);
  return spec;
}

using Digests = std::map<std::pair<int64_t, int>, std::string>;

Digests Drain(FeedClient& client) {
  Digests digests;
  while (true) {
    const absl::StatusOr<std::optional<Step>> step = client.Next();
    EXPECT_THAT(step, IsOk());
    if (!step.ok() || !step->has_value()) return digests;
    for (int core = (*step)->core_begin(); core < (*step)->core_end(); ++core) {
      digests[{(*step)->number(), core}] = StepDigest(**step, core);
    }
  }
}

std::unique_ptr<FeedClient> MustCreate(v1::Wire wire, FeedClientOptions options) {
  absl::StatusOr<std::unique_ptr<FeedClient>> client =
      FeedClient::Create(Spec(wire), std::move(options));
  EXPECT_THAT(client, IsOk());
  return *std::move(client);
}

class WireDigestTest : public testing::Test {
 protected:
  WireDigestTest() {
    folder_.Write("a-0.tfrecord", ShardWithDamage());
    server_ = StartServer(folder_, "127.0.0.1:0");
  }
  ~WireDigestTest() override { EXPECT_THAT(ForceSimdTarget(""), IsOk()); }

  Digests DigestsOf(v1::Wire wire, FeedClientStats* stats = nullptr) {
    const auto client = MustCreate(wire, {.servers = {server_->address()}});
    Digests digests = Drain(*client);
    if (stats != nullptr) *stats = client->stats();
    return digests;
  }

  TempFolder folder_;
  std::unique_ptr<Server> server_;
};

TEST_F(WireDigestTest, EveryFormGivesTheSameBytesOnEverySimdTarget) {
  const Digests finished = DigestsOf(v1::FINISHED);
  ASSERT_EQ(finished.size(), 2u * 2u * 2u);  // Epochs, steps of 8 out of 13, cores.
  for (const std::string& target : SupportedSimdTargets()) {
    ASSERT_THAT(ForceSimdTarget(target), IsOk());
    EXPECT_EQ(DigestsOf(v1::COMPACT), finished) << target;
    EXPECT_EQ(DigestsOf(v1::AUTO), finished) << target;
  }
}

TEST_F(WireDigestTest, TensorsOfAllCoresInOneBlockHoldTheSameBytesHoweverTheyCome) {
  // Large enough to be shared, where memory can be.
  const std::string outputs = absl::StrCat(Outputs(), R"pb(
    outputs {
      name: "large"
      feature: "image"
      transforms { decode_jpeg {} }
      transforms { resize { height: 200 width: 200 } }
      dtype: FLOAT32
    })pb");
  const auto open = [&](v1::Wire wire, const std::string& address, StepPlacement placement) {
    absl::StatusOr<std::unique_ptr<FeedClient>> client =
        FeedClient::Create(Spec(wire, outputs), {.servers = {address}, .placement = placement});
    EXPECT_THAT(client, IsOk());
    return *std::move(client);
  };
  const Digests finished =
      Drain(*open(v1::FINISHED, server_->address(), StepPlacement::kCoreMajor));
  const auto neighbour = StartServer(folder_, "unix:" + folder_ / "socket");
  for (const std::string& address : {server_->address(), neighbour->address()}) {
    for (const v1::Wire wire : {v1::FINISHED, v1::COMPACT}) {
      SCOPED_TRACE(absl::StrCat(address, " ", v1::Wire_Name(wire)));
      const auto client = open(wire, address, StepPlacement::kTensorMajor);
      EXPECT_EQ(Drain(*client), finished);
      EXPECT_EQ(client->stats().shared_payload_bytes > 0, address != server_->address())
          << client->stats().not_shared;
    }
  }
  const auto client = open(v1::FINISHED, server_->address(), StepPlacement::kTensorMajor);
  const absl::StatusOr<std::optional<Step>> step = client->Next();
  ASSERT_THAT(step, IsOk());
  for (int index = 0; index < static_cast<int>((*step)->layout().tensors().size()); ++index) {
    const TensorView first = (*step)->Tensor(0, index);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(first.data) % 64, 0u);
    EXPECT_EQ((*step)->Tensor(1, index).data, first.data + first.num_bytes());
  }
}

TEST_F(WireDigestTest, CompactTravelsWithFewerBytes) {
  FeedClientStats finished, compact;
  DigestsOf(v1::FINISHED, &finished);
  DigestsOf(v1::COMPACT, &compact);
  EXPECT_EQ(finished.payload_bytes, finished.delivered_bytes);
  EXPECT_EQ(finished.compact_steps, 0);
  EXPECT_EQ(compact.delivered_bytes, finished.delivered_bytes);
  EXPECT_EQ(compact.compact_steps, 4);
  EXPECT_EQ(compact.wire_changes, 0);
  // FLOAT32 and BFLOAT16 in equal parts: a third, but for the outputs that travel as they are, of
  // which the one in tiles is mostly padding.
  EXPECT_LT(compact.payload_bytes, finished.payload_bytes * 6 / 10);
  EXPECT_GT(compact.payload_bytes, finished.payload_bytes * 3 / 10);
}

TEST_F(WireDigestTest, ATokenTakenUnderOneFormResumesUnderAnother) {
  const Digests finished = DigestsOf(v1::FINISHED);
  const auto client = MustCreate(v1::COMPACT, {.servers = {server_->address()}});
  ASSERT_THAT(client->Next(), IsOk());
  for (const v1::Wire wire : {v1::FINISHED, v1::COMPACT, v1::AUTO}) {
    const auto resumed =
        FeedClient::Resume(Spec(wire), client->Token(), {.servers = {server_->address()}});
    ASSERT_THAT(resumed, IsOk());
    EXPECT_EQ((*resumed)->next_step(), 1);
    EXPECT_EQ((*resumed)->info().identity().spec_fingerprint(),
              client->info().identity().spec_fingerprint());
    Digests rest = finished;
    rest.erase({0, 0});
    rest.erase({0, 1});
    EXPECT_EQ(Drain(**resumed), rest);
  }
}

TEST_F(WireDigestTest, SomeCoresOfACompactFeedAreThoseOfTheWhole) {
  const Digests finished = DigestsOf(v1::FINISHED);
  const auto client =
      MustCreate(v1::COMPACT, {.servers = {server_->address()}, .core_begin = 1, .core_end = 2});
  const Digests second_core = Drain(*client);
  EXPECT_EQ(second_core.size(), 4u);
  for (const auto& [place, digest] : second_core) EXPECT_EQ(digest, finished.at(place));
}

}  // namespace
}  // namespace systole
