#include "core/engine/example_filler.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <optional>
#include <utility>

#include "absl/base/attributes.h"
#include "absl/strings/str_cat.h"
#include "core/batch/slice_layout.h"
#include "core/checksum/xxh3.h"
#include "core/engine/kept_bytes.h"
#include "core/interrupt/interrupt.h"
#include "core/interrupt/lap_times.h"
#include "core/memory/scratch_scope.h"
#include "core/operations/kept_value.h"
#include "core/plan/feature_schema.h"
#include "core/record/source/record_source.h"
#include "core/status/status_macros.h"
#include "core/tensor/cast_int64s.h"

namespace systole {
namespace {

using Source = OutputPlan::Source;

// [height, width, channels] -> [channels, height, width].
template <typename T>
void ToChannelsFirst(const uint8_t* from, absl::Span<const int64_t> shape, uint8_t* to) {
  const int64_t pixels = shape[0] * shape[1];
  const int64_t channels = shape[2];
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t p = 0; p < pixels; ++p) {
      std::memcpy(to + (c * pixels + p) * static_cast<int64_t>(sizeof(T)),
                  from + (p * channels + c) * static_cast<int64_t>(sizeof(T)), sizeof(T));
    }
  }
}

bool UsesDefault(const OutputPlan& output, const FeatureView& feature) {
  return output.default_values.has_value() && feature.kind() == FeatureKind::kMissing;
}

// The measurement of a timed example; null for other examples. A measurement and its result have
// 0.5 KB each. As local variables of Begin() and Fill() they would be set to zero in every call
// (-ftrivial-auto-var-init), though few examples are timed. So the measurement is allocated, and
// AddTimes() is not inlined.
std::unique_ptr<LapTimes> TimesBy(const MonotonicClock* clock) {
  return clock == nullptr ? nullptr : std::make_unique<LapTimes>(*clock);
}
ABSL_ATTRIBUTE_NOINLINE void AddTimes(const FeedPlan& plan, size_t output, LapTimes& times) {
  plan.output_costs().Add(output, times.Take());
}

// The index in `output.forms` of the form in which the output's values are kept. All outputs that
// use the cache share the cache's room evenly. The choice depends only on the plan and the cache's
// size, so all threads choose the same form.
size_t FormFor(const FeedPlan& plan, const CachePlan& output, const ValueCache& cache) {
  std::vector<KeptCost> costs;
  for (const KeptForm& form : output.forms) costs.push_back(form.value.cost);
  const auto cached =
      std::count_if(plan.outputs().begin(), plan.outputs().end(),
                    [](const OutputPlan& other) { return other.cache.has_value(); });
  const double wanted =
      static_cast<double>(plan.order().spec().num_records) * static_cast<double>(cached);
  return BestKept(costs, output.work, [&](int64_t bytes) {
    return std::min(1.0, static_cast<double>(cache.RoomFor(bytes, output.store)) / wanted);
  });
}

absl::Status NoMemory() {
  return absl::UnavailableError("malloc refused memory for an example that is being made");
}

// `status` with the output's name before its message. In a zip, the error is also marked with the
// part of the record that the output's feature comes from (MarkedAsOfPart()).
absl::Status OfOutput(const FeedPlan& plan, const OutputPlan& output, const absl::Status& status) {
  if (status.ok()) return status;
  const SliceTensor& tensor = plan.layout().tensors()[static_cast<size_t>(output.tensor)];
  absl::Status named(status.code(),
                     absl::StrCat("output '", tensor.spec.name, "': ", status.message()));
  if (output.feature < 0 || plan.dataset().zipped().empty()) return named;
  const std::string& feature = plan.parser().names()[static_cast<size_t>(output.feature)];
  return MarkedAsOfPart(std::move(named), plan.dataset().PartOfFeature(feature));
}

}  // namespace

absl::Status FillerScratch::Reserve(const FeedPlan& plan) {
  for (const OutputPlan& output : plan.outputs()) {
    const int64_t bytes =
        plan.layout().tensors()[static_cast<size_t>(output.tensor)].example_bytes();
    if (output.layout == v1::NHWC || example.size() >= bytes) continue;
    absl::StatusOr<AlignedBuffer> larger = AlignedBuffer::Create(bytes);
    if (!larger.ok()) return absl::UnavailableError(larger.status().message());
    example = *std::move(larger);
  }
  return absl::OkStatus();
}

int64_t FillerScratch::bytes() const {
  return example.size() + static_cast<int64_t>(pixels.capacity()) + lists.bytes();
}

absl::StatusOr<ExampleFiller> ExampleFiller::Create(
    const FeedPlan& plan, std::vector<std::shared_ptr<HuffmanDecoder>>& decoders,
    ValueCache* cache) {
  std::vector<ProgramRunner> runners;
  std::vector<Cached> cached(plan.outputs().size());
  size_t jpegs = 0;
  for (const OutputPlan& output : plan.outputs()) {
    std::shared_ptr<HuffmanDecoder> decoder;
    if (output.program.decodes_jpeg()) {
      if (jpegs == decoders.size()) decoders.push_back(std::make_shared<HuffmanDecoder>());
      decoder = decoders[jpegs++];
    }
    SYSTOLE_ASSIGN_OR_RETURN(ProgramRunner runner,
                             ProgramRunner::Create(output.program, std::move(decoder)));
    if (cache != nullptr && output.cache.has_value()) {
      Cached& kept = cached[runners.size()];
      kept.form = FormFor(plan, *output.cache, *cache);
      const std::optional<LoweredProgram>& rest = output.cache->forms[*kept.form].rest;
      if (rest.has_value()) {
        SYSTOLE_ASSIGN_OR_RETURN(kept.rest, ProgramRunner::Create(*rest, nullptr));
      }
    }
    runners.push_back(std::move(runner));
  }
  bool keeps_images = plan.decodes_images();
  for (size_t i = 0; i < cached.size(); ++i) {
    keeps_images = keeps_images && (!plan.outputs()[i].is_image() || cached[i].form.has_value());
  }
  return ExampleFiller(std::move(runners), std::move(cached), keeps_images,
                       plan.parser().names().size(), cache);
}

bool ExampleFiller::FindKept(const FeedPlan& plan, const Record& record, Kept& kept) {
  kept.assign(plan.outputs().size(), nullptr);
  bool all = true;
  for (size_t i = 0; i < kept.size(); ++i) {
    const OutputPlan& output = plan.outputs()[i];
    if (!cached_[i].form.has_value()) continue;
    const KeptForm& form = output.cache->forms[*cached_[i].form];
    kept[i] = cache_->FindInMemory(KeyOf(form, record), form.user);
    if (kept[i] != nullptr && !IsKept(*kept[i], form)) kept[i] = nullptr;
    all = all && (kept[i] != nullptr || !output.is_image());
  }
  return all;
}

absl::Status ExampleFiller::Begin(const FeedPlan& plan, int64_t pass, const Record& record,
                                  absl::string_view payload, Kept kept, PairedDecoding& decoding,
                                  int lane, const MonotonicClock* timed_by) {
  payload_ = payload;
  record_ = record;
  example_ = {.seed = plan.spec().seed(), .epoch = pass, .record = record.number};
  damage_ = DamageCause::kFormat;
  if (plan.parses_examples()) {
    try {
      SYSTOLE_RETURN_IF_ERROR(
          plan.parser().Parse(*record.format, payload, made_, absl::MakeSpan(features_)));
    } catch (const std::bad_alloc&) {
      return NoMemory();
    }
  }
  const std::unique_ptr<LapTimes> times = TimesBy(timed_by);
  for (size_t i = 0; i < runners_.size(); ++i) {
    const OutputPlan& output = plan.outputs()[i];
    if (!output.is_image() && !output.cache.has_value()) continue;
    const absl::StatusOr<ImageTransformer*> image =
        BeginOutput(output, i, kept.empty() ? nullptr : std::move(kept[i]));
    if (!image.ok()) return OfOutput(plan, output, image.status());
    if (*image != nullptr) decoding.Add(lane, **image);
    if (times != nullptr) AddTimes(plan, i, *times);
  }
  return absl::OkStatus();
}

absl::StatusOr<ImageTransformer*> ExampleFiller::BeginOutput(const OutputPlan& output, size_t i,
                                                             CachedValue kept) {
  Cached& cached = cached_[i];
  cached.found = std::move(kept);
  cached.fills = false;
  if (cached.found != nullptr) return nullptr;
  const bool is_jpeg = output.program.decodes_jpeg();
  if (!is_jpeg && !cached.form.has_value()) return nullptr;
  damage_ = DamageCause::kFeature;
  SYSTOLE_ASSIGN_OR_RETURN(const absl::string_view bytes, BytesOf(output));
  HasFeature(output);
  // A default value is not kept, because it does not come from the record.
  const bool keeps =
      cached.form.has_value() &&
      (output.feature < 0 || !UsesDefault(output, features_[static_cast<size_t>(output.feature)]));
  const KeptForm* const form = keeps ? &output.cache->forms[*cached.form] : nullptr;
  if (keeps) {
    cached.found = cache_->Find(KeyOf(*form, record_), output.cache->store, form->user);
    if (cached.found != nullptr && IsKept(*cached.found, *form)) return nullptr;
    cached.found = nullptr;
    // An image other than JPEG is decoded whole, even if it is not kept. Its size is not known
    // before the decode, so Admits() gets 0 bytes, unless the finished example is kept, whose size
    // is known.
    if (form->value.finished || !is_jpeg) {
      cached.fills =
          cache_->Admits(form->value.finished ? form->value.cost.bytes : 0, output.cache->store);
    }
  }
  if (!is_jpeg) return nullptr;
  SYSTOLE_ASSIGN_OR_RETURN(ImageTransformer * image,
                           runners_[i].Begin(output.program, bytes, example_));
  if (!keeps || form->value.finished ||
      !cache_->Admits(KeptBytes(runners_[i].info(), form->value.type), output.cache->store)) {
    return image;
  }
  cached.fills = true;
  runners_[i].Drop();
  return nullptr;
}

CacheKey ExampleFiller::KeyOf(const KeptForm& form, const Record& record) {
  Xxh3Hasher hasher;
  hasher.UpdateU64(form.made_by);
  hasher.UpdateU64(record.shard_hash);
  hasher.UpdateU64(static_cast<uint64_t>(record.in_shard));
  const auto [high, low] = hasher.Digest128();
  return {.high = high, .low = low};
}

absl::Status ExampleFiller::FillFrom(absl::string_view kept, const OutputPlan& output, size_t i,
                                     FillerScratch& scratch, absl::Span<uint8_t> out) {
  const KeptForm& form = output.cache->forms[*cached_[i].form];
  if (form.value.finished) {
    std::memcpy(out.data(), kept.data(), out.size());
    return absl::OkStatus();
  }
  KeptImage image = *ParseKept(kept, form.value.type);
  if (form.rest.has_value()) {
    return cached_[i].rest->Run(*form.rest, {.bytes = image.values, .shape = image.shape}, example_,
                                scratch.pixels, out);
  }
  // There are two values: an operation reads one and writes the other.
  if (!NeedScratch(ScratchUse::kValues, 2 * static_cast<int64_t>(image.values.size()))) {
    return InterruptedError();
  }
  Value value = Value::Create(form.value.type.element, std::move(image.shape));
  std::memcpy(value.floats.data(), image.values.data(), image.values.size());
  return ProgramRunner::RunFrom(output.program, std::move(value), example_, form.value.steps, out);
}

absl::StatusOr<bool> ExampleFiller::FillCached(const OutputPlan& output, size_t i,
                                               FillerScratch& scratch, absl::Span<uint8_t> out) {
  Cached& cached = cached_[i];
  const KeptForm& form = output.cache->forms[*cached.form];
  if (const CachedValue found = std::exchange(cached.found, nullptr); found != nullptr) {
    HasFeature(output);
    SYSTOLE_RETURN_IF_ERROR(FillFrom(*found, output, i, scratch, out));
    return true;
  }
  if (form.value.finished || !std::exchange(cached.fills, false)) return false;
  SYSTOLE_ASSIGN_OR_RETURN(const absl::string_view bytes, BytesOf(output));
  HasFeature(output);
  Value stored;
  stored.bytes = bytes;
  const absl::StatusOr<Value> made =
      output.program.program->Run(std::move(stored), example_, 0, form.value.steps);
  // An image with an edge above kMaxImageEdge cannot be kept (WantImage()).
  if (made.ok() && WantImage(made->type).ok()) {
    // There are four values: this one, a copy for the cache, and two in the operations that follow.
    if (!NeedScratch(ScratchUse::kValues, 4 * made->type.num_bytes())) return InterruptedError();
    std::string kept = ToKept(*made, form.value.type);
    NoteLap(LapTimes::kNoPart);
    const absl::Status done = FillFrom(kept, output, i, scratch, out);
    cache_->Insert(KeyOf(form, record_), output.cache->store, form.user, std::move(kept));
    SYSTOLE_RETURN_IF_ERROR(done);
    return true;
  }
  // Whether a damaged record can be used must not depend on the cache. So the record is decoded
  // again as without a cache. This decode may succeed: it can stop before the damaged part, and it
  // accepts images of any size.
  if (output.program.decodes_jpeg()) {
    SYSTOLE_RETURN_IF_ERROR(runners_[i].Begin(output.program, bytes, example_).status());
  }
  return false;
}

void ExampleFiller::KeepFinished(const OutputPlan& output, size_t i,
                                 absl::Span<const uint8_t> example) {
  // If the thread was interrupted, the example may be incomplete.
  if (!std::exchange(cached_[i].fills, false) || InterruptRequested()) return;
  const KeptForm& form = output.cache->forms[*cached_[i].form];
  cache_->Insert(KeyOf(form, record_), output.cache->store, form.user,
                 std::string(example.begin(), example.end()));
}

void ExampleFiller::Drop() {
  for (ProgramRunner& runner : runners_) runner.Drop();
  for (Cached& cached : cached_) cached.found = nullptr;
  made_.Clear();
}

absl::Status ExampleFiller::Fill(const FeedPlan& plan, int64_t slot, FillerScratch& scratch,
                                 uint8_t* slice, const MonotonicClock* timed_by) {
  const std::unique_ptr<LapTimes> times = TimesBy(timed_by);
  for (size_t i = 0; i < plan.outputs().size(); ++i) {
    const OutputPlan& output = plan.outputs()[i];
    const SliceTensor& tensor = plan.layout().tensors()[static_cast<size_t>(output.tensor)];
    const int64_t example_bytes = tensor.example_bytes();
    // NHWC is made in its place. Other layouts are made in the scratch memory and then rearranged.
    uint8_t* place = slice + tensor.offset + slot * example_bytes;
    const bool in_place = output.layout == v1::NHWC;
    const absl::Span<uint8_t> out = absl::MakeSpan(in_place ? place : scratch.example.data(),
                                                   static_cast<size_t>(example_bytes));
    uint8_t* length = nullptr;
    if (output.padded.has_value()) {
      const auto at = static_cast<size_t>(output.padded->length_tensor);
      length = slice + plan.layout().tensors()[at].offset + slot * int64_t{sizeof(int32_t)};
    }
    SYSTOLE_RETURN_IF_ERROR(OfOutput(plan, output, FillOutput(output, i, scratch, out, length)));
    if (output.layout == v1::HWCN || output.layout == v1::HWCN_TILED) {
      PlaceExample(tensor, slot, out.data(), slice);
    } else if (output.layout == v1::NCHW) {
      switch (DTypeBytes(output.dtype)) {
        case 1:
          ToChannelsFirst<uint8_t>(out.data(), output.shape, place);
          break;
        case 2:
          ToChannelsFirst<uint16_t>(out.data(), output.shape, place);
          break;
        case 4:
          ToChannelsFirst<uint32_t>(out.data(), output.shape, place);
          break;
        default:
          ToChannelsFirst<uint64_t>(out.data(), output.shape, place);
      }
    }
    if (times != nullptr) AddTimes(plan, i, *times);
  }
  made_.Clear();
  return absl::OkStatus();
}

absl::Status ExampleFiller::FillOutput(const OutputPlan& output, size_t i, FillerScratch& scratch,
                                       absl::Span<uint8_t> out, uint8_t* length) {
  damage_ = DamageCause::kFeature;
  // Vectors in the scratch and in operations grow as needed, so they may throw.
  try {
    if (output.padded.has_value()) return FillPadded(output, scratch, out, length);
    if (cached_[i].form.has_value()) {
      SYSTOLE_ASSIGN_OR_RETURN(const bool filled, FillCached(output, i, scratch, out));
      if (filled) return absl::OkStatus();
    }
    SYSTOLE_RETURN_IF_ERROR(FillValues(output, runners_[i], scratch, out));
    KeepFinished(output, i, out);
    return absl::OkStatus();
  } catch (const std::bad_alloc&) {
    return NoMemory();
  }
}

absl::Status ExampleFiller::FillPadded(const OutputPlan& output, FillerScratch& scratch,
                                       absl::Span<uint8_t> out, uint8_t* length) const {
  SYSTOLE_ASSIGN_OR_RETURN(const int32_t items,
                           output.feature < 0
                               ? WritePadded(output, payload_, out)
                               : WritePadded(output, features_[static_cast<size_t>(output.feature)],
                                             scratch.lists, out));
  std::memcpy(length, &items, sizeof(items));
  return absl::OkStatus();
}

absl::Status ExampleFiller::FillValues(const OutputPlan& output, ProgramRunner& runner,
                                       FillerScratch& scratch, absl::Span<uint8_t> out) {
  const auto count = static_cast<size_t>(output.stored_elements);
  switch (output.source) {
    case Source::kRecordId:
      return FillInt64s(output, runner, {example_.record}, scratch, out);
    case Source::kInt64List: {
      const FeatureView& feature = features_[static_cast<size_t>(output.feature)];
      if (UsesDefault(output, feature)) {
        SpreadDefault(output, scratch.lists.int64s);
        return FillInt64s(output, runner, scratch.lists.int64s, scratch, out);
      }
      SYSTOLE_RETURN_IF_ERROR(feature.Expect(FeatureKind::kInt64, output.stored_elements));
      scratch.lists.int64s.resize(count);
      SYSTOLE_RETURN_IF_ERROR(feature.CopyInt64s(absl::MakeSpan(scratch.lists.int64s)));
      HasFeature(output);
      return FillInt64s(output, runner, scratch.lists.int64s, scratch, out);
    }
    case Source::kFloatList: {
      const FeatureView& feature = features_[static_cast<size_t>(output.feature)];
      if (UsesDefault(output, feature)) {
        SpreadDefault(output, scratch.lists.floats);
      } else {
        SYSTOLE_RETURN_IF_ERROR(feature.Expect(FeatureKind::kFloat, output.stored_elements));
        const absl::Span<const float> in_place = feature.FloatsInPlace();
        if (in_place.data() != nullptr) {
          HasFeature(output);
          return runner.Run(output.program, {.floats = in_place}, example_, scratch.pixels, out);
        }
        scratch.lists.floats.resize(count);
        SYSTOLE_RETURN_IF_ERROR(feature.CopyFloats(absl::MakeSpan(scratch.lists.floats)));
      }
      HasFeature(output);
      return runner.Run(output.program, {.floats = scratch.lists.floats}, example_, scratch.pixels,
                        out);
    }
    case Source::kBytes:
      break;
  }
  SYSTOLE_ASSIGN_OR_RETURN(const absl::string_view bytes, BytesOf(output));
  HasFeature(output);
  const std::optional<int64_t> wanted = output.program.program->input_bytes();
  if (wanted.has_value() && static_cast<int64_t>(bytes.size()) != *wanted) {
    return absl::InvalidArgumentError(absl::StrCat(
        "decode_raw found ", bytes.size(), " bytes, want ", *wanted, " by the spec's shape"));
  }
  return runner.Run(output.program, {.bytes = bytes}, example_, scratch.pixels, out);
}

absl::Status ExampleFiller::FillInt64s(const OutputPlan& output, ProgramRunner& runner,
                                       absl::Span<const int64_t> values, FillerScratch& scratch,
                                       absl::Span<uint8_t> out) const {
  if (output.program.program == nullptr) return CastInt64s(values, output.dtype, out);
  return runner.Run(output.program, {.int64s = values}, example_, scratch.pixels, out);
}

absl::StatusOr<absl::string_view> ExampleFiller::BytesOf(const OutputPlan& output) const {
  if (output.feature < 0) return payload_;
  const FeatureView& feature = features_[static_cast<size_t>(output.feature)];
  if (UsesDefault(output, feature)) return output.default_values->bytes;
  SYSTOLE_RETURN_IF_ERROR(feature.Expect(FeatureKind::kBytes, 1));
  return feature.BytesAt(0);
}

}  // namespace systole
