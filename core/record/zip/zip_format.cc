#include "core/record/zip/zip_format.h"

#include <optional>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "core/memory/little_endian.h"
#include "core/record/source/record_source.h"
#include "core/status/status_macros.h"
#include "core/text/foreign_text.h"

namespace systole {
namespace {

// Most zips have few members. Their views need no allocation.
constexpr size_t kFewMembers = 4;

}  // namespace

absl::Status SplitZip(absl::string_view record, absl::Span<absl::string_view> payloads) {
  const size_t header = ZipHeaderBytes(payloads.size());
  if (record.size() < header) {
    return absl::DataLossError(
        absl::StrCat("a joined record has ", record.size(), " bytes, want ", header, " or more"));
  }
  absl::string_view rest = record.substr(header);
  for (size_t i = 0; i < payloads.size(); ++i) {
    const uint64_t size = LoadU64Le(record.data() + i * sizeof(uint64_t));
    if (size > rest.size()) {
      return absl::DataLossError(absl::StrCat("part ", i, " of a joined record has ", size,
                                              " bytes, but ", rest.size(), " are left"));
    }
    payloads[i] = rest.substr(0, size);
    rest.remove_prefix(size);
  }
  if (rest.empty()) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat("a joined record has ", rest.size(), " bytes after its parts"));
}

absl::Status ZipFormat::Decode(absl::string_view record, MadeText& made,
                               absl::FunctionRef<void(const FeatureView&)> visit) const {
  absl::InlinedVector<absl::string_view, kFewMembers> payloads(formats_.size());
  SYSTOLE_RETURN_IF_ERROR(SplitZip(record, absl::MakeSpan(payloads)));
  size_t left = ZipNames::kMaxMadeBytes;
  bool fits = true;
  for (size_t i = 0; i < payloads.size(); ++i) {
    absl::Status decoded = formats_[i]->Decode(payloads[i], made, [&](const FeatureView& feature) {
      if (!fits) return;
      const std::optional<absl::string_view> name = names_->NameOf(i, feature.name(), made, left);
      fits = name.has_value();
      if (fits) visit(feature.Renamed(*name));
    });
    if (decoded.ok() && !fits) {
      decoded = absl::DataLossError(absl::StrCat(
          "the prefixed names of features that the first records do not have take more than ",
          ZipNames::kMaxMadeBytes, " bytes"));
    }
    if (decoded.ok()) continue;
    return MarkedAsOfPart(absl::Status(decoded.code(), absl::StrCat("the record of '",
                                                                    ForeignName(names_->dataset(i)),
                                                                    "': ", decoded.message())),
                          i);
  }
  return absl::OkStatus();
}

}  // namespace systole
