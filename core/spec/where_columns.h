// The columns that the `where` steps of a feed spec read. For messages of servers and clients,
// which name the command that notes columns.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_SPEC_WHERE_COLUMNS_H_
#define SYSTOLE_CORE_SPEC_WHERE_COLUMNS_H_

#include <string>

#include "systole/v1/feed.pb.h"

namespace systole {

// The names of the features that the spec's conditions test, as the spec has them, fit to print:
// "label,width". Empty if no step is a `where`.
std::string WhereColumns(const v1::FeedSpec& spec);

// The command that notes these columns anew: "`systole index --columns label,width --rebuild`". For
// a zip it names the datasets, and their features without the prefixes of the zip, because
// `systole index` is run on the shards of each: "`systole index --columns label --rebuild` over the
// shards of dataset 'a' and `systole ..". A spec does not say which dataset has a feature. So if
// the prefixes of several match, it names all: "over the shards of dataset 'a' or 'b', whichever
// has it". REQUIRES: some step is a `where`.
std::string NoteAnewCommand(const v1::FeedSpec& spec);

}  // namespace systole

#endif  // SYSTOLE_CORE_SPEC_WHERE_COLUMNS_H_
