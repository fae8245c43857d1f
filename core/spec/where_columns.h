// The columns that the `where` steps of a feed spec read, and the command that makes them
// (core/column). Error messages of servers and clients name the columns and the command.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_SPEC_WHERE_COLUMNS_H_
#define SYSTOLE_CORE_SPEC_WHERE_COLUMNS_H_

#include <string>

#include "systole/v1/feed.pb.h"

namespace systole {

// The names of the features that the spec's conditions test, each once and sorted: "label,width".
// For a zip, each name has its member's prefix. Unprintable characters are escaped. Empty if no
// step is a `where`.
std::string WhereColumns(const v1::FeedSpec& spec);

// The command that makes the columns of WhereColumns() anew, such as
//   `systole index --columns label,width --rebuild`
//
// A zip needs a command for each dataset that has one of the features. Each command has the
// features' names without the zip's prefix: "`systole index --columns label --rebuild` over the
// shards of dataset 'a' and `systole index --columns width --rebuild` over the shards of dataset
// 'b'". A spec does not say which dataset has a feature. So if several datasets have the same
// prefix, the text names all of them: "over the shards of dataset 'a' or 'b', whichever has it".
// REQUIRES: at least one step is a `where`.
std::string NoteAnewCommand(const v1::FeedSpec& spec);

}  // namespace systole

#endif  // SYSTOLE_CORE_SPEC_WHERE_COLUMNS_H_
