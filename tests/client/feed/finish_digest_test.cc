// Tests a real server with a real client. Either of the two can finish a tensor, which is to apply
// its last normalize or cast. If the client finishes a tensor, the tensor travels in its compact
// form, uint8. The trainer must get the same bytes in both cases.
#include <cstdint>
#include <iterator>
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

// A shard of 13 records, of which record 4 is damaged. So the feeds of Spec() have a masked example
// in each epoch, and padding.
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

// The outputs of a spec. Those whose names begin with "a" or "z" are pixel outputs, one for each
// possible combination of type, layout, last transforms and number of channels. A pixel output is
// finished by factors, by one table for all channels, or by a table for each channel. The spec
// also has outputs of all other kinds. A spec has 64 outputs at most, so `part` (0 or 1) chooses
// half of the pixel outputs.
std::string Outputs(int part) {
  const std::string unit = "transforms { cast { dtype: FLOAT32 scale: true } } ";
  const std::string three =
      "transforms { normalize { mean: [0.485, 0.456, 0.406] stddev: [0.229, 0.224, 0.225] } } ";
  const std::string ends[] = {
      "",
      "transforms { normalize { mean: 127.5 stddev: 63.75 } } ",
      "transforms { normalize { scale: 0.0039 mean: [0.485, 0.456, 0.406] stddev: 0.229 } } ",
      unit + three,
      "transforms { gamma { gamma_min: 0.7 gamma_max: 0.7 } } " + unit,
      unit +
          "transforms { brightness { delta_min: 0.1 delta_max: 0.1 } } transforms { "
          "clip_by_value { min: 0.2 max: 0.9 } } ",
  };
  std::string outputs = AllOutputs();
  int number = 0;
  for (const char* const dtype : {"FLOAT32", "BFLOAT16", "FLOAT16"}) {
    for (const char* const layout : {"NHWC", "NCHW", "HWCN"}) {
      for (size_t end = 0; end < std::size(ends); ++end) {
        for (const int channels : {1, 3}) {
          const bool of_three = end == 2 || end == 3;
          if ((channels == 1 && of_three) || number++ / 3 % 2 != part) continue;
          const std::string rest =
              absl::StrCat(ends[end], " dtype: ", dtype, " layout: ", layout, " }");
          if (number % 3 == 0) {
            absl::StrAppend(&outputs, "outputs { name: 'z", number,
                            "' feature: 'raw' shape: ", channels == 1 ? "[3, 4, 1]" : "[2, 2, 3]",
                            " transforms { decode_raw {} } ", rest);
          } else {
            absl::StrAppend(&outputs, "outputs { name: 'a", number,
                            "' feature: 'image' transforms { decode_jpeg { channels: ", channels,
                            " } } transforms { random_resized_crop { height: 7 width: 5 } } "
                            "transforms { random_flip {} } transforms { round_to_uint8 {} } ",
                            rest);
          }
        }
      }
    }
  }
  // An output of four channels (`four`), two that are no images (`flat`, `whole_numbers`), and one
  // that the server always finishes (`tiles`).
  absl::StrAppend(
      &outputs,
      "outputs { name: 'four' feature: 'raw' shape: [3, 1, 4] dtype: BFLOAT16 layout: NCHW "
      "transforms { decode_raw {} } transforms { normalize { mean: [1, 2, 3, 4] } } transforms { "
      "clip_by_value { min: 0 max: 100 } } } "
      "outputs { name: 'flat' feature: 'raw' shape: 12 transforms { decode_raw {} } ",
      unit,
      "} outputs { name: 'whole_numbers' feature: 'pair' shape: 2 transforms { cast { dtype: UINT8 "
      "} } transforms { normalize { mean: [1, 2] } } } "
      "outputs { name: 'tiles' feature: 'raw' shape: [2, 2, 3] dtype: BFLOAT16 layout: HWCN_TILED "
      "transforms { decode_raw {} } ",
      unit, three, " }");
  return outputs;
}

v1::FeedSpec Spec(const std::string& outputs = Outputs(0)) {
  return SpecFromText(
      absl::StrCat("dataset: 'test' seed: 3 shuffle { mode: GLOBAL } global_batch: 8 num_cores: 2 "
                   "epochs: 2 tail: PAD on_corrupt: MASK ",
                   outputs));
}

using Digests = std::map<std::pair<int64_t, int>, std::string>;

Digests DrainToDigests(FeedClient& client) {
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

class FinishDigestTest : public testing::Test {
 protected:
  FinishDigestTest() {
    folder_.Write("a-0.tfrecord", ShardWithDamage());
    server_ = StartServer(folder_, "127.0.0.1:0");
  }
  ~FinishDigestTest() override { EXPECT_THAT(ForceSimdTarget(""), IsOk()); }

  std::unique_ptr<FeedClient> Open(const std::string& finish, FeedClientOptions options = {},
                                   const v1::FeedSpec& spec = Spec()) {
    if (options.servers.empty()) options.servers = {server_->address()};
    options.finish = finish;
    absl::StatusOr<std::unique_ptr<FeedClient>> client =
        FeedClient::Create(spec, std::move(options));
    EXPECT_THAT(client, IsOk());
    return *std::move(client);
  }
  Digests DigestsOf(const std::string& finish, const v1::FeedSpec& spec = Spec()) {
    return DrainToDigests(*Open(finish, {}, spec));
  }

  TempFolder folder_;
  std::unique_ptr<Server> server_;
};

TEST_F(FinishDigestTest, EveryFormGivesTheSameBytesOnEverySimdTarget) {
  for (const int part : {0, 1}) {
    const v1::FeedSpec spec = Spec(Outputs(part));
    const Digests finished = DigestsOf("server", spec);
    ASSERT_EQ(finished.size(), 2u * 2u * 2u);  // 2 epochs, 2 steps of 8 for 13 records, 2 cores.
    for (const std::string& target : SupportedSimdTargets()) {
      ASSERT_THAT(ForceSimdTarget(target), IsOk());
      EXPECT_EQ(DigestsOf("client", spec), finished) << target;
    }
    ASSERT_THAT(ForceSimdTarget(""), IsOk());
    EXPECT_EQ(DigestsOf("auto", spec), finished);
  }
}

TEST_F(FinishDigestTest, CompactTensorsUseFactorsWherePossibleAndTablesOtherwise) {
  const auto client = Open("client");
  int factors = 0;
  int tables = 0;
  for (const v1::TensorDescription& tensor : client->info().tensors()) {
    SCOPED_TRACE(tensor.name());
    factors += tensor.compact().scale_size() > 0 ? 1 : 0;
    tables += tensor.compact().table_size() > 0 ? 1 : 0;
    const bool is_pixels = tensor.name()[0] == 'a' || tensor.name()[0] == 'z';
    EXPECT_TRUE(tensor.has_compact() || !is_pixels);
    if (tensor.name() == "four") {
      EXPECT_EQ(tensor.compact().table_size(), 4 * 256);
    } else if (tensor.name() == "flat") {
      EXPECT_EQ(tensor.compact().table_size(), 256);
    } else if (tensor.name() == "whole_numbers") {
      EXPECT_EQ(tensor.compact().scale_size(), 2);
    } else if (!is_pixels) {
      EXPECT_FALSE(tensor.has_compact());
    }
  }
  EXPECT_GT(factors, 10);
  EXPECT_GT(tables, 10);
}

TEST_F(FinishDigestTest, TensorMajorPlacementHasTheSameBytesOverTcpAndSharedMemory) {
  // Because of the output `large`, the slices are large enough for shared memory.
  const v1::FeedSpec spec = Spec(absl::StrCat(Outputs(1), R"pb(
    outputs {
      name: "large"
      feature: "image"
      transforms { decode_jpeg {} }
      transforms { resize { height: 200 width: 200 } }
      transforms { round_to_uint8 {} }
      dtype: FLOAT32
    })pb"));
  const Digests finished =
      DrainToDigests(*Open("server", {.placement = StepPlacement::kCoreMajor}, spec));
  const auto neighbour = StartServer(folder_, "unix:" + folder_ / "socket");
  for (const std::string& address : {server_->address(), neighbour->address()}) {
    for (const char* const finish : {"auto", "server", "client"}) {
      SCOPED_TRACE(absl::StrCat(address, " ", finish));
      const auto client =
          Open(finish, {.servers = {address}, .placement = StepPlacement::kTensorMajor}, spec);
      EXPECT_EQ(DrainToDigests(*client), finished);
      const bool near = address != server_->address();
      EXPECT_EQ(client->stats().shared_payload_bytes > 0, near) << client->stats().not_shared;
      // Tensors that travel through shared memory are always finished by the server.
      EXPECT_EQ(client->stats().compact_steps > 0, !near && finish != std::string("server"));
    }
  }
  // Without shared memory, the tensors come in the form that the client has requested.
  const auto by_socket =
      Open("client", {.servers = {neighbour->address()}, .share_memory = false}, spec);
  EXPECT_EQ(DrainToDigests(*by_socket), finished);
  EXPECT_EQ(by_socket->stats().compact_steps, 4);
  const auto client = Open("server", {.placement = StepPlacement::kTensorMajor}, spec);
  const absl::StatusOr<std::optional<Step>> step = client->Next();
  ASSERT_THAT(step, IsOk());
  for (int index = 0; index < static_cast<int>((*step)->layout().tensors().size()); ++index) {
    const TensorView first = (*step)->Tensor(0, index);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(first.data) % 64, 0u);
    EXPECT_EQ((*step)->Tensor(1, index).data, first.data + first.num_bytes());
  }
}

TEST_F(FinishDigestTest, CompactTravelsWithFewerBytes) {
  const auto finished = Open("server");
  const auto compact = Open("client");
  DrainToDigests(*finished);
  DrainToDigests(*compact);
  EXPECT_EQ(finished->stats().payload_bytes, finished->stats().delivered_bytes);
  EXPECT_EQ(finished->stats().compact_steps, 0);
  EXPECT_EQ(compact->stats().delivered_bytes, finished->stats().delivered_bytes);
  EXPECT_EQ(compact->stats().compact_steps, 4);
  // A pixel's value takes 4 or 2 bytes if finished, and 1 byte in the compact form. The other
  // outputs travel unchanged, among them the tiled output, which is mostly padding.
  EXPECT_LT(compact->stats().payload_bytes, finished->stats().payload_bytes * 7 / 10);
  EXPECT_GT(compact->stats().payload_bytes, finished->stats().payload_bytes * 3 / 10);
  EXPECT_EQ(compact->info().bytes_per_step(), finished->info().bytes_per_step());
}

// Six clients take each step one after the other. Three clients request finished tensors, and three
// request the compact form. So the server's engine has already made a slice in one form when a
// client requests the slice in the other form.
TEST_F(FinishDigestTest, StreamsOfBothFormsAtATimeAreNotMixedUp) {
  const Digests finished = DigestsOf("server");
  std::vector<std::unique_ptr<FeedClient>> clients;
  for (int i = 0; i < 6; ++i) {
    clients.push_back(Open(i % 2 == 0 ? "server" : "client", {.prefetch_bytes = 0}));
  }
  std::vector<Digests> seen(clients.size());
  for (int step = 0; step < 4; ++step) {
    for (size_t i = 0; i < clients.size(); ++i) {
      const absl::StatusOr<std::optional<Step>> next = clients[i]->Next();
      ASSERT_THAT(next, IsOk());
      for (int core = 0; core < 2; ++core) seen[i][{step, core}] = StepDigest(**next, core);
    }
  }
  for (const Digests& digests : seen) EXPECT_EQ(digests, finished);
}

TEST_F(FinishDigestTest, ATokenTakenUnderOneFormResumesUnderAnother) {
  const Digests finished = DigestsOf("server");
  Digests rest = finished;
  rest.erase({0, 0});
  rest.erase({0, 1});
  for (const char* const first : {"server", "client"}) {
    const auto client = Open(first);
    ASSERT_THAT(client->Next(), IsOk());
    for (const char* const then : {"server", "client", "auto"}) {
      const auto resumed = FeedClient::Resume(Spec(), client->Token(),
                                              {.servers = {server_->address()}, .finish = then});
      ASSERT_THAT(resumed, IsOk());
      EXPECT_EQ((*resumed)->next_step(), 1);
      EXPECT_EQ((*resumed)->info().identity().SerializeAsString(),
                client->info().identity().SerializeAsString());
      EXPECT_EQ(DrainToDigests(**resumed), rest);
    }
  }
}

TEST_F(FinishDigestTest, AServerThatDiesInTheMiddleChangesNothing) {
  const Digests finished = DigestsOf("server");
  auto second = StartServer(folder_, "127.0.0.1:0");
  const auto client =
      Open("client", {.servers = {server_->address(), second->address()}, .prefetch_bytes = 0});
  Digests digests;
  for (int step = 0; step < 4; ++step) {
    const absl::StatusOr<std::optional<Step>> next = client->Next();
    ASSERT_THAT(next, IsOk());
    for (int core = 0; core < 2; ++core) digests[{step, core}] = StepDigest(**next, core);
    if (step == 0) second.reset();
  }
  EXPECT_EQ(digests, finished);
}

TEST_F(FinishDigestTest, ASubsetOfCoresGetsTheSameBytesFromACompactFeed) {
  const Digests finished = DigestsOf("server");
  const auto client = Open("client", {.core_begin = 1, .core_end = 2});
  const Digests second_core = DrainToDigests(*client);
  EXPECT_EQ(second_core.size(), 4u);
  for (const auto& [place, digest] : second_core) EXPECT_EQ(digest, finished.at(place));
}

// The server mixes the images of 2 examples in the output `mixed`, and sends this output finished.
// The output `plain` travels in the compact form.
TEST_F(FinishDigestTest, TheServerFinishesMixedOutputsAndSendsOthersCompact) {
  const std::string pixels =
      "feature: 'raw' shape: [2, 2, 3] dtype: BFLOAT16 transforms { decode_raw {} } transforms { "
      "normalize { mean: 100 stddev: 50 } } }";
  const v1::FeedSpec spec =
      Spec(absl::StrCat("mix { group: 2 images: 'mixed' mixup {} } outputs { name: 'mixed' ",
                        pixels, " outputs { name: 'plain' ", pixels));
  const auto client = Open("client", {}, spec);
  for (const v1::TensorDescription& tensor : client->info().tensors()) {
    EXPECT_EQ(tensor.has_compact(), tensor.name() == "plain") << tensor.name();
  }
  EXPECT_EQ(DrainToDigests(*client), DigestsOf("server", spec));
}

}  // namespace
}  // namespace systole
