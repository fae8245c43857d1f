// Reads JSON objects that services of credentials send and key files hold.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_CREDENTIALS_FLAT_JSON_H_
#define SYSTOLE_CORE_CREDENTIALS_FLAT_JSON_H_

#include <cstddef>
#include <functional>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace systole {

// The most bytes of an answer or of a key file. They have a few KiB.
inline constexpr size_t kMaxJsonBytes = size_t{64} << 10;

// The strings of an object, and its numbers as text (3599, 0.5), by name.
class FlatJson {
 public:
  // Parses an object. What it has besides strings and numbers is skipped.
  //   DataLoss           no JSON object. The message quotes nothing of it: it may be a secret.
  //   ResourceExhausted  more than kMaxJsonBytes.
  static absl::StatusOr<FlatJson> Parse(absl::string_view text, absl::string_view source);

  // "" if there is no such string or number. A view into this object.
  absl::string_view Get(absl::string_view name) const;

 private:
  std::map<std::string, std::string, std::less<>> values_;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_CREDENTIALS_FLAT_JSON_H_
