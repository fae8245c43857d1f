#include "core/fetch/block_errors.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "core/storage/byte_source.h"
#include "core/text/foreign_text.h"

namespace systole {
namespace {

constexpr char kLookThere[] =
    "the storage does not answer; check its servers or mounts, and the network to them";

// shard "s-3", 4096 bytes at byte offset 8192
std::string PlaceOf(const BlockRange& range) {
  return absl::StrCat("shard \"", ForeignName(BaseName(range.source->name())), "\", ", range.size,
                      " bytes at byte offset ", range.offset);
}

}  // namespace

absl::Status HasNotCome(const BlockRange& range, absl::Duration timeout) {
  return absl::UnavailableError(absl::StrCat(PlaceOf(range), ": no bytes have come for ",
                                             absl::FormatDuration(timeout), "; ", kLookThere));
}

absl::Status ComesTooSlowly(const BlockRange& range, absl::Duration taken, int64_t come_bytes) {
  return absl::UnavailableError(absl::StrCat(
      PlaceOf(range), ": in ", absl::FormatDuration(absl::Trunc(taken, absl::Milliseconds(100))),
      " only ", come_bytes, " bytes have come, including those of failed attempts; the storage, ",
      "or the network to it, is too slow for a feed; check both"));
}

absl::Status AllReadsHang(const BlockRange& range, absl::Duration timeout) {
  return absl::UnavailableError(absl::StrCat(
      PlaceOf(range), ": not read: no further read can begin for this dataset, because reads have ",
      "hung for ", absl::FormatDuration(timeout), "; ", kLookThere));
}

absl::Status EndsTooSoon(const BlockRange& range, size_t read) {
  return absl::DataLossError(absl::StrCat(PlaceOf(range), ": the shard ends after ", read,
                                          " of the ", range.size, " bytes to be read"));
}

}  // namespace systole
