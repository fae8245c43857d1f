#include "core/record/source/record_source.h"

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "core/text/foreign_text.h"

namespace systole {
namespace {

// The payloads that mark an error.
constexpr char kChecksumUrl[] = "systole/checksum-mismatch";
constexpr char kPartUrl[] = "systole/part-at-fault";

}  // namespace

absl::Status MarkedAsChecksumMismatch(absl::Status damage) {
  damage.SetPayload(kChecksumUrl, absl::Cord());
  return damage;
}

bool IsChecksumMismatch(const absl::Status& error) {
  return error.GetPayload(kChecksumUrl).has_value();
}

absl::Status MarkedAsOfPart(absl::Status error, std::optional<size_t> part) {
  if (part.has_value()) error.SetPayload(kPartUrl, absl::Cord(absl::StrCat(*part)));
  return error;
}

std::optional<size_t> PartAtFault(const absl::Status& error) {
  const absl::optional<absl::Cord> mark = error.GetPayload(kPartUrl);
  uint64_t part = 0;
  if (!mark.has_value() || !absl::SimpleAtoi(std::string(*mark), &part)) return std::nullopt;
  return static_cast<size_t>(part);
}

std::string RecordSource::PlaceOf(int64_t record) const {
  const std::string file = FileOf(record);
  if (!file.empty()) {
    return absl::StrCat("record ", record, ", the file \"", ForeignName(file), "\"");
  }
  if (unread_index() != nullptr) return absl::StrCat("record ", record);
  return absl::StrCat("record ", record, " at byte offset ", span(record).offset);
}

uint64_t RecordSource::far_size() const {
  const ByteSource* const far = far_bytes();
  if (far == nullptr) return 0;
  return far_pieces() == nullptr ? size_bytes() : far->Size().value_or(file_bytes());
}

absl::Status RecordSource::ReadFetched(absl::Span<const int64_t> /*records*/,
                                       FetchedBytes /*fetched*/, AlignedBuffer& /*scratch*/,
                                       RecordCallback /*callback*/) const {
  return absl::InternalError("records without far_bytes() cannot be read from fetched bytes");
}

}  // namespace systole
