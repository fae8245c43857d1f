// A feed spec that was checked against a dataset and translated. The plan says where each tensor
// lies in a slice (one core's part of a step), and how one example is made.
//
// Thread-compatible; immutable except for output_costs(), which is thread-safe. So any number of
// threads may use a plan.
#ifndef SYSTOLE_CORE_PLAN_FEED_PLAN_H_
#define SYSTOLE_CORE_PLAN_FEED_PLAN_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "core/batch/slice_layout.h"
#include "core/dataset/dataset.h"
#include "core/dataset/record_lists.h"
#include "core/example/example_parser.h"
#include "core/order/order.h"
#include "core/plan/mix_plan.h"
#include "core/plan/output_costs.h"
#include "core/plan/output_plan.h"
#include "core/spec/order_spec.h"
#include "core/spec/transform_runs.h"
#include "systole/v1/feed.pb.h"

namespace systole {

// The most elements that the reference implementations of core/operations may make for one example,
// summed over all outputs. They take some seconds of a thread's time.
inline constexpr int64_t kMaxInterpretedElements = int64_t{64} << 20;

// The dataset that `spec` names. If `spec` names members instead, they are joined into one dataset,
// or zipped. `find` finds a dataset by its name.
//   InvalidArgument  the errors of CheckMembers(), Dataset::Join() and SharedZip().
// Also the errors of `find`.
using FindDataset =
    absl::FunctionRef<absl::StatusOr<std::shared_ptr<const Dataset>>(const std::string& name)>;
absl::StatusOr<std::shared_ptr<const Dataset>> DatasetOf(const v1::FeedSpec& spec,
                                                         FindDataset find);

// The list of the records that meet a `where`: its length and a hash of it.
struct WhereList {
  int64_t records = 0;
  uint64_t hash = 0;
};

class FeedPlan {
 public:
  // Checks `spec` and translates it. No record is decoded, but the features of a sample record are
  // compared with what the outputs need. After all other checks, the columns of the shards are read
  // to make the list of records of each `where`. As long as the plan lives, `lists` offers these
  // lists to other plans. If `lists` is null, the plan has lists of its own. Each new list takes
  // one of the places of `peer` (RecordLists).
  //   InvalidArgument  the message has the field of the spec, what was seen and what was wanted.
  //   NotFound         the spec names another dataset, or members that `dataset` does not have.
  // Also the errors of ListOf().
  static absl::StatusOr<std::shared_ptr<const FeedPlan>> Create(
      const v1::FeedSpec& spec, std::shared_ptr<const Dataset> dataset,
      std::shared_ptr<RecordLists> lists = nullptr, const std::string& peer = "");

  const v1::FeedSpec& spec() const { return spec_; }
  const Dataset& dataset() const { return *dataset_; }
  const Order& order() const { return order_; }
  // One element for each `where`, in the order that FindList describes.
  const std::vector<WhereList>& where_lists() const { return where_lists_; }
  // Other plans over the same records may use these lists, too.
  const std::shared_ptr<RecordLists>& lists() const { return lists_; }
  const SliceLayout& layout() const { return layout_; }
  const ExampleParser& parser() const { return parser_; }
  const std::vector<OutputPlan>& outputs() const { return outputs_; }
  // How examples are mixed with their neighbours; nullopt: they are not mixed.
  const std::optional<MixPlan>& mix() const { return mix_; }
  // How many neighbouring examples of a slice one thread has to make: a whole group if examples are
  // mixed, otherwise 1. The number divides the per-core batch.
  int64_t group() const { return mix_.has_value() ? mix_->group : 1; }
  int num_cores() const { return NumCoresOf(spec_); }
  // The cost of an example: how many values are computed for it (example_cost.h).
  int64_t example_elements() const { return example_elements_; }
  // The measured costs of the outputs. The threads that make examples add their times.
  OutputCosts& output_costs() const { return output_costs_; }
  // For each of spec().outputs(), in this order, how its transforms run: fused, by row or alone.
  SpecRuns runs() const;
  // Whether some output needs the record's features.
  bool parses_examples() const { return !parser_.names().empty(); }
  // Whether some output is made by the image stages. These stages look at a record's bytes more
  // than once, so the bytes must not change between two looks.
  bool decodes_images() const;
  // Whether some output is decoded from a JPEG. If so, an example may wait until another example
  // can be decoded together with it.
  bool decodes_jpegs() const;

  // See SpecFingerprint() in core/operations/canonical_spec.h.
  uint64_t fingerprint() const { return fingerprint_; }
  // See Order::Fingerprint.
  uint64_t order_fingerprint() const { return order_.Fingerprint(dataset_->fingerprint()); }

 private:
  FeedPlan(v1::FeedSpec spec, std::shared_ptr<const Dataset> dataset,
           std::shared_ptr<RecordLists> lists, Order order, std::vector<WhereList> where_lists,
           SliceLayout layout, ExampleParser parser, std::vector<OutputPlan> outputs,
           std::optional<MixPlan> mix, int64_t example_elements);

  const v1::FeedSpec spec_;
  const std::shared_ptr<const Dataset> dataset_;
  const std::shared_ptr<RecordLists> lists_;
  const Order order_;
  const std::vector<WhereList> where_lists_;
  const SliceLayout layout_;
  const ExampleParser parser_;
  const std::vector<OutputPlan> outputs_;
  const std::optional<MixPlan> mix_;
  const int64_t example_elements_;
  const uint64_t fingerprint_;
  mutable OutputCosts output_costs_;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_PLAN_FEED_PLAN_H_
