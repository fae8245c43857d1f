// FeedOptionTable() for Python: the keywords of systole.Feed.
//
// Single-thread: call with the GIL held.
#ifndef SYSTOLE_CLIENT_PYTHON_EXTENSION_FEED_OPTIONS_H_
#define SYSTOLE_CLIENT_PYTHON_EXTENSION_FEED_OPTIONS_H_

#include "client/lanes/feed_client_options.h"
#include "nanobind/nanobind.h"

namespace systole::python {

// Sets the options that `keywords` names. Times are seconds. Raises TypeError, with the keyword,
// for a value of the wrong type and for a keyword that is not in the table.
void SetFeedOptions(const nanobind::dict& keywords, FeedClientOptions& options);

// Declares feed_options(): name, type, default and help of each row. generate_feed.py makes
// systole.Feed from them.
void DeclareFeedOptions(nanobind::module_& module);

}  // namespace systole::python

#endif  // SYSTOLE_CLIENT_PYTHON_EXTENSION_FEED_OPTIONS_H_
