#include "core/pipeline/example_maker.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/batch/slice_layout.h"
#include "core/numeric/normalise.h"
#include "core/pipeline/first_error.h"
#include "core/pipeline/output_compiler.h"
#include "core/random/counter_rng.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

// Plans whose decoders a thread keeps. More streams than this at once share, at the cost of making
// decoders anew now and then.
constexpr size_t kMaxScratches = 16;

// Neighbours in a shard are read together up to so many bytes: a read of them costs about as much
// in the call as in the copy, and they stay in the cache until they are used.
constexpr int64_t kReadBytes = 256 << 10;

// Records in place are asked of memory so many at a time, while as many others are made. One by one
// would not do: a record that lies far from the one before waits for the tables of its page first,
// and the processor waits along, unless the next such waits stand right behind.
constexpr size_t kPrefetchedRecords = 16;

// Which use a random draw is for: each has a stream of its own, so that adding one moves no other.
// Part of the content: never renumber.
constexpr uint32_t kCropDraws = 1;
constexpr uint32_t kFlipDraws = 2;

absl::Span<const uint8_t> AsBytes(absl::string_view chars) {
  return absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(chars.data()), chars.size());
}

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

absl::Status FillInts(const OutputPlan& output, absl::Span<const int64_t> values,
                      absl::Span<uint8_t> out) {
  if (output.dtype == DType::kInt64) {
    std::memcpy(out.data(), values.data(), out.size());
    return absl::OkStatus();
  }
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] < std::numeric_limits<int32_t>::min() ||
        values[i] > std::numeric_limits<int32_t>::max()) {
      return absl::InvalidArgumentError(absl::StrCat("value ", values[i], " at index ", i,
                                                     " does not fit int32; use dtype: INT64"));
    }
    const auto narrow = static_cast<int32_t>(values[i]);
    std::memcpy(out.data() + i * sizeof(narrow), &narrow, sizeof(narrow));
  }
  return absl::OkStatus();
}

// Normalises and casts, as the output says. client/step_finisher.h does the same elsewhere.
absl::Status FinishUint8(const OutputPlan& output, absl::Span<const uint8_t> values,
                         absl::Span<uint8_t> out) {
  const int channels = output.normalize ? static_cast<int>(output.scale.size()) : 1;
  return NormaliseUint8(values, channels,
                        output.normalize ? Normalisation{.scale = output.scale, .bias = output.bias}
                                         : Normalisation{},
                        PixelTypeOf(output.dtype), out);
}

int64_t ExampleBytes(const SliceTensor& tensor) {
  return tensor.spec.num_bytes() / tensor.per_core_batch();
}

// Whether `status` says something of the record's bytes, as Shard::ReadRecord() means it. A read
// that failed or found no memory does not: were it masked, what a feed holds would depend on a bad
// moment of a machine.
bool IsDamage(const absl::Status& status) {
  return status.code() == absl::StatusCode::kDataLoss ||
         status.code() == absl::StatusCode::kResourceExhausted;
}

}  // namespace

CropRect CropOf(const OutputPlan& output, uint64_t seed, int64_t epoch, int64_t record, int height,
                int width) {
  switch (output.crop) {
    case OutputPlan::Crop::kWhole:
      break;
    case OutputPlan::Crop::kCentre:
      return CentreCrop(output.centre_fraction, height, width);
    case OutputPlan::Crop::kRandomResized: {
      CounterRng rng(seed, epoch, record, kCropDraws);
      return RandomResizedCrop(output.random_resized_crop, height, width, rng);
    }
  }
  return WholeImage(height, width);
}

absl::StatusOr<ExampleMaker::PlanScratch*> ExampleMaker::ScratchOf(
    const std::shared_ptr<const FeedPlan>& plan) {
  for (auto it = scratches_.begin(); it != scratches_.end(); ++it) {
    if (it->plan.lock() != plan) continue;
    scratches_.splice(scratches_.begin(), scratches_, it);
    return &scratches_.front();
  }
  PlanScratch scratch;
  scratch.plan = plan;
  scratch.features.resize(plan->parser().names().size());
  for (const OutputPlan& output : plan->outputs()) {
    const int64_t example_bytes =
        ExampleBytes(plan->layout().tensors()[static_cast<size_t>(output.tensor)]);
    if (output.layout != v1::NHWC && example_scratch_.size() < example_bytes) {
      absl::StatusOr<AlignedBuffer> larger = AlignedBuffer::Create(example_bytes);
      // Says nothing of a record, as ResourceExhausted would.
      if (!larger.ok()) return absl::UnavailableError(larger.status().message());
      example_scratch_ = *std::move(larger);
    }
    scratch.transformers.emplace_back();
    if (output.source != OutputPlan::Source::kJpeg &&
        output.source != OutputPlan::Source::kRawPixels) {
      continue;
    }
    SYSTOLE_ASSIGN_OR_RETURN(scratch.transformers.back(), ImageTransformer::Create(output.image));
  }
  scratches_.push_front(std::move(scratch));
  if (scratches_.size() > kMaxScratches) scratches_.pop_back();
  return &scratches_.front();
}

absl::Status ExampleMaker::Make(const std::shared_ptr<const FeedPlan>& plan, int64_t step, int core,
                                int64_t begin, int64_t end, uint8_t* slice) {
  const SliceLayout& layout = plan->layout();
  const Dataset& dataset = plan->dataset();
  SYSTOLE_ASSIGN_OR_RETURN(PlanScratch* const scratch, ScratchOf(plan));
  places_.resize(static_cast<size_t>(end - begin));
  plan->order().PlacesOf(step, core * layout.per_core_batch() + begin, absl::MakeSpan(places_));
  const int64_t epoch = places_.empty() ? 0 : places_[0].epoch;  // A step lies in one.
  wanted_.clear();
  for (int64_t slot = begin; slot < end; ++slot) {
    const Place& place = places_[static_cast<size_t>(slot - begin)];
    if (place.record.has_value()) {
      const ShardPlace in_shard = dataset.map().Find(*place.record);
      dataset.shards()[static_cast<size_t>(in_shard.shard)].index().PrefetchSpan(in_shard.index);
      wanted_.push_back({.record = *place.record, .slot = slot, .place = in_shard});
    } else {
      ClearExample(layout, slot, slice);
    }
  }
  std::sort(wanted_.begin(), wanted_.end(),
            [](const Wanted& a, const Wanted& b) { return a.record < b.record; });

  const auto prefetch = [&](size_t first) {
    const size_t last = std::min(first + kPrefetchedRecords, wanted_.size());
    for (size_t i = first; i < last; ++i) {
      const ShardPlace& place = wanted_[i].place;
      dataset.shards()[static_cast<size_t>(place.shard)].Prefetch(place.index);
    }
  };
  const RecordBytes where = plan->decodes_images() ? RecordBytes::kCopied : RecordBytes::kInPlace;
  if (where == RecordBytes::kInPlace) prefetch(0);

  FirstError error;
  for (size_t first = 0; first < wanted_.size();) {
    // [first, first + shard_records_.size()) lie in one shard.
    const int64_t shard_number = wanted_[first].place.shard;
    int64_t lowest_slot = wanted_[first].slot;
    shard_records_.clear();
    for (size_t i = first; i < wanted_.size() && wanted_[i].place.shard == shard_number; ++i) {
      shard_records_.push_back(wanted_[i].place.index);
      lowest_slot = std::min(lowest_slot, wanted_[i].slot);
    }
    const Shard& shard = dataset.shards()[static_cast<size_t>(shard_number)];
    SYSTOLE_RETURN_IF_ERROR(shard.ReadRecords(
        shard_records_, where, kReadBytes, record_scratch_,
        [&](size_t i, const absl::StatusOr<absl::string_view>& payload) {
          const Wanted& wanted = wanted_[first + i];
          if (where == RecordBytes::kInPlace && (first + i) % kPrefetchedRecords == 0) {
            prefetch(first + i + kPrefetchedRecords);
          }
          error.Add(wanted.slot, MakeOne(*plan, *scratch, epoch, wanted, payload, slice));
          return absl::OkStatus();
        }));
    // Behind the reads: nothing of a shard that was replaced can be trusted any more.
    error.Add(lowest_slot, shard.CheckUnchanged());
    first += shard_records_.size();
  }
  return error.status();
}

absl::Status ExampleMaker::MakeOne(const FeedPlan& plan, PlanScratch& scratch, int64_t epoch,
                                   const Wanted& wanted,
                                   const absl::StatusOr<absl::string_view>& payload,
                                   uint8_t* slice) {
  const SliceLayout& layout = plan.layout();
  const Dataset& dataset = plan.dataset();
  const auto where = [&](const absl::Status& status) {
    return absl::StrCat(dataset.Where(wanted.record), ": ", status.message());
  };
  absl::Status status;
  if (payload.ok()) {
    status = FillOutputs(plan, scratch, epoch, wanted.record, *payload, wanted.slot, slice);
    // Of what the stages say only the lack of memory is not the record's fault.
    if (absl::IsUnavailable(status)) {
      status = absl::UnavailableError(where(status));
    } else if (!status.ok()) {
      status = absl::DataLossError(where(status));
    }
  } else {
    status = payload.status();
    // Else it names its place already.
    if (!IsDamage(status)) status = absl::Status(status.code(), where(status));
  }
  if (status.ok()) {
    const SliceTensor& valid = layout.tensors()[static_cast<size_t>(layout.valid_index())];
    slice[valid.offset + wanted.slot] = 1;
    return absl::OkStatus();
  }
  const Shard& shard = dataset.shards()[static_cast<size_t>(wanted.place.shard)];
  // A shard that was replaced is no damage to be masked.
  SYSTOLE_RETURN_IF_ERROR(shard.CheckUnchanged());
  if (plan.spec().on_corrupt() != v1::MASK || !IsDamage(status)) return status;
  ClearExample(layout, wanted.slot, slice);
  dataset.damage().Add(
      {.shard = std::string(shard.base_name()),
       .record = wanted.record,
       .offset = static_cast<int64_t>(shard.index().span(wanted.place.index).offset),
       .cause = std::string(status.message())});
  return absl::OkStatus();
}

absl::Status ExampleMaker::FillOutputs(const FeedPlan& plan, PlanScratch& scratch, int64_t epoch,
                                       int64_t record, absl::string_view payload, int64_t slot,
                                       uint8_t* slice) {
  using Source = OutputPlan::Source;
  if (plan.parses_examples()) {
    SYSTOLE_RETURN_IF_ERROR(plan.parser().Parse(payload, absl::MakeSpan(scratch.features)));
  }
  for (size_t i = 0; i < plan.outputs().size(); ++i) {
    const OutputPlan& output = plan.outputs()[i];
    const SliceTensor& tensor = plan.layout().tensors()[static_cast<size_t>(output.tensor)];
    const int64_t example_bytes = ExampleBytes(tensor);
    // Batch-major outputs are written straight into their place; the others go through scratch.
    uint8_t* place = slice + tensor.offset + slot * example_bytes;
    const bool in_place = output.layout == v1::NHWC;
    const absl::Span<uint8_t> out = absl::MakeSpan(in_place ? place : example_scratch_.data(),
                                                   static_cast<size_t>(example_bytes));

    absl::Status status;
    if (output.source == Source::kRecordId) {
      status = FillInts(output, {record}, out);
    } else if (output.source == Source::kInt64List || output.source == Source::kFloatList) {
      status = FillNumbers(output, scratch.features[static_cast<size_t>(output.feature)], out);
    } else {
      absl::StatusOr<absl::string_view> bytes = payload;
      if (output.feature >= 0) {
        const FeatureView& feature = scratch.features[static_cast<size_t>(output.feature)];
        status = feature.Expect(FeatureKind::kBytes, 1);
        if (status.ok()) bytes = feature.BytesAt(0);
      }
      if (status.ok()) status = bytes.status();
      if (status.ok() && output.source != Source::kJpeg &&
          static_cast<int64_t>(bytes->size()) != output.stored_elements) {
        status = absl::InvalidArgumentError(absl::StrCat("decode_raw found ", bytes->size(),
                                                         " bytes, the spec's shape has ",
                                                         output.stored_elements));
      }
      if (status.ok() && output.source == Source::kRawBytes) {
        status = FinishUint8(output, AsBytes(*bytes), out);
      } else if (status.ok() && output.round_to_uint8) {
        pixels_.resize(static_cast<size_t>(example_bytes / DTypeBytes(output.dtype)));
        status = FillImage(plan, output, *scratch.transformers[i], epoch, record, *bytes,
                           absl::MakeSpan(pixels_));
        if (status.ok()) status = FinishUint8(output, pixels_, out);
      } else if (status.ok()) {
        status = FillImage(plan, output, *scratch.transformers[i], epoch, record, *bytes, out);
      }
    }
    if (!status.ok()) {
      return absl::Status(status.code(),
                          absl::StrCat("output '", tensor.spec.name, "': ", status.message()));
    }
    if (output.layout == v1::HWCN) {
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
  }
  return absl::OkStatus();
}

absl::Status ExampleMaker::FillImage(const FeedPlan& plan, const OutputPlan& output,
                                     ImageTransformer& transformer, int64_t epoch, int64_t record,
                                     absl::string_view bytes, absl::Span<uint8_t> out) {
  int height = 0;
  int width = 0;
  if (output.source == OutputPlan::Source::kJpeg) {
    SYSTOLE_ASSIGN_OR_RETURN(const ImageInfo info, transformer.ReadHeader(bytes));
    height = info.height;
    width = info.width;
  } else {
    height = static_cast<int>(output.stored_shape[0]);
    width = static_cast<int>(output.stored_shape[1]);
  }
  const uint64_t seed = plan.spec().seed();
  const CropRect crop = CropOf(output, seed, epoch, record, height, width);
  bool flip = false;
  if (output.flip) {
    CounterRng rng(seed, epoch, record, kFlipDraws);
    flip = DrawFlip(rng);
  }
  if (output.source == OutputPlan::Source::kJpeg) return transformer.Transform(crop, flip, out);
  return transformer.TransformPixels(AsBytes(bytes), height, width, crop, flip, out);
}

absl::Status ExampleMaker::FillNumbers(const OutputPlan& output, const FeatureView& feature,
                                       absl::Span<uint8_t> out) {
  const auto count = static_cast<size_t>(output.stored_elements);
  if (output.source == OutputPlan::Source::kInt64List) {
    SYSTOLE_RETURN_IF_ERROR(feature.Expect(FeatureKind::kInt64, output.stored_elements));
    int64s_.resize(count);
    SYSTOLE_RETURN_IF_ERROR(feature.CopyInt64s(absl::MakeSpan(int64s_)));
    return FillInts(output, int64s_, out);
  }
  SYSTOLE_RETURN_IF_ERROR(feature.Expect(FeatureKind::kFloat, output.stored_elements));
  floats_.resize(count);
  SYSTOLE_RETURN_IF_ERROR(feature.CopyFloats(absl::MakeSpan(floats_)));
  const int channels = output.normalize ? static_cast<int>(output.scale.size()) : 1;
  return NormaliseFloat(floats_, channels,
                        output.normalize ? Normalisation{.scale = output.scale, .bias = output.bias}
                                         : Normalisation{},
                        PixelTypeOf(output.dtype), out);
}

}  // namespace systole
