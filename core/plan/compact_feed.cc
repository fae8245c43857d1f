#include "core/plan/compact_feed.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/status/statusor.h"

namespace systole {
namespace {

bool Has(const google::protobuf::RepeatedPtrField<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::optional<CompactTensor> CompactTensorOf(const v1::Output& output, const OutputPlan& plan,
                                             const v1::Mix& mix) {
  if (plan.layout == v1::HWCN_TILED || plan.program.program == nullptr) return std::nullopt;
  // Mixed values are not whole numbers, and the client does not have the partner example.
  if (Has(mix.images(), output.name()) || Has(mix.labels(), output.name())) return std::nullopt;
  const size_t kept_steps = plan.cache.has_value() ? plan.cache->forms.front().value.steps : 0;
  std::optional<CompactForm> form = CompactFormOf(*plan.program.program, plan.dtype, kept_steps);
  if (!form.has_value()) return std::nullopt;
  CompactTensor tensor = {.form = *std::move(form)};
  // In all layouts but NCHW and HWCN, the channels are the tensor's last dimension. plan.shape has
  // one dimension less than the tensor: the batch.
  if (tensor.form.rules > 1) {
    tensor.channel_axis = plan.layout == v1::NCHW   ? 1
                          : plan.layout == v1::HWCN ? 2
                                                    : static_cast<int>(plan.shape.size());
  }
  return tensor;
}

// Removes from `output` the transforms from step `form.first` on, and makes it uint8.
void CutAt(const CompactForm& form, v1::Output& output) {
  const int kept = static_cast<int>(form.first);
  auto& transforms = *output.mutable_transforms();
  transforms.DeleteSubrange(kept, transforms.size() - kept);
  output.set_dtype(v1::UINT8);
}

}  // namespace

std::optional<CompactFeed> CompactFeedOf(const FeedPlan& plan,
                                         std::shared_ptr<const Dataset> dataset) {
  v1::FeedSpec spec = plan.spec();
  CompactFeed feed;
  feed.tensors.resize(plan.layout().tensors().size());
  bool any = false;
  for (int i = 0; i < spec.outputs_size(); ++i) {
    const OutputPlan& output = plan.outputs()[static_cast<size_t>(i)];
    std::optional<CompactTensor> tensor = CompactTensorOf(spec.outputs(i), output, spec.mix());
    if (!tensor.has_value()) continue;
    CutAt(tensor->form, *spec.mutable_outputs(i));
    feed.tensors[static_cast<size_t>(output.tensor)] = std::move(tensor);
    any = true;
  }
  if (!any) return std::nullopt;
  absl::StatusOr<std::shared_ptr<const FeedPlan>> compact =
      FeedPlan::Create(spec, std::move(dataset), plan.lists());
  // This plan does less than the feed's plan, so it should be valid. If it is not, all tensors are
  // sent as they are.
  if (!compact.ok()) return std::nullopt;
  feed.plan = *std::move(compact);
  return feed;
}

}  // namespace systole
