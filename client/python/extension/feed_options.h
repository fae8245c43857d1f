// FeedOptionTable() for Python: the keywords of systole.Feed.
//
// Single-thread: call with the GIL held.
#ifndef SYSTOLE_CLIENT_PYTHON_EXTENSION_FEED_OPTIONS_H_
#define SYSTOLE_CLIENT_PYTHON_EXTENSION_FEED_OPTIONS_H_

#include "client/lanes/feed_client_options.h"
#include "nanobind/nanobind.h"

namespace systole::python {

// Sets what `keywords` names, the rows of the table, in `options`. Times are seconds. Raises
// TypeError, with the keyword, for a value of another type and for a keyword that is no row.
void SetFeedOptions(const nanobind::dict& keywords, FeedClientOptions& options);

// feed_options(): of each row the name, the type of its value, its default and its help. For
// generate_feed.py, which makes systole.Feed of it.
void DeclareFeedOptions(nanobind::module_& module);

}  // namespace systole::python

#endif  // SYSTOLE_CLIENT_PYTHON_EXTENSION_FEED_OPTIONS_H_
