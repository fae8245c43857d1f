#include "core/record/source/record_source.h"

#include "absl/strings/str_cat.h"
#include "core/text/foreign_text.h"

namespace systole {

std::string RecordSource::PlaceOf(int64_t record) const {
  const std::string file = FileOf(record);
  if (!file.empty()) {
    return absl::StrCat("record ", record, ", the file \"", ForeignName(file), "\"");
  }
  if (unread_index() != nullptr) return absl::StrCat("record ", record);
  return absl::StrCat("record ", record, " at byte offset ", span(record).offset);
}

absl::Status RecordSource::ReadFetched(absl::Span<const int64_t> /*records*/,
                                       FetchedBytes /*fetched*/, AlignedBuffer& /*scratch*/,
                                       RecordCallback /*callback*/) const {
  return absl::InternalError("records without far_bytes() cannot be read from fetched bytes");
}

}  // namespace systole
