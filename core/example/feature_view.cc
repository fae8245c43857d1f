#include "core/example/feature_view.h"

#include <bit>
#include <cstring>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "core/example/wire_reader.h"
#include "core/status/check.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

constexpr uint32_t kPacked = WireTag(1, kWireBytes);

// Calls visit(tag, reader) for each field of a message that the decoder has accepted. `visit` takes
// the value and returns true, or returns false to have it skipped.
template <typename Visit>
void ForEachField(absl::string_view message, Visit visit) {
  WireReader reader(message);
  while (!reader.done()) {
    uint32_t tag = 0;
    SYSTOLE_CHECK(reader.ReadTag(&tag));
    if (!visit(tag, reader)) SYSTOLE_CHECK(reader.SkipValue(tag));
  }
}

absl::string_view TakeBytes(WireReader& reader) {
  absl::string_view bytes;
  SYSTOLE_CHECK(reader.ReadBytes(&bytes));
  return bytes;
}

// x86-64 and arm64 hold a float as the wire does.
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

absl::Status FeatureView::Expect(FeatureKind kind, int64_t count) const {
  if (kind_ == kind && count_ == count) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "feature \"", absl::Utf8SafeCEscape(name_), "\": want ", FeatureKindName(kind), " with ",
      Values(count), ", ",
      kind_ == FeatureKind::kMissing
          ? std::string("the record has no such feature")
          : absl::StrCat("the record has ", FeatureKindName(kind_), " with ", Values(count_))));
}

template <typename Visit>
void FeatureView::ForEachList(Visit visit) const {
  if (entry_.empty()) {
    visit(list_);
    return;
  }
  int64_t lists = 0;
  ForEachField(entry_, [&](uint32_t entry_tag, WireReader& entry) {
    if (entry_tag != WireTag(2, kWireBytes)) return false;
    ForEachField(TakeBytes(entry), [&](uint32_t tag, WireReader& feature) {
      if (tag != WireTag(1, kWireBytes) && tag != WireTag(2, kWireBytes) &&
          tag != WireTag(3, kWireBytes)) {
        return false;
      }
      const absl::string_view list = TakeBytes(feature);
      if (lists++ >= skipped_lists_) visit(list);
      return true;
    });
    return true;
  });
}

absl::StatusOr<absl::string_view> FeatureView::BytesAt(int64_t index) const {
  if (kind_ != FeatureKind::kBytes || index < 0 || index >= count_) {
    return absl::InvalidArgumentError(absl::StrCat(
        "feature \"", absl::Utf8SafeCEscape(name_), "\": want bytes value ", index, ", ",
        kind_ == FeatureKind::kMissing
            ? std::string("the record has no such feature")
            : absl::StrCat("the record has ", FeatureKindName(kind_), " with ", Values(count_))));
  }
  absl::string_view found;
  int64_t at = 0;
  ForEachList([&](absl::string_view list) {
    WireReader reader(list);
    while (at <= index && !reader.done()) {
      uint32_t tag = 0;
      SYSTOLE_CHECK(reader.ReadTag(&tag));
      if (tag != WireTag(1, kWireBytes)) {
        SYSTOLE_CHECK(reader.SkipValue(tag));
      } else {
        found = TakeBytes(reader);
        ++at;
      }
    }
  });
  return found;
}

absl::Status FeatureView::CopyInt64s(absl::Span<int64_t> out) const {
  SYSTOLE_RETURN_IF_ERROR(Expect(FeatureKind::kInt64, static_cast<int64_t>(out.size())));
  int64_t* next = out.data();
  const auto take = [&](WireReader& reader) {
    uint64_t value = 0;
    SYSTOLE_CHECK(reader.ReadVarint(&value));
    *next++ = static_cast<int64_t>(value);
  };
  ForEachList([&](absl::string_view list) {
    ForEachField(list, [&](uint32_t tag, WireReader& reader) {
      if (tag == kPacked) {
        WireReader packed(TakeBytes(reader));
        while (!packed.done()) take(packed);
      } else if (tag == WireTag(1, kWireVarint)) {
        take(reader);
      } else {
        return false;
      }
      return true;
    });
  });
  return absl::OkStatus();
}

absl::Status FeatureView::CopyFloats(absl::Span<float> out) const {
  SYSTOLE_RETURN_IF_ERROR(Expect(FeatureKind::kFloat, static_cast<int64_t>(out.size())));
  float* next = out.data();
  ForEachList([&](absl::string_view list) {
    ForEachField(list, [&](uint32_t tag, WireReader& reader) {
      if (tag == kPacked) {
        const absl::string_view packed = TakeBytes(reader);
        if (packed.empty()) return true;  // memcpy must not see the null end of an empty span.
        std::memcpy(next, packed.data(), packed.size());
        next += packed.size() / sizeof(float);
      } else if (tag == WireTag(1, kWireFixed32)) {
        uint32_t bits = 0;
        SYSTOLE_CHECK(reader.ReadFixed32(&bits));
        *next++ = std::bit_cast<float>(bits);
      } else {
        return false;
      }
      return true;
    });
  });
  return absl::OkStatus();
}

}  // namespace systole
