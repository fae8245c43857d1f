// A config as it may be shown: without the secrets that addresses of shards may hold.
//
// Thread-safe: no state.
#ifndef SYSTOLE_SERVER_CONFIG_SHOWN_CONFIG_H_
#define SYSTOLE_SERVER_CONFIG_SHOWN_CONFIG_H_

#include <string>

#include "absl/strings/string_view.h"
#include "systole/v1/config.pb.h"

namespace systole {

// A copy of `text`. The first address that may hold secrets, with all text after it, is shown as
// ShownAddress() shows it.
std::string ShownText(absl::string_view text);

// `config` as textproto. The text of every field is as ShownText() shows it. Files of secrets are
// named, but not read.
std::string ShownConfig(const v1::ServerConfig& config);

}  // namespace systole

#endif  // SYSTOLE_SERVER_CONFIG_SHOWN_CONFIG_H_
