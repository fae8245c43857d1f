#include "core/example/feature_decoder.h"

#include "absl/strings/str_cat.h"

namespace systole {
namespace {

constexpr uint32_t kField1Bytes = WireTag(1, kWireBytes);
constexpr uint32_t kField2Bytes = WireTag(2, kWireBytes);
constexpr uint32_t kField3Bytes = WireTag(3, kWireBytes);

// How deep the fields of each kind of message are nested. The fields of the Example itself have
// depth 0.
constexpr int kFeaturesDepth = 1;
constexpr int kEntryDepth = 2;
constexpr int kFeatureDepth = 3;
constexpr int kListDepth = 4;

FeatureKind KindOfTag(uint32_t tag) {
  switch (tag) {
    case kField1Bytes:
      return FeatureKind::kBytes;
    case kField2Bytes:
      return FeatureKind::kFloat;
    case kField3Bytes:
      return FeatureKind::kInt64;
    default:
      return FeatureKind::kMissing;
  }
}

}  // namespace

bool FeatureDecoder::Fail(const char* position, const char* error) {
  bad_position_ = position;
  bad_ = error;
  return false;
}

absl::Status FeatureDecoder::Error() const {
  return absl::DataLossError(absl::StrCat("not a tf.train.Example: ", bad_, " at byte ",
                                          bad_position_ - record_.data(), " of ", record_.size()));
}

absl::Status FeatureDecoder::Decode(absl::FunctionRef<void(const FeatureView&)> visit) {
  return DecodeExample(visit) ? absl::OkStatus() : Error();
}

bool FeatureDecoder::DecodeExample(absl::FunctionRef<void(const FeatureView&)> visit) {
  WireReader reader(record_);
  while (!reader.done()) {
    uint32_t tag = 0;
    if (!reader.ReadTag(&tag)) return Fail(reader);
    if (tag == kField1Bytes) {
      absl::string_view features;
      if (!reader.ReadBytes(&features)) return Fail(reader);
      if (!DecodeFeatures(features, visit)) return false;
    } else if (!reader.SkipValue(tag)) {
      return Fail(reader);
    }
  }
  return true;
}

bool FeatureDecoder::DecodeFeatures(absl::string_view features,
                                    absl::FunctionRef<void(const FeatureView&)> visit) {
  WireReader reader(features, kFeaturesDepth);
  while (!reader.done()) {
    uint32_t tag = 0;
    if (!reader.ReadTag(&tag)) return Fail(reader);
    if (tag == kField1Bytes) {
      absl::string_view entry;
      if (!reader.ReadBytes(&entry)) return Fail(reader);
      FeatureView view;
      if (!DecodeEntry(entry, &view)) return false;
      visit(view);
    } else if (!reader.SkipValue(tag)) {
      return Fail(reader);
    }
  }
  return true;
}

bool FeatureDecoder::DecodeEntry(absl::string_view entry, FeatureView* view) {
  WireReader reader(entry, kEntryDepth);
  absl::string_view bytes;
  int64_t lists = 0;   // Lists seen, of any kind.
  int64_t pieces = 0;  // Lists that count: those since the kind last changed.
  while (!reader.done()) {
    uint32_t tag = 0;
    if (!reader.ReadTag(&tag)) return Fail(reader);
    if (tag == kField1Bytes) {
      if (!reader.ReadBytes(&view->name_)) return Fail(reader);
    } else if (tag == kField2Bytes) {
      if (!reader.ReadBytes(&bytes)) return Fail(reader);
      if (!DecodeFeature(bytes, view, &lists, &pieces)) return false;
    } else if (!reader.SkipValue(tag)) {
      return Fail(reader);
    }
  }
  if (pieces > 1) view->entry_ = entry;
  return true;
}

bool FeatureDecoder::DecodeFeature(absl::string_view feature, FeatureView* view, int64_t* lists,
                                   int64_t* pieces) {
  WireReader reader(feature, kFeatureDepth);
  while (!reader.done()) {
    uint32_t tag = 0;
    if (!reader.ReadTag(&tag)) return Fail(reader);
    const FeatureKind kind = KindOfTag(tag);
    if (kind == FeatureKind::kMissing) {
      if (!reader.SkipValue(tag)) return Fail(reader);
      continue;
    }
    absl::string_view list;
    if (!reader.ReadBytes(&list)) return Fail(reader);
    if (kind != view->kind_) {  // The oneof changes: earlier lists do not count.
      view->kind_ = kind;
      view->count_ = 0;
      view->skipped_lists_ = *lists;
      view->list_ = list;
      *pieces = 0;
    }
    ++*lists;
    ++*pieces;
    if (!CountList(kind, list, &view->count_)) return false;
  }
  return true;
}

bool FeatureDecoder::CountList(FeatureKind kind, absl::string_view list, int64_t* count) {
  WireReader reader(list, kListDepth);
  while (!reader.done()) {
    uint32_t tag = 0;
    if (!reader.ReadTag(&tag)) return Fail(reader);
    if (tag == kField1Bytes) {
      absl::string_view bytes;
      if (!reader.ReadBytes(&bytes)) return Fail(reader);
      if (kind == FeatureKind::kBytes) {
        ++*count;
      } else if (kind == FeatureKind::kFloat) {
        if (bytes.size() % 4 != 0) return Fail(bytes.data(), "packed floats are cut short");
        *count += static_cast<int64_t>(bytes.size() / 4);
      } else {
        const int64_t varints = CountVarints(bytes);
        if (varints < 0) return Fail(bytes.data(), "packed int64s hold a bad varint");
        *count += varints;
      }
    } else {
      const bool one_value = (kind == FeatureKind::kFloat && tag == WireTag(1, kWireFixed32)) ||
                             (kind == FeatureKind::kInt64 && tag == WireTag(1, kWireVarint));
      if (!reader.SkipValue(tag)) return Fail(reader);
      if (one_value) ++*count;
    }
  }
  return true;
}

}  // namespace systole
