// The table of the options in FeedClientOptions that are also flags of `systole` and keywords in
// Python. Flags, keyword arguments and the table in the README are made from it.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CLIENT_LANES_FEED_OPTION_TABLE_H_
#define SYSTOLE_CLIENT_LANES_FEED_OPTION_TABLE_H_

#include <cstdint>
#include <string>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "client/lanes/feed_client_options.h"

namespace systole {

// One row. A new option needs a field of FeedClientOptions and a row.
struct FeedOption {
  using Field = std::variant<bool*, int64_t*, double*, std::string*, absl::Duration*>;

  // Python's keyword.
  absl::string_view name;
  // The flag of `systole`. If it is empty, FlagOf() makes the flag from the name.
  absl::string_view flag = {};
  // What the help calls the value, such as TIME, N or FILE. Empty: the option has no value, and is
  // on or off.
  absl::string_view value = {};
  // Returns the option's field in `options`. The option's default is the field's value in
  // FeedClientOptions().
  Field (*field)(FeedClientOptions& options);
  absl::string_view help;
  // Bounds of a number, both included. The bounds of a TIME are in seconds.
  double least = 0;
  double most = 0;
  // If the value is a text, the words that it may be. Empty: any text.
  absl::Span<const absl::string_view> words = {};
  // InvalidArgument if a text cannot be the value. The message begins with the text, in quotes.
  // Null: any text can be the value.
  absl::Status (*check)(absl::string_view text) = nullptr;
  // Whether the option is a field of ServerSecurity. Commands that call servers without a feed have
  // these options, too.
  bool is_security = false;
};

absl::Span<const FeedOption> FeedOptionTable();

// The option's flag, such as "--retry-for". If the option is on by default, the flag switches it
// off.
std::string FlagOf(const FeedOption& option);

// InvalidArgument, with value and bounds, if the option's value in `options` is out of bounds, is
// none of `words`, or fails `check`. `called` is the name of the option in the message.
absl::Status CheckFeedOption(const FeedOption& option, const FeedClientOptions& options,
                             absl::string_view called);

}  // namespace systole

#endif  // SYSTOLE_CLIENT_LANES_FEED_OPTION_TABLE_H_
