// The server's page as HTML, and its events. The page needs no other file. Without scripts, the
// page shows the server as it was when the page was made.
//
// All text of peers and of the config is escaped.
//
// Thread-safe: no state.
#ifndef SYSTOLE_SERVER_STATUSZ_STATUS_PAGE_H_
#define SYSTOLE_SERVER_STATUSZ_STATUS_PAGE_H_

#include <cstdint>
#include <string>

#include "server/statusz/server_view.h"

namespace systole {

std::string StatusPage(const ServerView& view);

// The value of the page's header `Content-Security-Policy`. It allows only the page's own style
// and script, no foreign request, and no frame around the page.
const std::string& StatusPagePolicy();

// An event ("data: ..", in the format of server-sent events) that makes the page show `view`. The
// event has the pictures, too, unless their sheet's number is `known_pictures`. If `is_last`,
// the event tells the page not to connect again.
std::string StatusEvent(const ServerView& view, int64_t known_pictures, bool is_last);

}  // namespace systole

#endif  // SYSTOLE_SERVER_STATUSZ_STATUS_PAGE_H_
