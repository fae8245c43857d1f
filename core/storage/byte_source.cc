#include "core/storage/byte_source.h"

#include "absl/strings/str_cat.h"
#include "core/status/status_macros.h"
#include "core/text/foreign_text.h"
#include "core/text/web_address.h"

namespace systole {

std::string ShownName(absl::string_view name) {
  return IsWebAddress(name) ? ShownAddress(name) : std::string(name);
}

absl::string_view BaseName(absl::string_view path) {
  if (IsWebAddress(path)) return AddressBaseName(path);
  const size_t slash = path.rfind('/');
  return slash == absl::string_view::npos ? path : path.substr(slash + 1);
}

absl::Status ReadExactlyAt(const ByteSource& source, uint64_t offset, absl::Span<char> out) {
  SYSTOLE_ASSIGN_OR_RETURN(const size_t read, source.ReadAt(offset, out));
  if (read != out.size()) {
    return absl::DataLossError(absl::StrCat("\"", ForeignName(BaseName(source.name())),
                                            "\" ends at byte ", offset + read, "; wanted ",
                                            out.size(), " bytes from byte ", offset));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadWhole(const ByteSource& source, uint64_t max_bytes) {
  SYSTOLE_ASSIGN_OR_RETURN(const uint64_t size, source.Size());
  if (size > max_bytes) {
    return absl::ResourceExhaustedError(absl::StrCat("\"", ForeignText(ShownName(source.name())),
                                                     "\" has ", size, " bytes, want at most ",
                                                     max_bytes));
  }
  std::string bytes(size, '\0');
  SYSTOLE_RETURN_IF_ERROR(ReadExactlyAt(source, 0, absl::MakeSpan(bytes)));
  return bytes;
}

}  // namespace systole
