// Tests the checks of a server's answer: the fields for compact forms, for `where`, and for how
// transforms run. tests/client/feed/hostile_server_test.cc tests the other fields.
#include "client/servers/server_answer.h"

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "core/batch/slice_layout.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "proto/framing/layout_description.h"
#include "systole/v1/service.pb.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

v1::FeedSpec Spec() {
  v1::FeedSpec spec;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      "dataset: 'a' epochs: 1 global_batch: 8 num_cores: 2 "
      "outputs { name: 'x' feature: 'x' shape: [2, 3] } "
      "outputs { name: 'y' feature: 'y' dtype: INT64 }",
      &spec));
  return spec;
}

// The answer for x float32[4, 2, 3] and y int64[4], without compact forms.
v1::ResolveFeedResponse Answer() {
  const auto layout =
      SliceLayout::Create({{.spec = {.name = "valid", .dtype = DType::kUint8, .shape = {4}}},
                           {.spec = {.name = "x", .dtype = DType::kFloat32, .shape = {4, 2, 3}}},
                           {.spec = {.name = "y", .dtype = DType::kInt64, .shape = {4}}}});
  EXPECT_THAT(layout, IsOk());
  v1::ResolveFeedResponse answer;
  DescribeLayout(*layout, answer);
  answer.set_num_records(16);
  answer.set_steps_per_epoch(2);
  answer.set_total_steps(2);
  answer.set_bytes_per_step(2 * layout->payload_bytes());
  answer.mutable_identity()->set_content_version("test");
  return answer;
}

// Answer() with a compact form for tensor number `tensor`. `fill` sets the form's fields.
v1::ResolveFeedResponse With(const std::function<void(v1::CompactForm&)>& fill, int tensor = 1) {
  v1::ResolveFeedResponse answer = Answer();
  fill(*answer.mutable_tensors(tensor)->mutable_compact());
  return answer;
}

void Factors(v1::CompactForm& form, int scales, int biases, int axis = 0) {
  for (int i = 0; i < scales; ++i) form.add_scale(2);
  for (int i = 0; i < biases; ++i) form.add_bias(1);
  form.set_channel_axis(axis);
}

void Table(v1::CompactForm& form, int entries, int axis = 0) {
  for (int i = 0; i < entries; ++i) form.add_table(static_cast<float>(i));
  form.set_channel_axis(axis);
}

TEST(ServerAnswerTest, ValidCompactFormsAreAccepted) {
  EXPECT_THAT(CheckFeedAnswer(Answer(), Spec()), IsOk());
  for (const std::function<void(v1::CompactForm&)>& fill :
       {std::function<void(v1::CompactForm&)>([](auto& form) { Factors(form, 1, 1); }),
        {[](auto& form) { Factors(form, 3, 3, 2); }},
        {[](auto& form) { Factors(form, 2, 2, 1); }},
        {[](auto& form) { Table(form, 256); }},
        {[](auto& form) { Table(form, 3 * 256, 2); }}}) {
    EXPECT_THAT(CheckFeedAnswer(With(fill), Spec()), IsOk());
  }
}

TEST(ServerAnswerTest, AnAnswerNeedsOneValidRecordCountForEachWhere) {
  v1::FeedSpec spec = Spec();
  spec.set_tail(v1::PAD);
  spec.add_select()->mutable_where()->set_feature("label");
  const auto check = [&spec](const std::vector<int64_t>& records) {
    v1::ResolveFeedResponse answer = Answer();
    for (const int64_t each : records) {
      answer.add_where_records(each);
      answer.add_where_hashes(5);
    }
    const int64_t steps = records.empty() ? 1 : (records[0] - 1) / spec.global_batch() + 1;
    answer.set_steps_per_epoch(steps);
    answer.set_total_steps(steps * spec.epochs());
    return CheckFeedAnswer(answer, spec);
  };
  const int64_t all = Answer().num_records();
  EXPECT_THAT(check({all}), IsOk());
  EXPECT_THAT(check({1}), IsOk());
  for (const std::vector<int64_t>& wrong :
       {std::vector<int64_t>{}, {-1}, {all + 1}, {1, 1}, {std::numeric_limits<int64_t>::max()}}) {
    EXPECT_THAT(check(wrong), StatusIs(absl::StatusCode::kInternal, HasSubstr("where_records")));
  }
}

TEST(ServerAnswerTest, NanAndInfiniteFactorsOfCompactFormsAreAccepted) {
  const auto odd = [](v1::CompactForm& form) {
    form.add_scale(std::numeric_limits<float>::quiet_NaN());
    form.add_bias(-std::numeric_limits<float>::infinity());
  };
  EXPECT_THAT(CheckFeedAnswer(With(odd), Spec()), IsOk());
  // Two such answers count as the same feed, although a NaN does not equal itself.
  EXPECT_THAT(CheckSameFeed(With(odd), With(odd), Spec(), /*allow_mixed_content=*/false), IsOk());
}

TEST(ServerAnswerTest, AnAnswerThatRunsMoreTransformsThanTheSpecHasIsRefused) {
  v1::FeedSpec spec = Spec();
  spec.mutable_outputs(0)->add_transforms()->mutable_decode_raw();
  v1::ResolveFeedResponse answer = Answer();
  answer.mutable_tensors(1)->add_runs(v1::FUSED);
  EXPECT_THAT(CheckFeedAnswer(answer, spec), IsOk());
  // Another release of the server may run a transform in another way, or not say how.
  EXPECT_THAT(CheckSameFeed(Answer(), answer, Spec(), /*allow_mixed_content=*/false), IsOk());
  answer.mutable_tensors(1)->add_runs(v1::ALONE);
  EXPECT_THAT(
      CheckFeedAnswer(answer, spec),
      StatusIs(
          absl::StatusCode::kInternal,
          HasSubstr("the answer says how 2 transforms of tensor 'x' run, but the spec has 1")));
  for (const int tensor : {0, 2}) {
    answer = Answer();
    answer.mutable_tensors(tensor)->add_runs(v1::FUSED);
    EXPECT_THAT(CheckFeedAnswer(answer, spec),
                StatusIs(absl::StatusCode::kInternal, HasSubstr("how 1 transforms of tensor")));
  }
}

TEST(ServerAnswerTest, InvalidCompactFormsAreRefused) {
  const auto refuses = [](const std::string& message,
                          const std::function<void(v1::CompactForm&)>& fill, int tensor = 1) {
    EXPECT_THAT(CheckFeedAnswer(With(fill, tensor), Spec()),
                StatusIs(absl::StatusCode::kInternal, HasSubstr(message)));
  };
  refuses(
      "tensor 'x' has a compact form of 0 scales and 0 biases, want the same number of each, 1 to "
      "16",
      [](auto&) {});
  refuses("of 1 scales and 0 biases", [](auto& form) { Factors(form, 1, 0); });
  refuses("of 3 scales and 1 biases", [](auto& form) { Factors(form, 3, 1, 2); });
  refuses("of 17 scales", [](auto& form) { Factors(form, 17, 17, 2); });
  refuses("with a table of 255 entries, want 256 for each of 1 to 8 channels",
          [](auto& form) { Table(form, 255); });
  refuses("with a table of 2304 entries", [](auto& form) { Table(form, 9 * 256, 2); });
  refuses("of factors and a table, want only one of the two", [](auto& form) {
    Factors(form, 1, 1);
    Table(form, 256);
  });
  refuses("with channel_axis 3, want 0 to 2", [](auto& form) { Factors(form, 3, 3, 3); });
  refuses("with channel_axis -1", [](auto& form) { Factors(form, 1, 1, -1); });
  refuses("for 3 channels, but dimension 1 counts 2", [](auto& form) { Factors(form, 3, 3, 1); });
  refuses("for 2 channels, but dimension 2 counts 3", [](auto& form) { Table(form, 512, 2); });
  // Dimension 0 has the right size, 4, but it counts examples and not channels.
  refuses("for 4 channels, but dimension 0 counts examples",
          [](auto& form) { Table(form, 4 * 256, 0); });
  refuses(
      "tensor 'y' has a compact form and dtype 3, want a type of floats",
      [](auto& form) { Factors(form, 1, 1); }, 2);
  refuses(
      "tensor 'valid' has a compact form and dtype 1", [](auto& form) { Factors(form, 1, 1); }, 0);
}

TEST(ServerAnswerTest, AllServersOfAFeedMustSendTheSameCompactForms) {
  const auto one = With([](auto& form) { Factors(form, 1, 1); });
  const auto other = With([](auto& form) { Table(form, 256); });
  for (const auto& [answer, first] : {std::pair(one, other), std::pair(other, one),
                                      std::pair(one, Answer()), std::pair(Answer(), one)}) {
    for (const bool allow_mixed_content : {false, true}) {
      EXPECT_THAT(CheckSameFeed(answer, first, Spec(), allow_mixed_content),
                  StatusIs(absl::StatusCode::kFailedPrecondition,
                           HasSubstr("wants tensor 'x' finished in a different way")));
    }
  }
}

TEST(ServerAnswerTest, DifferentWhereRecordsAreAnErrorThatSuggestsAnIndexRebuild) {
  v1::FeedSpec spec = Spec();
  v1::Where& where = *spec.add_select()->mutable_where();
  where.add_any()->set_feature("width");
  where.add_any()->set_feature("label");
  v1::ResolveFeedResponse first = Answer();
  first.add_where_records(7);
  first.add_where_hashes(0xa);
  v1::ResolveFeedResponse answer = first;
  answer.set_where_records(0, 6);
  answer.set_where_hashes(0, 0xb);
  answer.mutable_identity()->set_order_fingerprint(1);
  EXPECT_THAT(
      CheckSameFeed(answer, first, spec, /*allow_mixed_content=*/true),
      StatusIs(absl::StatusCode::kFailedPrecondition,
               AllOf(HasSubstr("6 of hash 000000000000000b, want 7 of hash 000000000000000a"),
                     HasSubstr("`systole index --columns label,width --rebuild`"))));
  // If the datasets differ, too, the error names the datasets first.
  answer.mutable_identity()->set_dataset_fingerprint(1);
  EXPECT_THAT(CheckSameFeed(answer, first, spec, /*allow_mixed_content=*/true),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("the same shards")));
}

}  // namespace
}  // namespace systole
