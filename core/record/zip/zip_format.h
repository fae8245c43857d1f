// A record that is joined from one record of each member:
//   record := size:u64le, once for each member; then the members' payloads, one after the other
// The record does not hold the number of members. Each payload has the member's own format.
//
// Thread-safe: immutable.
#ifndef SYSTOLE_CORE_RECORD_ZIP_ZIP_FORMAT_H_
#define SYSTOLE_CORE_RECORD_ZIP_ZIP_FORMAT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/example/example_format.h"
#include "core/record/zip/zip_names.h"

namespace systole {

// The bytes before the payloads of a joined record.
constexpr size_t ZipHeaderBytes(size_t members) { return members * sizeof(uint64_t); }

// Sets `payloads` to the members' parts of `record`. Reads each size once. DataLoss if the sizes do
// not fit the size of the record.
absl::Status SplitZip(absl::string_view record, absl::Span<absl::string_view> payloads);

// Decodes the members' payloads by their formats, one after the other, and puts each member's
// prefix before the names of its features. An error names the member and is marked as an error of
// the member's part (MarkedAsOfPart()).
class ZipFormat final : public ExampleFormat {
 public:
  // REQUIRES: one format for each member of `names`. The formats must outlive this object.
  ZipFormat(std::vector<const ExampleFormat*> formats, std::shared_ptr<const ZipNames> names)
      : formats_(std::move(formats)), names_(std::move(names)) {}

  const std::vector<const ExampleFormat*>& formats() const { return formats_; }
  const ZipNames& names() const { return *names_; }

  absl::string_view name() const override { return "record of a zip"; }
  absl::Status Decode(absl::string_view record, MadeText& made,
                      absl::FunctionRef<void(const FeatureView&)> visit) const override;

 private:
  const std::vector<const ExampleFormat*> formats_;
  const std::shared_ptr<const ZipNames> names_;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_RECORD_ZIP_ZIP_FORMAT_H_
