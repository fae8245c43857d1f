#include "client/cli/pacing/saved_arrivals.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/emulator/timing/arrivals_file.h"
#include "core/status/status_macros.h"
#include "core/storage/local/file_sink.h"
#include "core/storage/local/file_source.h"

namespace systole {

absl::StatusOr<emulator::Arrivals> LoadArrivals(const std::string& path) {
  SYSTOLE_ASSIGN_OR_RETURN(const std::unique_ptr<FileSource> source, FileSource::Open(path));
  absl::StatusOr<emulator::Arrivals> arrivals = emulator::ReadArrivals(*source);
  if (arrivals.ok()) return arrivals;
  return absl::Status(arrivals.status().code(),
                      absl::StrCat(path, ": ", arrivals.status().message()));
}

absl::Status SaveArrivals(const std::string& path, const emulator::Arrivals& arrivals,
                          absl::string_view version) {
  SYSTOLE_ASSIGN_OR_RETURN(std::unique_ptr<FileSink> sink, FileSink::Create(path));
  return emulator::WriteArrivals(arrivals, version, std::move(sink));
}

}  // namespace systole
