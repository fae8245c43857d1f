// Reads any bytes as a pattern and as names of objects. TakesObject() must accept exactly the names
// that ListObjects() gives. SchemeOf() may find a scheme only in a text that begins with SCHEME://.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/status/check.h"
#include "core/storage/object_names.h"
#include "core/storage/stores/store_table.h"
#include "tests/fuzz/fuzzer.h"

SYSTOLE_FUZZER(pattern, const uint8_t* data, size_t size) {
  using namespace systole;
  if (size > 500) return 0;  // Short inputs suffice.
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  std::vector<std::string> lines = absl::StrSplit(text, '\n');
  const std::string pattern = absl::StrCat("t://", lines[0]);
  ObjectNames objects;
  for (size_t i = 1; i < lines.size(); ++i) objects.insert(absl::StrCat("t://", lines[i]));
  const absl::string_view scheme = SchemeOf(lines[0]);
  SYSTOLE_CHECK(scheme.empty() || absl::StartsWith(lines[0], absl::StrCat(scheme, "://")));
  SYSTOLE_CHECK(StoreOf(pattern).status().code() == absl::StatusCode::kInvalidArgument);
  const absl::StatusOr<std::vector<std::string>> listed =
      ListObjects(objects, pattern, [&](absl::string_view name) {
        // Returns whether the name is an object. A name that ends with '/' is a folder.
        return !absl::EndsWith(name, "/") && objects.contains(std::string(name));
      });
  for (const std::string& name : objects) {
    const bool named = listed.ok() && std::count(listed->begin(), listed->end(), name) > 0;
    SYSTOLE_CHECK(!named || TakesObject(objects, pattern, name));
    SYSTOLE_CHECK(named || !TakesObject(objects, pattern, name));
  }
  return 0;
}
