#include "client/emulator/model/model.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/emulator/model/optimizer.h"
#include "client/emulator/model/plan_layer.h"
#include "client/emulator/model/value_range.h"
#include "core/checksum/xxh3.h"
#include "core/status/status_macros.h"
#include "core/textproto/message_text.h"

namespace systole::emulator {
namespace {

constexpr char kInputName[] = "input";
// The most multiply-accumulates in one example's forward pass. Training does up to three times as
// many, which does not overflow.
constexpr int64_t kMostMacs = int64_t{1} << 50;
// The most layers. Every layer takes memory and time, even if it has few values. A thousand layers
// are already a deep network.
constexpr int64_t kMostLayers = 1 << 14;

// A possible input of a layer: the model's input, or a layer of the text. A flatten has the same
// `layer` as its input, but another `shape`.
struct Source {
  int64_t layer;  // Index into Model::layers; -1: the model's input.
  Shape shape;
  std::string name;
  bool taken = false;
};

// Goes through the text's layers, first to last, and fills Model::layers.
class GraphCompiler {
 public:
  explicit GraphCompiler(Model& model) : model_(model) {
    sources_.push_back({.layer = -1, .shape = model.input, .name = kInputName});
    by_name_[kInputName] = 0;
  }

  absl::Status Add(const v1::Layer& layer, int64_t number);
  // InvalidArgument if any source but the last one is the input of no layer. The last source is the
  // model's output.
  absl::Status CheckAllTaken() const;
  const Shape& last_shape() const { return sources_.back().shape; }

 private:
  // The layer's inputs, as indices into sources_.
  absl::StatusOr<std::vector<size_t>> FindInputs(const v1::Layer& layer) const;
  // Appends the layer's plan to the model, and sets where its parameters and statistics are.
  absl::Status Place(LayerPlan plan);

  Model& model_;
  int64_t macs_ = 0;  // The sum over the layers so far.
  std::vector<Source> sources_;
  absl::flat_hash_map<std::string, size_t> by_name_;
};

absl::StatusOr<std::vector<size_t>> GraphCompiler::FindInputs(const v1::Layer& layer) const {
  if (layer.inputs().empty()) return std::vector<size_t>{sources_.size() - 1};
  std::vector<size_t> found;
  for (const std::string& name : layer.inputs()) {
    const auto it = by_name_.find(name);
    if (it == by_name_.end()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "inputs has '", name, "', want the name of an earlier layer, or '", kInputName, "'"));
    }
    found.push_back(it->second);
  }
  return found;
}

absl::Status GraphCompiler::Place(LayerPlan plan) {
  plan.weights_at = model_.parameters;
  plan.biases_at = plan.weights_at + plan.weights;
  model_.parameters = plan.biases_at + plan.biases;
  plan.statistics_at = model_.statistics;
  model_.statistics += plan.statistics;
  SYSTOLE_RETURN_IF_ERROR(
      CheckRange("the number of parameters so far", model_.parameters, 0, kMostElements));
  macs_ += plan.forward_macs;
  SYSTOLE_RETURN_IF_ERROR(
      CheckRange("the number of multiply-accumulates so far", macs_, 0, kMostMacs));
  model_.layers.push_back(std::move(plan));
  return absl::OkStatus();
}

absl::Status GraphCompiler::Add(const v1::Layer& layer, int64_t number) {
  const absl::string_view kind = KindName(layer.kind_case());
  const std::string name = layer.name().empty() ? absl::StrCat(kind, "_", number) : layer.name();
  const auto fail = [&](const absl::Status& status, absl::string_view where) {
    return absl::InvalidArgumentError(
        absl::StrCat("layer ", number, " (", kind,
                     layer.name().empty() ? "" : absl::StrCat(" '", layer.name(), "'"), ")", where,
                     ": ", status.message()));
  };
  if (const absl::Status status = CheckName("name", name); !status.ok()) return fail(status, "");
  if (by_name_.contains(name)) {
    return fail(absl::InvalidArgumentError(absl::StrCat("the name '", name, "' is taken")), "");
  }
  const absl::StatusOr<std::vector<size_t>> inputs = FindInputs(layer);
  if (!inputs.ok()) return fail(inputs.status(), "");
  std::vector<Shape> shapes;
  std::vector<int64_t> layers;
  for (const size_t input : *inputs) {
    sources_[input].taken = true;
    shapes.push_back(sources_[input].shape);
    layers.push_back(sources_[input].layer);
  }
  Source source = {.layer = layers[0], .name = name};
  const std::string where = absl::StrCat(
      ", whose input is ", absl::StrJoin(shapes, " and ", [](std::string* out, const Shape& shape) {
        absl::StrAppend(out, shape.DebugString());
      }));
  if (layer.kind_case() == v1::Layer::kFlatten) {
    if (shapes.size() > 1) {
      return fail(absl::InvalidArgumentError("flatten takes one input"), where);
    }
    source.shape = {.channels = shapes[0].size()};
  } else {
    absl::StatusOr<LayerPlan> plan = PlanLayer(layer, shapes);
    if (!plan.ok()) return fail(plan.status(), where);
    plan->name = name;
    plan->number = number;
    plan->inputs = std::move(layers);
    source.layer = static_cast<int64_t>(model_.layers.size());
    source.shape = plan->output;
    const absl::Status status = Place(*std::move(plan));
    if (!status.ok()) return fail(status, where);
  }
  by_name_[name] = sources_.size();
  sources_.push_back(std::move(source));
  return absl::OkStatus();
}

absl::Status GraphCompiler::CheckAllTaken() const {
  for (size_t i = 0; i + 1 < sources_.size(); ++i) {
    if (sources_[i].taken) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("no layer takes the output of layer ", i - 1, " ('", sources_[i].name,
                     "'); name it in `inputs`, or leave the layer out"));
  }
  return absl::OkStatus();
}

absl::Status SetInput(const v1::Model& proto, Model& model) {
  const std::vector<int64_t> shape(proto.input().begin(), proto.input().end());
  if (shape.empty() || shape.size() > 3) {
    return absl::InvalidArgumentError(absl::StrCat(
        "input has ", shape.size(),
        " dimensions, want [height, width, channels], [positions, features] or [features]"));
  }
  for (const int64_t size : shape) {
    SYSTOLE_RETURN_IF_ERROR(CheckRange("a dimension of input", size, 1,
                                       shape.size() == 1 ? kMostElements : kLargestEdge));
  }
  model.input_shape = shape;
  model.input.channels = shape.back();
  if (shape.size() > 1) model.input.height = shape[0];
  if (shape.size() > 2) model.input.width = shape[1];
  model.input_scale = proto.input_scale() == 0 ? 1.0f : proto.input_scale();
  if (!std::isfinite(model.input_scale)) {
    return absl::InvalidArgumentError("input_scale is not a finite number");
  }
  return CheckRange("the number of input values", model.input.size(), 1, kMostElements);
}

absl::Status SetLoss(const v1::Loss& loss, const Shape& logits, Model& model) {
  if (loss.kind_case() != v1::Loss::kSoftmaxCrossEntropy) {
    return absl::InvalidArgumentError("loss is absent, want loss { softmax_cross_entropy {} }");
  }
  model.label_smoothing = loss.softmax_cross_entropy().label_smoothing();
  SYSTOLE_RETURN_IF_ERROR(
      CheckRange("loss.softmax_cross_entropy.label_smoothing", model.label_smoothing, 0.0f, 1.0f));
  if (logits.height != 1 || logits.width != 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the last layer's output is ", logits.DebugString(),
        ", but softmax_cross_entropy needs [1,1,classes]; put average_pool { global: true } or "
        "flatten {} before the last dense layer"));
  }
  if (logits.channels < 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("the last layer's output is ", logits.DebugString(),
                     ", but softmax_cross_entropy needs 2 classes or more"));
  }
  model.classes = logits.channels;
  return absl::OkStatus();
}

}  // namespace

bool IsInputDType(DType dtype) {
  return std::find(std::begin(kInputDTypes), std::end(kInputDTypes), dtype) !=
         std::end(kInputDTypes);
}

std::string InputDTypeNames() {
  const absl::Span<const DType> all = kInputDTypes;
  const auto append = [](std::string* out, DType dtype) { absl::StrAppend(out, DTypeName(dtype)); };
  return absl::StrCat(absl::StrJoin(all.first(all.size() - 1), ", ", append), " or ",
                      DTypeName(all.back()));
}

int64_t Model::forward_macs() const {
  int64_t macs = 0;
  for (const LayerPlan& layer : layers) macs += layer.forward_macs;
  return macs;
}

int64_t Model::training_macs() const {
  int64_t macs = 0;
  for (const LayerPlan& layer : layers) {
    macs += layer.forward_macs * (layer.needs_input_gradient() ? 3 : 2);
  }
  return macs;
}

const LayerPlan* Model::first_untrainable() const {
  const auto it = std::find_if(layers.begin(), layers.end(), [](const LayerPlan& layer) {
    return layer.kind == LayerKind::kLayerNorm || layer.kind == LayerKind::kGelu ||
           layer.kind == LayerKind::kAttention;
  });
  return it == layers.end() ? nullptr : &*it;
}

absl::StatusOr<Model> ParseModel(absl::string_view text, absl::string_view file) {
  v1::Model proto;
  SYSTOLE_RETURN_IF_ERROR(ParseTextproto(text, file, proto));
  absl::StatusOr<Model> model = CompileModel(proto);
  if (!model.ok()) {
    return absl::Status(model.status().code(), absl::StrCat(file, ": ", model.status().message()));
  }
  return model;
}

absl::StatusOr<Model> CompileModel(const v1::Model& proto) {
  Model model;
  if (!proto.name().empty()) SYSTOLE_RETURN_IF_ERROR(CheckName("name", proto.name()));
  model.name = proto.name();
  SYSTOLE_RETURN_IF_ERROR(SetInput(proto, model));
  SYSTOLE_RETURN_IF_ERROR(
      CheckRange("the number of layers", int64_t{proto.layers_size()}, 1, kMostLayers));
  GraphCompiler compiler(model);
  for (int i = 0; i < proto.layers_size(); ++i) {
    SYSTOLE_RETURN_IF_ERROR(compiler.Add(proto.layers(i), i));
  }
  if (model.layers.empty() || model.parameters == 0) {
    return absl::InvalidArgumentError(
        "the model has no layer that could learn; add one, such as dense");
  }
  SYSTOLE_RETURN_IF_ERROR(compiler.CheckAllTaken());
  SYSTOLE_RETURN_IF_ERROR(SetLoss(proto.loss(), compiler.last_shape(), model));
  SYSTOLE_ASSIGN_OR_RETURN(model.optimizer, CompileOptimizer(proto.optimizer()));
  // The message has no maps, so equal messages are serialised to the same bytes.
  model.fingerprint = Xxh3(proto.SerializeAsString());
  return model;
}

}  // namespace systole::emulator
