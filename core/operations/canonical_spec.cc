#include "core/operations/canonical_spec.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/checksum/xxh3.h"
#include "core/operations/mix_draws.h"
#include "core/operations/operation_table.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"

namespace systole {
namespace {

// Writes the defaults out, and leaves out steps that select everything.
void WriteSelection(v1::FeedSpec& spec) {
  google::protobuf::RepeatedPtrField<v1::Select> steps;
  for (v1::Select& step : *spec.mutable_select()) {
    if (step.has_auto_shard()) {
      v1::AutoShard& part = *step.mutable_auto_shard();
      if (part.policy() == v1::AutoShard::OFF) continue;
      if (part.policy() == v1::AutoShard::AUTO) part.set_policy(v1::AutoShard::FILE);
    } else if (step.has_interleave() && step.interleave().block_length() == 0) {
      step.mutable_interleave()->set_block_length(1);
    }
    *steps.Add() = std::move(step);
  }
  *spec.mutable_select() = std::move(steps);
}

}  // namespace

v1::FeedSpec CanonicalSpec(v1::FeedSpec spec) {
  std::sort(spec.mutable_outputs()->pointer_begin(), spec.mutable_outputs()->pointer_end(),
            [](const v1::Output* a, const v1::Output* b) { return a->name() < b->name(); });
  if (spec.shuffle().mode() != v1::Shuffle::WINDOW) {
    spec.mutable_shuffle()->clear_block_records();
    spec.mutable_shuffle()->clear_window_records();
  }
  spec.mutable_shuffle();  // Unset and empty mean the same.
  WriteSelection(spec);
  // Cores that divide the batch share it alike by every rule.
  if (spec.num_cores() > 0 && spec.global_batch() % spec.num_cores() == 0) spec.clear_split();
  spec.clear_wire();  // How bytes travel does not say which.
  if (spec.has_mix()) {
    WriteMixDefaults(*spec.mutable_mix());
    std::sort(spec.mutable_mix()->mutable_images()->begin(),
              spec.mutable_mix()->mutable_images()->end());
    std::sort(spec.mutable_mix()->mutable_labels()->begin(),
              spec.mutable_mix()->mutable_labels()->end());
  }
  for (v1::Output& output : *spec.mutable_outputs()) {
    for (v1::Transform& transform : *output.mutable_transforms()) {
      const OperationRow* const row = FindOperation(transform.kind_case());
      if (row != nullptr && row->write_defaults != nullptr) row->write_defaults(transform);
    }
  }
  return spec;
}

uint64_t SpecFingerprint(const v1::FeedSpec& spec) {
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    CanonicalSpec(spec).SerializeToCodedStream(&coded);
  }
  return Xxh3(bytes);
}

}  // namespace systole
