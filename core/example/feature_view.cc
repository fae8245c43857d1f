#include "core/example/feature_view.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/example/wire_reader.h"
#include "core/status/status_macros.h"
#include "core/text/foreign_text.h"

namespace systole {
namespace {

constexpr uint32_t kPacked = WireTag(1, kWireBytes);

// Calls visit(tag, reader) for each field of a message; `visit` takes the value or skips it, and
// returns whether to go on. Returns false if `visit` returned false or the message is malformed.
// The decoder has already accepted the message. So a malformed message is one that has changed.
template <typename Visit>
bool ForEachField(absl::string_view message, Visit visit) {
  WireReader reader(message);
  while (!reader.done()) {
    uint32_t tag = 0;
    if (!reader.ReadTag(&tag) || !visit(tag, reader)) return false;
  }
  return true;
}

// Floats are copied without a change of byte order, because protobuf is little-endian, too.
static_assert(std::endian::native == std::endian::little);

std::string Values(int64_t count) { return absl::StrCat(count, count == 1 ? " value" : " values"); }

}  // namespace

absl::string_view FeatureKindName(FeatureKind kind) {
  switch (kind) {
    case FeatureKind::kMissing:
      return "missing";
    case FeatureKind::kBytes:
      return "bytes";
    case FeatureKind::kFloat:
      return "float";
    case FeatureKind::kInt64:
      return "int64";
  }
  return "missing";
}

FeatureView FeatureView::OfBytes(absl::string_view name, absl::string_view value) {
  FeatureView view(name, FeatureKind::kBytes);
  view.list_ = value;
  return view;
}

FeatureView FeatureView::OfInt64(absl::string_view name, int64_t value) {
  FeatureView view(name, FeatureKind::kInt64);
  view.number_.int64 = value;
  return view;
}

FeatureView FeatureView::OfFloat(absl::string_view name, float value) {
  FeatureView view(name, FeatureKind::kFloat);
  view.number_.float32 = value;
  return view;
}

FeatureView FeatureView::OfInt64Array(absl::string_view name, absl::string_view values) {
  FeatureView view(name, FeatureKind::kInt64, Form::kArray,
                   static_cast<int64_t>(values.size() / sizeof(int64_t)));
  view.list_ = values;
  return view;
}

FeatureView FeatureView::OfFloatArray(absl::string_view name, absl::string_view values) {
  FeatureView view(name, FeatureKind::kFloat, Form::kArray,
                   static_cast<int64_t>(values.size() / sizeof(float)));
  view.list_ = values;
  return view;
}

absl::Span<const float> FeatureView::FloatsInPlace() const {
  const bool is_aligned = reinterpret_cast<uintptr_t>(list_.data()) % alignof(float) == 0;
  if (form_ != Form::kArray || kind_ != FeatureKind::kFloat || !is_aligned) return {};
  return {reinterpret_cast<const float*>(list_.data()), static_cast<size_t>(count_)};
}

absl::Status FeatureView::Unexpected(absl::string_view wanted) const {
  return absl::InvalidArgumentError(absl::StrCat(
      "feature \"", ForeignName(name_), "\": want ", wanted, ", ",
      kind_ == FeatureKind::kMissing
          ? std::string("the record has no such feature")
          : absl::StrCat("the record has ", FeatureKindName(kind_), " with ", Values(count_))));
}

absl::Status FeatureView::Expect(FeatureKind kind, int64_t count) const {
  if (kind_ == kind && count_ == count) return absl::OkStatus();
  return Unexpected(absl::StrCat(FeatureKindName(kind), " with ", Values(count)));
}

absl::Status FeatureView::ExpectKind(FeatureKind kind) const {
  if (kind_ == kind) return absl::OkStatus();
  return Unexpected(FeatureKindName(kind));
}

absl::Status FeatureView::ExpectAtLeast(FeatureKind kind, size_t count) const {
  if (kind_ == kind && count_ >= static_cast<int64_t>(count)) return absl::OkStatus();
  return Unexpected(absl::StrCat(FeatureKindName(kind), " with ", count, " or more values"));
}

absl::Status FeatureView::Changed() const {
  return absl::DataLossError(
      absl::StrCat("feature \"", ForeignName(name_), "\" changed while it was read"));
}

template <typename Visit>
bool FeatureView::ForEachList(Visit visit) const {
  if (entry_.empty()) return visit(list_);
  int64_t lists = 0;
  return ForEachField(entry_, [&](uint32_t entry_tag, WireReader& entry) {
    absl::string_view feature;
    if (entry_tag != WireTag(2, kWireBytes)) return entry.SkipValue(entry_tag);
    if (!entry.ReadBytes(&feature)) return false;
    return ForEachField(feature, [&](uint32_t tag, WireReader& reader) {
      if (tag != WireTag(1, kWireBytes) && tag != WireTag(2, kWireBytes) &&
          tag != WireTag(3, kWireBytes)) {
        return reader.SkipValue(tag);
      }
      absl::string_view list;
      return reader.ReadBytes(&list) && (lists++ < skipped_lists_ || visit(list));
    });
  });
}

absl::StatusOr<absl::string_view> FeatureView::BytesAt(int64_t index) const {
  if (kind_ != FeatureKind::kBytes || index < 0 || index >= count_) {
    return Unexpected(absl::StrCat("bytes value ", index));
  }
  if (form_ == Form::kOneValue) return list_;
  std::optional<absl::string_view> found;
  int64_t at = 0;
  ForEachList([&](absl::string_view list) {
    return ForEachField(list, [&](uint32_t tag, WireReader& reader) {
      if (tag != WireTag(1, kWireBytes)) return reader.SkipValue(tag);
      absl::string_view value;
      if (!reader.ReadBytes(&value)) return false;
      if (at++ == index) found = value;
      return !found.has_value();
    });
  });
  if (!found.has_value()) return Changed();
  return *found;
}

absl::Status FeatureView::GetBytes(absl::Span<absl::string_view> out) const {
  SYSTOLE_RETURN_IF_ERROR(Expect(FeatureKind::kBytes, static_cast<int64_t>(out.size())));
  if (form_ == Form::kOneValue) {
    out[0] = list_;
    return absl::OkStatus();
  }
  size_t at = 0;
  const bool all = ForEachList([&](absl::string_view list) {
    return ForEachField(list, [&](uint32_t tag, WireReader& reader) {
      if (tag != WireTag(1, kWireBytes)) return reader.SkipValue(tag);
      return at < out.size() && reader.ReadBytes(&out[at++]);
    });
  });
  return all && at == out.size() ? absl::OkStatus() : Changed();
}

template <typename Number>
FeatureView::Copied FeatureView::CopyArray(absl::Span<Number> out) const {
  const size_t count = std::min(static_cast<size_t>(count_), out.size());
  // memcpy must not get the null pointer of an empty span.
  if (count > 0) std::memcpy(out.data(), list_.data(), count * sizeof(Number));
  return {.values = count, .all = count == static_cast<size_t>(count_)};
}

FeatureView::Copied FeatureView::ReadInt64s(absl::Span<int64_t> out) const {
  if (form_ == Form::kArray) return CopyArray(out);
  if (form_ == Form::kOneValue) {
    if (!out.empty()) out[0] = number_.int64;
    return {.values = std::min<size_t>(out.size(), 1), .all = !out.empty()};
  }
  size_t copied = 0;
  const auto take = [&](WireReader& reader) {
    uint64_t value = 0;
    if (!reader.ReadVarint(&value) || copied == out.size()) return false;
    out[copied++] = static_cast<int64_t>(value);
    return true;
  };
  const bool all = ForEachList([&](absl::string_view list) {
    return ForEachField(list, [&](uint32_t tag, WireReader& reader) {
      if (tag == WireTag(1, kWireVarint)) return take(reader);
      if (tag != kPacked) return reader.SkipValue(tag);
      absl::string_view bytes;
      if (!reader.ReadBytes(&bytes)) return false;
      WireReader packed(bytes);
      while (!packed.done()) {
        if (!take(packed)) return false;
      }
      return true;
    });
  });
  return {.values = copied, .all = all};
}

FeatureView::Copied FeatureView::ReadFloats(absl::Span<float> out) const {
  if (form_ == Form::kArray) return CopyArray(out);
  if (form_ == Form::kOneValue) {
    if (!out.empty()) out[0] = number_.float32;
    return {.values = std::min<size_t>(out.size(), 1), .all = !out.empty()};
  }
  absl::Span<float> left = out;
  const bool all = ForEachList([&](absl::string_view list) {
    return ForEachField(list, [&](uint32_t tag, WireReader& reader) {
      if (tag == kPacked) {
        absl::string_view packed;
        if (!reader.ReadBytes(&packed)) return false;
        const size_t there = packed.size() / sizeof(float);
        const size_t count = std::min(there, left.size());
        // memcpy must not get the null pointer of an empty span.
        if (count > 0) std::memcpy(left.data(), packed.data(), count * sizeof(float));
        left.remove_prefix(count);
        return count == there;
      }
      if (tag != WireTag(1, kWireFixed32)) return reader.SkipValue(tag);
      uint32_t bits = 0;
      if (!reader.ReadFixed32(&bits) || left.empty()) return false;
      left.front() = std::bit_cast<float>(bits);
      left.remove_prefix(1);
      return true;
    });
  });
  return {.values = out.size() - left.size(), .all = all};
}

absl::Status FeatureView::CopyInt64s(absl::Span<int64_t> out) const {
  SYSTOLE_RETURN_IF_ERROR(Expect(FeatureKind::kInt64, static_cast<int64_t>(out.size())));
  const Copied copied = ReadInt64s(out);
  return copied.all && copied.values == out.size() ? absl::OkStatus() : Changed();
}

absl::Status FeatureView::CopyFloats(absl::Span<float> out) const {
  SYSTOLE_RETURN_IF_ERROR(Expect(FeatureKind::kFloat, static_cast<int64_t>(out.size())));
  const Copied copied = ReadFloats(out);
  return copied.all && copied.values == out.size() ? absl::OkStatus() : Changed();
}

absl::Status FeatureView::CopyFirstInt64s(absl::Span<int64_t> out) const {
  SYSTOLE_RETURN_IF_ERROR(ExpectAtLeast(FeatureKind::kInt64, out.size()));
  return ReadInt64s(out).values == out.size() ? absl::OkStatus() : Changed();
}

absl::Status FeatureView::CopyFirstFloats(absl::Span<float> out) const {
  SYSTOLE_RETURN_IF_ERROR(ExpectAtLeast(FeatureKind::kFloat, out.size()));
  return ReadFloats(out).values == out.size() ? absl::OkStatus() : Changed();
}

}  // namespace systole
