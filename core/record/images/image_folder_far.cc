// The images of an ImageFolder as bytes to be read ahead.
#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "core/checksum/xxh3.h"
#include "core/interrupt/interrupt.h"
#include "core/record/images/image_folder.h"
#include "core/status/status_macros.h"
#include "core/storage/byte_source.h"

namespace systole {

class ImageFolder::FarBytes final : public ByteSource {
 public:
  explicit FarBytes(const ImageFolder& folder) : folder_(folder) {
    Xxh3Hasher states;
    for (const File& file : folder.files_) {
      if (file.identity_hash == Xxh3("")) return;
      states.Update(file.name);
      states.UpdateU64(file.identity_hash);
      states.UpdateU64(file.facts.bytes);
      states.UpdateU64(file.facts.crc);
    }
    identity_ = absl::StrFormat("images %016x", states.Digest64());
  }

  absl::StatusOr<size_t> ReadAt(uint64_t offset, absl::Span<char> out) const override {
    const std::vector<uint64_t>& ends = folder_.ends_;
    auto end = std::upper_bound(ends.begin(), ends.end(), offset);
    size_t done = 0;
    for (; end != ends.end() && done < out.size(); ++end) {
      const int64_t record = end - ends.begin();
      const uint64_t within = offset + done - folder_.span(record).offset;
      const absl::Span<char> part =
          out.subspan(done, std::min<uint64_t>(out.size() - done, *end - (offset + done)));
      SYSTOLE_RETURN_IF_ERROR(ReadPart(record, within, part));
      done += part.size();
    }
    return done;
  }
  absl::StatusOr<uint64_t> Size() const override { return folder_.file_bytes(); }
  // The identity of all files together. Empty if any file has no identity.
  std::string identity() const override { return identity_; }
  // OK, because every read checks the files that it reads.
  absl::Status CheckUnchanged() const override { return absl::OkStatus(); }
  absl::string_view name() const override { return folder_.path(); }

 private:
  absl::Status ReadPart(int64_t record, uint64_t within, absl::Span<char> out) const {
    if (InterruptRequested()) return InterruptedError();
    if (folder_.file(record).facts.is_damaged()) {  // No code looks at the bytes of a damaged file.
      std::memset(out.data(), 0, out.size());
      return folder_.CheckDamagedFile(record);
    }
    SYSTOLE_ASSIGN_OR_RETURN(const std::unique_ptr<ByteSource> file, folder_.OpenFile(record));
    SYSTOLE_ASSIGN_OR_RETURN(const size_t read, file->ReadAt(within, out));
    if (read < out.size()) return folder_.Changed(record, "became shorter");
    return file->CheckUnchanged();
  }

  const ImageFolder& folder_;
  std::string identity_;
};

std::unique_ptr<const ByteSource> ImageFolder::MakeFarBytes() const {
  return std::make_unique<FarBytes>(*this);
}

}  // namespace systole
