#include "client/python/extension/compression_name.h"

#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "client/python/extension/raise.h"
#include "core/text/foreign_text.h"

namespace systole::python {
namespace {

Compression CompressionOrRaise(const std::string& name, bool may_detect) {
  const std::optional<Compression> named = CompressionNamed(name);
  if (named.has_value() && (may_detect || *named != Compression::kDetect)) return *named;
  std::vector<absl::string_view> names;
  for (const absl::string_view each : CompressionNames()) {
    if (may_detect || each != CompressionName(Compression::kDetect)) names.push_back(each);
  }
  RaiseIfError(absl::InvalidArgumentError(absl::StrCat(
      "compression is '", ForeignText(name), "', want one of: ", absl::StrJoin(names, ", "))));
  return Compression::kNone;
}

}  // namespace

Compression CompressionToRead(const std::string& name) { return CompressionOrRaise(name, true); }

Compression CompressionToWrite(const std::string& name) { return CompressionOrRaise(name, false); }

}  // namespace systole::python
