// The text that a progress bar shows while a feed waits for its servers.
//
// Thread-safe: pure functions of values.
#ifndef SYSTOLE_CLIENT_CLI_COMMANDS_WAITING_TEXT_H_
#define SYSTOLE_CLIENT_CLI_COMMANDS_WAITING_TEXT_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "client/lanes/feed_watch.h"

namespace systole {

// "server A lost, asking B (12 s)", "cannot reach A (3 s of 10 s)". Empty as long as the wait is
// short: less than a second if a server was lost, less than five seconds if not. Short waits are
// normal.
std::string WaitingText(const std::optional<FeedWaiting>& waiting);

// Returns a function for ProgressBarOptions::notice. Each call returns the WaitingText() of what
// `watch` says at that time.
std::function<std::string()> WaitingNotice(std::shared_ptr<const FeedWatch> watch);

}  // namespace systole

#endif  // SYSTOLE_CLIENT_CLI_COMMANDS_WAITING_TEXT_H_
