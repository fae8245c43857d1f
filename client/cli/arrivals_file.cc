#include "client/cli/arrivals_file.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "core/status/status_macros.h"
#include "core/storage/file_sink.h"
#include "core/storage/file_source.h"

namespace systole {

absl::StatusOr<emulator::Arrivals> LoadArrivals(const std::string& path) {
  SYSTOLE_ASSIGN_OR_RETURN(const std::unique_ptr<FileSource> source, FileSource::Open(path));
  const uint64_t bytes = source->identity().size_bytes;
  if (bytes > static_cast<uint64_t>(kMaxArrivalsBytes)) {
    return absl::ResourceExhaustedError(absl::StrCat(path, " is of ", bytes,
                                                     " bytes, want at most ", kMaxArrivalsBytes,
                                                     "; record fewer steps"));
  }
  std::string text(static_cast<size_t>(bytes), '\0');
  SYSTOLE_ASSIGN_OR_RETURN(const size_t read, source->ReadAt(0, absl::MakeSpan(text)));
  text.resize(read);
  return emulator::ParseArrivals(text, path);
}

absl::Status SaveArrivals(const std::string& path, const emulator::Arrivals& arrivals) {
  SYSTOLE_ASSIGN_OR_RETURN(const std::unique_ptr<FileSink> sink, FileSink::Create(path));
  SYSTOLE_RETURN_IF_ERROR(sink->Append(emulator::ArrivalsText(arrivals)));
  return sink->Close();
}

}  // namespace systole
