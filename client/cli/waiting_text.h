// What a progress bar says of a feed that waits for its servers.
//
// Thread-safe: pure functions of values.
#ifndef SYSTOLE_CLIENT_CLI_WAITING_TEXT_H_
#define SYSTOLE_CLIENT_CLI_WAITING_TEXT_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "client/feed/feed_watch.h"

namespace systole {

// "server A lost, asking B (12 s)", "cannot reach A (3 s of 10 s)"; empty while it is no more than
// what happens all the time: less than a second after a loss, five without any.
std::string WaitingText(const std::optional<FeedWaiting>& waiting);

// The same of what `watch` tells when it is called: ProgressBarOptions::notice.
std::function<std::string()> WaitingNotice(std::shared_ptr<const FeedWatch> watch);

}  // namespace systole

#endif  // SYSTOLE_CLIENT_CLI_WAITING_TEXT_H_
