#include "core/plan/feed_plan.h"

#include <algorithm>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/dataset/shared_zip.h"
#include "core/operations/canonical_spec.h"
#include "core/order/core_split.h"
#include "core/plan/example_cost.h"
#include "core/plan/feature_schema.h"
#include "core/plan/output_compiler.h"
#include "core/plan/scratch_bytes.h"
#include "core/plan/spec_text.h"
#include "core/plan/where_plan.h"
#include "core/spec/order_spec.h"
#include "core/status/status_macros.h"
#include "core/text/foreign_text.h"

namespace systole {
namespace {

// Bounds that keep arithmetic and allocations in range. No real feed comes near them.
constexpr int64_t kMaxGlobalBatch = int64_t{1} << 24;
constexpr int kMaxCores = 1 << 16;
constexpr int kMaxOutputs = kMaxSliceTensors - 1;  // The tensor `valid` takes one place.

absl::Status CheckEnum(absl::string_view field, const google::protobuf::EnumDescriptor& type,
                       int value) {
  if (type.FindValueByNumber(value) != nullptr) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(field, " is ", value, ", want ", EnumValues(type)));
}

// `member` is like WhereStep::member.
absl::Status CheckPolicies(const v1::FeedSpec& spec, int member) {
  const auto& selects = member == kOwnSelect ? spec.select() : MembersOf(spec)[member].select();
  for (int i = 0; i < selects.size(); ++i) {
    SYSTOLE_RETURN_IF_ERROR(
        CheckEnum(absl::StrCat(SelectPrefix(spec, member), "select[", i, "].auto_shard.policy"),
                  *v1::AutoShard::Policy_descriptor(), selects[i].auto_shard().policy()));
  }
  return absl::OkStatus();
}

absl::Status CheckNumbers(const v1::FeedSpec& spec) {
  if (spec.global_batch() < 1 || spec.global_batch() > kMaxGlobalBatch) {
    return absl::InvalidArgumentError(
        absl::StrCat("global_batch is ", spec.global_batch(), ", want 1 to ", kMaxGlobalBatch));
  }
  const int num_cores = NumCoresOf(spec);
  if (num_cores < 1 || num_cores > kMaxCores) {
    return absl::InvalidArgumentError(
        absl::StrCat("num_cores is ", num_cores, ", want 1 to ", kMaxCores));
  }
  if (spec.split() == v1::EQUAL && spec.global_batch() % num_cores != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("global_batch is ", spec.global_batch(), " and num_cores is ", num_cores,
                     "; want a multiple, such as global_batch: ",
                     (spec.global_batch() / num_cores + 1) * num_cores, ", or split: BALANCED"));
  }
  if (spec.epochs() < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("epochs is ", spec.epochs(), ", want 0 (without end) or more"));
  }
  if (spec.outputs_size() < 1 || spec.outputs_size() > kMaxOutputs) {
    return absl::InvalidArgumentError(
        absl::StrCat("the spec has ", spec.outputs_size(), " outputs, want 1 to ", kMaxOutputs));
  }
  // A newer client may send fields that this server does not know, or unknown values of
  // enumerations, which are open in proto3. If the server ignored such a field or value, the feed
  // would have other bytes than the client asked for.
  v1::FeedSpec known = spec;
  known.DiscardUnknownFields();
  if (known.ByteSizeLong() != spec.ByteSizeLong()) {
    return absl::InvalidArgumentError(
        "the spec has a field that is not known to this version; update the server");
  }
  SYSTOLE_RETURN_IF_ERROR(CheckEnum("tail", *v1::Tail_descriptor(), spec.tail()));
  SYSTOLE_RETURN_IF_ERROR(CheckEnum("split", *v1::Split_descriptor(), spec.split()));
  SYSTOLE_RETURN_IF_ERROR(CheckEnum("on_corrupt", *v1::OnCorrupt_descriptor(), spec.on_corrupt()));
  for (int member = kOwnSelect; member < MembersOf(spec).size(); ++member) {
    SYSTOLE_RETURN_IF_ERROR(CheckPolicies(spec, member));
  }
  SYSTOLE_RETURN_IF_ERROR(
      CheckEnum("shuffle.mode", *v1::Shuffle::Mode_descriptor(), spec.shuffle().mode()));
  for (const v1::Output& output : spec.outputs()) {
    SYSTOLE_RETURN_IF_ERROR(
        CheckEnum(absl::StrCat("output '", ForeignName(output.name()), "': layout"),
                  *v1::Layout_descriptor(), output.layout()));
  }
  return absl::OkStatus();
}

// The tensor of one output in a slice. Its shape is that of an example, with a batch dimension
// added in the place that the layout has for it.
SliceTensor TensorOf(const std::string& name, const OutputPlan& plan, int64_t per_core_batch) {
  std::vector<int64_t> shape = plan.shape;
  SliceTensor tensor;
  switch (plan.layout) {
    case v1::NCHW:
      shape = {per_core_batch, shape[2], shape[0], shape[1]};
      break;
    case v1::HWCN:
      shape.push_back(per_core_batch);
      tensor.batch_axis = 3;
      break;
    case v1::HWCN_TILED:
      shape.push_back(per_core_batch);
      tensor.untiled_shape = shape;
      shape = TiledShape(shape);
      break;
    default:
      shape.insert(shape.begin(), per_core_batch);
  }
  tensor.spec = {.name = name, .dtype = plan.dtype, .shape = std::move(shape)};
  return tensor;
}

// Refuses outputs whose transforms outside the fused pass compute too many values. Otherwise a spec
// of a few bytes could keep a thread busy with one example for minutes, while other feeds wait.
absl::Status CheckInterpreted(const std::vector<OutputPlan>& outputs) {
  int64_t elements = 0;
  for (const OutputPlan& output : outputs) elements += output.program.interpreted_elements;
  if (elements <= kMaxInterpretedElements) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("transforms outside the fused pass compute ", elements,
                   " values for each example, want at most ", kMaxInterpretedElements,
                   "; crop or resize earlier, or use fewer of them"));
}

// The output's plan. If `dataset` has members, the plan is that of the first member, and is checked
// against all other members.
absl::StatusOr<OutputPlan> CompileFor(const v1::Output& output, const Dataset& dataset) {
  if (dataset.members().empty()) return CompileOutput(output, dataset);
  SYSTOLE_ASSIGN_OR_RETURN(OutputPlan plan, CompileOutput(output, *dataset.members()[0]));
  for (const std::shared_ptr<const Dataset>& member : dataset.members().subspan(1)) {
    const absl::Status fits = CheckOtherDataset(output, plan, *member);
    if (fits.ok()) continue;
    return absl::Status(fits.code(),
                        absl::StrCat("dataset '", member->name(), "': ", fits.message()));
  }
  return plan;
}

// Returns NotFound if `dataset` is not the dataset that `spec` names.
absl::Status CheckNamed(const v1::FeedSpec& spec, const Dataset& dataset) {
  if (DatasetNames(spec) != dataset.name()) {
    return absl::NotFoundError(absl::StrCat("the spec names dataset '",
                                            ForeignName(DatasetNames(spec)), "', not '",
                                            dataset.name(), "'"));
  }
  const absl::Span<const ZippedMember> zipped = dataset.zipped();
  if (std::equal(zipped.begin(), zipped.end(), spec.zip().begin(), spec.zip().end(),
                 [](const ZippedMember& member, const v1::Member& named) {
                   return member.prefix == named.prefix();
                 })) {
    return absl::OkStatus();
  }
  return absl::NotFoundError(absl::StrCat("the spec's zip and the dataset '", dataset.name(),
                                          "' have different prefixes"));
}

// Refuses outputs of whole records if the feed has a zip, because each record of a zip consists of
// several records.
absl::Status CheckRecordFeature(const v1::FeedSpec& spec) {
  if (spec.zip().empty()) return absl::OkStatus();
  for (const v1::Output& output : spec.outputs()) {
    if (output.feature() != kRecordFeature) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("output '", ForeignName(output.name()), "': feature is '", kRecordFeature,
                     "', but a record of a zip is several records; name a feature of one of them"));
  }
  return absl::OkStatus();
}

std::vector<DatasetRecords> RecordsOf(const Dataset& dataset) {
  std::vector<DatasetRecords> records;
  for (const std::shared_ptr<const Dataset>& member : dataset.members()) {
    records.push_back(
        {.num_records = member->num_records(), .per_shard = member->records_per_shard()});
  }
  if (records.empty()) {
    records.push_back(
        {.num_records = dataset.num_records(), .per_shard = dataset.records_per_shard()});
  }
  return records;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Dataset>> DatasetOf(const v1::FeedSpec& spec,
                                                         FindDataset find) {
  SYSTOLE_RETURN_IF_ERROR(CheckMembers(spec));
  if (!spec.zip().empty()) {
    std::vector<ZippedMember> zipped;
    for (const v1::Member& member : spec.zip()) {
      SYSTOLE_ASSIGN_OR_RETURN(zipped.emplace_back().dataset, find(member.dataset()));
      zipped.back().prefix = member.prefix();
    }
    return SharedZip(std::move(zipped));
  }
  if (MembersOf(spec).empty()) return find(spec.dataset());
  std::vector<std::shared_ptr<const Dataset>> members;
  for (const v1::Member& member : MembersOf(spec)) {
    SYSTOLE_ASSIGN_OR_RETURN(members.emplace_back(), find(member.dataset()));
  }
  return Dataset::Join(std::move(members));
}

FeedPlan::FeedPlan(v1::FeedSpec spec, std::shared_ptr<const Dataset> dataset,
                   std::shared_ptr<RecordLists> lists, Order order,
                   std::vector<WhereList> where_lists, SliceLayout layout, ExampleParser parser,
                   std::vector<OutputPlan> outputs, std::optional<MixPlan> mix,
                   int64_t example_elements)
    : spec_(std::move(spec)),
      dataset_(std::move(dataset)),
      lists_(std::move(lists)),
      order_(std::move(order)),
      where_lists_(std::move(where_lists)),
      layout_(std::move(layout)),
      parser_(std::move(parser)),
      outputs_(std::move(outputs)),
      mix_(std::move(mix)),
      example_elements_(example_elements),
      fingerprint_(SpecFingerprint(spec_)),
      output_costs_(outputs_.size()) {}

bool FeedPlan::decodes_images() const {
  return std::any_of(outputs_.begin(), outputs_.end(),
                     [](const OutputPlan& output) { return output.is_image(); });
}

bool FeedPlan::decodes_jpegs() const {
  return std::any_of(outputs_.begin(), outputs_.end(), [](const OutputPlan& output) {
    return output.is_image() && output.program.decodes_jpeg();
  });
}

absl::StatusOr<std::shared_ptr<const FeedPlan>> FeedPlan::Create(
    const v1::FeedSpec& spec, std::shared_ptr<const Dataset> dataset,
    std::shared_ptr<RecordLists> lists, const std::string& peer) {
  SYSTOLE_RETURN_IF_ERROR(CheckMembers(spec));
  if (lists == nullptr) lists = std::make_shared<RecordLists>();
  SYSTOLE_RETURN_IF_ERROR(CheckNamed(spec, *dataset));
  SYSTOLE_RETURN_IF_ERROR(CheckNumbers(spec));
  SYSTOLE_RETURN_IF_ERROR(CheckRecordFeature(spec));
  SYSTOLE_RETURN_IF_ERROR(CheckWheres(spec));
  const int64_t per_core_batch = PerCoreBatch(spec.global_batch(), NumCoresOf(spec));
  std::vector<OutputPlan> outputs;
  std::vector<SliceTensor> tensors = {
      {.spec = {.name = kValidTensor, .dtype = DType::kUint8, .shape = {per_core_batch}}}};
  std::vector<std::string> features;  // Each name once, even if several outputs read it.
  for (const v1::Output& output : spec.outputs()) {
    SYSTOLE_ASSIGN_OR_RETURN(OutputPlan plan, CompileFor(output, *dataset));
    if (output.feature() != kRecordIdFeature && output.feature() != kRecordFeature) {
      auto at = std::find(features.begin(), features.end(), output.feature());
      plan.feature = static_cast<int>(at - features.begin());
      if (at == features.end()) features.push_back(output.feature());
    }
    tensors.push_back(TensorOf(output.name(), plan, per_core_batch));
    if (plan.padded.has_value()) {
      tensors.push_back({.spec = {.name = LengthTensor(output.name()),
                                  .dtype = DType::kInt32,
                                  .shape = {per_core_batch}}});
    }
    outputs.push_back(std::move(plan));
  }
  SYSTOLE_ASSIGN_OR_RETURN(SliceLayout layout, SliceLayout::Create(std::move(tensors)));
  // Writes the type of each output into the spec. So a spec that names no type for an output has
  // the same fingerprint as a spec that names the default type.
  v1::FeedSpec typed = spec;
  for (int i = 0; i < spec.outputs_size(); ++i) {
    OutputPlan& plan = outputs[static_cast<size_t>(i)];
    typed.mutable_outputs(i)->set_dtype(static_cast<v1::DataType>(plan.dtype));
    const std::string& name = spec.outputs(i).name();
    plan.tensor = layout.IndexOf(name);
    if (plan.padded.has_value()) plan.padded->length_tensor = layout.IndexOf(LengthTensor(name));
  }
  std::optional<MixPlan> mix;
  if (spec.has_mix()) {
    SYSTOLE_ASSIGN_OR_RETURN(mix, MixPlan::Create(spec, outputs, layout));
  }
  SYSTOLE_ASSIGN_OR_RETURN(ExampleParser parser, ExampleParser::Create(std::move(features)));
  SYSTOLE_RETURN_IF_ERROR(CheckInterpreted(outputs));
  SYSTOLE_ASSIGN_OR_RETURN(
      const int64_t example_elements,
      CountExampleElements(spec, *dataset, outputs, mix.has_value() ? mix->group : 1));
  SYSTOLE_RETURN_IF_ERROR(CheckScratchBytes(ScratchBytesOf(outputs, layout)));
  // CheckDefault() does some of the work of making an example. The checks above limit this work, so
  // they come first.
  int64_t pixels_left = kMaxDefaultPixels;
  for (int i = 0; i < spec.outputs_size(); ++i) {
    const absl::Status fits = CheckDefault(outputs[static_cast<size_t>(i)], pixels_left);
    if (fits.ok()) continue;
    return absl::Status(fits.code(), absl::StrCat("output '", ForeignName(spec.outputs(i).name()),
                                                  "': ", fits.message()));
  }
  // The order comes last, because the lists of its `where` steps may take seconds to make.
  std::vector<WhereList> where_lists;
  const auto find =
      [&](const WhereStep& step) -> absl::StatusOr<std::shared_ptr<const RecordList>> {
    SYSTOLE_ASSIGN_OR_RETURN(std::shared_ptr<const RecordList> list,
                             ListOf(spec, *dataset, step, *lists, peer));
    where_lists.push_back({.records = list->size(), .hash = list->hash()});
    return list;
  };
  SYSTOLE_ASSIGN_OR_RETURN(const OrderSpec order_spec,
                           OrderSpecOf(spec, RecordsOf(*dataset), find));
  SYSTOLE_ASSIGN_OR_RETURN(Order order, Order::Create(order_spec));
  WriteChangesBySteps(order, typed);
  return absl::WrapUnique(new FeedPlan(std::move(typed), std::move(dataset), std::move(lists),
                                       std::move(order), std::move(where_lists), std::move(layout),
                                       std::move(parser), std::move(outputs), std::move(mix),
                                       example_elements));
}

SpecRuns FeedPlan::runs() const {
  SpecRuns runs;
  for (const OutputPlan& output : outputs_) {
    runs.push_back(output.program.program == nullptr ? std::vector<v1::TransformRun>()
                                                     : RunsOf(output.program));
  }
  return runs;
}

}  // namespace systole
