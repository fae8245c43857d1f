// The columns that the `where` steps of a feed spec read. For messages of servers and clients,
// which name the command that notes columns.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_SPEC_WHERE_COLUMNS_H_
#define SYSTOLE_CORE_SPEC_WHERE_COLUMNS_H_

#include <string>

#include "systole/v1/feed.pb.h"

namespace systole {

// The names of the features that the spec's conditions test, fit to print, as `systole index
// --columns` takes them: "label,width". Empty if no step is a `where`.
std::string WhereColumns(const v1::FeedSpec& spec);

}  // namespace systole

#endif  // SYSTOLE_CORE_SPEC_WHERE_COLUMNS_H_
