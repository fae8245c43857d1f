// Reads the input as a server's answer to ResolveFeed: as the whole answer, or as changes to a
// valid answer. The first byte chooses the spec and one of these two ways. If CheckFeedAnswer()
// accepts the answer, LayoutOf(), StepFinisher and OrderOf() must accept the answer, too, and the
// order must have answer.total_steps() steps. Error texts, and the texts of a cleaned answer, must
// be fit to print.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "client/lanes/step_finisher.h"
#include "client/servers/server_answer.h"
#include "core/status/check.h"
#include "core/text/foreign_text.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/text_format.h"
#include "proto/framing/layout_description.h"
#include "systole/v1/service.pb.h"
#include "tests/fuzz/fuzzer.h"

namespace {

using namespace systole;

constexpr size_t kWhole = 1 << 20;  // With this limit ForeignText() cuts nothing off.

struct Feed {
  v1::FeedSpec spec;
  v1::ResolveFeedResponse honest;
};

// A feed with two cores and four examples per core in each step. Its output `x` has three values
// for each example. The argument `honest` is a text that has, of a valid answer, only the fields
// that say how many records there are. The function adds the other fields.
Feed MakeFeed(const std::string& spec, const std::string& honest, DType dtype = DType::kUint8) {
  using google::protobuf::TextFormat;
  Feed feed;
  SYSTOLE_CHECK(TextFormat::ParseFromString(
      spec + " seed: 3 epochs: 2 global_batch: 8 num_cores: 2 shuffle { mode: GLOBAL }"
             " outputs { name: 'x' feature: 'x' shape: 3 }",
      &feed.spec));
  feed.spec.mutable_outputs(0)->set_dtype(static_cast<v1::DataType>(dtype));
  SYSTOLE_CHECK(TextFormat::ParseFromString(
      honest + " identity { dataset_fingerprint: 1 order_fingerprint: 2 content_version: 'fuzz' }",
      &feed.honest));
  const absl::StatusOr<SliceLayout> layout =
      SliceLayout::Create({{.spec = {.name = "valid", .dtype = DType::kUint8, .shape = {4}}},
                           {.spec = {.name = "x", .dtype = dtype, .shape = {4, 3}}}});
  SYSTOLE_CHECK(layout.ok());
  DescribeLayout(*layout, feed.honest);
  if (dtype != DType::kUint8) {
    v1::CompactForm& form = *feed.honest.mutable_tensors(1)->mutable_compact();
    form.add_scale(0.5f);
    form.add_bias(1);
  }
  feed.honest.set_bytes_per_step(2 * layout->payload_bytes());
  const absl::StatusOr<Order> order = OrderOf(feed.honest, feed.spec);
  SYSTOLE_CHECK(order.ok());
  feed.honest.set_steps_per_epoch(order->steps_per_epoch());
  feed.honest.set_total_steps(order->total_steps().value());
  SYSTOLE_CHECK(CheckFeedAnswer(feed.honest, feed.spec).ok());
  return feed;
}

std::vector<Feed> Feeds() {
  return {MakeFeed("dataset: 'a' tail: PAD", "num_records: 21"),
          MakeFeed("dataset: 'a' tail: DROP select { interleave { cycle_length: 2 } }",
                   "num_records: 30 records_per_shard: 10 records_per_shard: 20"),
          MakeFeed("mixture { dataset: 'a' weight: 1 } mixture { dataset: 'b' weight: 2 }",
                   "num_records: 40 members { num_records: 10 } members { num_records: 30 }"),
          MakeFeed("concatenation { dataset: 'a' } concatenation { dataset: 'b' }",
                   "num_records: 17 members { num_records: 8 } members { num_records: 9 }"),
          MakeFeed("dataset: 'a' tail: PAD", "num_records: 21", DType::kBfloat16)};
}

// For each field that `changes` has, replaces this field of `answer`.
void Change(const v1::ResolveFeedResponse& changes, v1::ResolveFeedResponse& answer) {
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  changes.GetReflection()->ListFields(changes, &fields);
  for (const auto* field : fields) answer.GetReflection()->ClearField(&answer, field);
  answer.MergeFrom(changes);
}

void Use(const v1::ResolveFeedResponse& answer, const v1::FeedSpec& spec) {
  const absl::StatusOr<SliceLayout> layout = LayoutOf(answer);
  SYSTOLE_CHECK(layout.ok());
  SYSTOLE_CHECK(CheckSameFeed(answer, answer, spec, /*allow_mixed_content=*/false).ok());
  const auto shape =
      std::make_shared<const StepShape>(StepShape{.layout = *layout, .core_end = spec.num_cores()});
  SYSTOLE_CHECK(StepFinisher::Create(answer, shape).ok());
  const absl::StatusOr<Order> order = OrderOf(answer, spec);
  SYSTOLE_CHECK(order.ok() && order->total_steps() == answer.total_steps());
  for (const int64_t step : {int64_t{0}, answer.total_steps() - 1}) {
    for (int core = 0; step >= 0 && core < spec.num_cores(); ++core) {
      for (int64_t slot = 0; slot < layout->per_core_batch(); ++slot) {
        const Place place = order->PlaceOnCore(step, core, slot);
        SYSTOLE_CHECK(!place.record.has_value() ||
                      (*place.record >= 0 && *place.record < answer.num_records()));
      }
    }
  }
}

}  // namespace

SYSTOLE_FUZZER(answer, const uint8_t* data, size_t size) {
  static const auto* const feeds = new std::vector<Feed>(Feeds());
  if (size == 0) return 0;
  const Feed& feed = (*feeds)[(data[0] >> 1) % feeds->size()];
  v1::ResolveFeedResponse answer;
  if (!answer.ParseFromArray(data + 1, static_cast<int>(size - 1))) return 0;
  if (data[0] % 2 == 0) {
    v1::ResolveFeedResponse changed = feed.honest;
    Change(answer, changed);
    answer = std::move(changed);
  }
  const absl::Status checked = CheckFeedAnswer(answer, feed.spec);
  SYSTOLE_CHECK(ForeignText(checked.message(), kWhole) == checked.message());
  if (checked.ok()) Use(answer, feed.spec);
  if (!CleanAnswer(answer).ok()) return 0;
  const std::string text = answer.identity().content_version();
  SYSTOLE_CHECK(ForeignText(text, kWhole) == text);
  return 0;
}
