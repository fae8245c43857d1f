#include "core/record/source/read_scratch.h"

#include <algorithm>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "core/interrupt/interrupt.h"
#include "core/memory/scratch_scope.h"

namespace systole {

absl::Status ReadFailure(const absl::Status& status) {
  if (!absl::IsDataLoss(status) && !absl::IsResourceExhausted(status)) return status;
  return absl::UnavailableError(
      absl::StrCat(status.message(),
                   "; the record may be whole: look at the machine's memory and its storage, and "
                   "try again"));
}

absl::Status GrowScratch(uint64_t bytes, AlignedBuffer& scratch) {
  if (bytes <= static_cast<uint64_t>(scratch.size())) return absl::OkStatus();
  const int64_t wanted = std::max<int64_t>(bytes, scratch.size() + scratch.size() / 2);
  if (!NeedScratch(ScratchUse::kReads, wanted)) return InterruptedError();
  scratch = AlignedBuffer();  // Freed first, so that the two buffers do not exist at once.
  absl::StatusOr<AlignedBuffer> larger = AlignedBuffer::Create(wanted);
  if (!larger.ok()) return ReadFailure(larger.status());
  scratch = *std::move(larger);
  return absl::OkStatus();
}

}  // namespace systole
