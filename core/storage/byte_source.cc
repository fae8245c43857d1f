#include "core/storage/byte_source.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/status/status_macros.h"
#include "core/text/foreign_text.h"
#include "core/text/web_address.h"

namespace systole {
namespace {

// The first read of ReadWhole() has this many bytes, if the source is not local.
constexpr uint64_t kFirstPieceBytes = 1 << 20;

}  // namespace

std::string ShownName(absl::string_view name) {
  return MayHoldSecrets(name) ? ShownAddress(name) : std::string(name);
}

absl::string_view BaseName(absl::string_view path) {
  if (MayHoldSecrets(path)) return AddressBaseName(path);
  const size_t slash = path.rfind('/');
  return slash == absl::string_view::npos ? path : path.substr(slash + 1);
}

absl::string_view NameForClients(absl::string_view path) {
  const absl::string_view base = BaseName(path);
  const absl::string_view before = path.substr(0, static_cast<size_t>(base.data() - path.data()));
  const bool is_all_of_a_server =
      IsOnServer(path) && (absl::EndsWith(before, "://") || absl::EndsWith(before, "@"));
  return base.empty() || is_all_of_a_server ? "/" : base;
}

bool IsOnServer(absl::string_view name) { return IsWebAddress(name) || IsBucketName(name); }

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
  std::string bytes;
  while (bytes.size() < size) {
    const size_t begin = bytes.size();
    const uint64_t piece = source.is_local() ? size : std::max<uint64_t>(kFirstPieceBytes, begin);
    bytes.resize(begin + std::min(piece, size - begin));
    SYSTOLE_RETURN_IF_ERROR(ReadExactlyAt(source, begin, absl::MakeSpan(bytes).subspan(begin)));
  }
  return bytes;
}

}  // namespace systole
