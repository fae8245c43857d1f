#include "core/operations/canonical_spec.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "core/checksum/xxh3.h"
#include "core/operations/ops/mix_draws.h"
#include "core/operations/ops/operation_table.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"

namespace systole {
namespace {

// Replaces each default by the value that it stands for. Removes auto_shard steps that are OFF,
// because they select everything.
void WriteSelection(google::protobuf::RepeatedPtrField<v1::Select>& selects) {
  google::protobuf::RepeatedPtrField<v1::Select> steps;
  for (v1::Select& step : selects) {
    if (step.has_auto_shard()) {
      v1::AutoShard& part = *step.mutable_auto_shard();
      if (part.policy() == v1::AutoShard::OFF) continue;
      if (part.policy() == v1::AutoShard::AUTO) part.set_policy(v1::AutoShard::FILE);
    } else if (step.has_interleave() && step.interleave().block_length() == 0) {
      step.mutable_interleave()->set_block_length(1);
    }
    *steps.Add() = std::move(step);
  }
  selects = std::move(steps);
}

// Divides the weights by their common divisor, because only their ratios count.
void WriteWeights(google::protobuf::RepeatedPtrField<v1::Member>& mixture) {
  int64_t divisor = 0;
  for (const v1::Member& member : mixture) {
    if (member.weight() < 1) return;  // The spec is not valid.
    divisor = std::gcd(divisor, member.weight());
  }
  for (v1::Member& member : mixture) member.set_weight(member.weight() / divisor);
}

// Divides the weights of each change by their common divisor. A change at the first example becomes
// the weights of the members.
void WriteWeightChanges(v1::FeedSpec& spec) {
  for (v1::Weights& change : *spec.mutable_weights()) {
    int64_t divisor = 0;
    for (const int64_t weight : change.weights()) {
      if (weight < 0) return;  // The spec is not valid.
      divisor = std::gcd(divisor, weight);
    }
    if (divisor == 0) return;
    for (int64_t& weight : *change.mutable_weights()) weight /= divisor;
  }
  if (spec.weights().empty()) return;
  if (spec.weights(0).from_step() != 0 || spec.weights(0).from_example() != 0) return;
  if (spec.weights(0).weights_size() != spec.mixture_size()) return;
  for (int i = 0; i < spec.mixture_size(); ++i) {
    spec.mutable_mixture(i)->set_weight(spec.weights(0).weights(i));
  }
  spec.mutable_weights()->DeleteSubrange(0, 1);
}

}  // namespace

v1::FeedSpec CanonicalSpec(v1::FeedSpec spec) {
  std::sort(spec.mutable_outputs()->pointer_begin(), spec.mutable_outputs()->pointer_end(),
            [](const v1::Output* a, const v1::Output* b) { return a->name() < b->name(); });
  if (spec.shuffle().mode() != v1::Shuffle::WINDOW) {
    spec.mutable_shuffle()->clear_block_records();
    spec.mutable_shuffle()->clear_window_records();
  }
  spec.mutable_shuffle();  // An unset shuffle and an empty one mean the same.
  WriteSelection(*spec.mutable_select());
  for (v1::Member& member : *spec.mutable_mixture()) WriteSelection(*member.mutable_select());
  for (v1::Member& member : *spec.mutable_concatenation()) WriteSelection(*member.mutable_select());
  WriteWeights(*spec.mutable_mixture());
  WriteWeightChanges(spec);
  if (spec.num_cores() == 0) spec.set_num_cores(1);
  // If the number of cores divides the batch, every rule splits the batch in the same way.
  if (spec.num_cores() > 0 && spec.global_batch() % spec.num_cores() == 0) spec.clear_split();
  if (spec.has_mix()) {
    WriteMixDefaults(*spec.mutable_mix());
    std::sort(spec.mutable_mix()->mutable_images()->begin(),
              spec.mutable_mix()->mutable_images()->end());
    std::sort(spec.mutable_mix()->mutable_labels()->begin(),
              spec.mutable_mix()->mutable_labels()->end());
  }
  for (v1::Output& output : *spec.mutable_outputs()) {
    output.clear_cache();  // A cache changes no byte of a feed.
    for (v1::Transform& transform : *output.mutable_transforms()) {
      const OperationRow* const row = FindOperation(transform.kind_case());
      if (row != nullptr) transform = WithDefaults(*row, transform);
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
