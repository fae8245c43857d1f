#include "client/cli/commands/security_flags.h"

#include <string>
#include <type_traits>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

namespace systole {

void SecurityFlags::Declare(OptionList& options) {
  for (const FeedOption& option : FeedOptionTable()) {
    if (option.is_security) DeclareFeedOption(option, feed_, options);
  }
}

void DeclareFeedOption(const FeedOption& option, FeedClientOptions& feed, OptionList& options) {
  const std::string flag = FlagOf(option);
  std::visit(
      [&](auto* field) {
        using Value = std::remove_pointer_t<decltype(field)>;
        if constexpr (std::is_same_v<Value, bool>) {
          options.Flag(flag, field, absl::StrCat(option.help, *field ? ". Default: yes" : ""));
        } else if constexpr (std::is_same_v<Value, absl::Duration>) {
          options.Optional(flag, field, std::string(option.help));
        } else {
          options.Optional(flag, std::string(option.value), field, std::string(option.help));
        }
      },
      option.field(feed));
}

}  // namespace systole
