// Values that no honest peer sends, for every field of a message in turn.
//
// Thread-safe: no state.
#ifndef SYSTOLE_TESTS_CLIENT_FEED_HOSTILE_VALUES_H_
#define SYSTOLE_TESTS_CLIENT_FEED_HOSTILE_VALUES_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "google/protobuf/message.h"

namespace systole {

struct Mutation {
  std::string what;  // Such as "identity.content_version = 3145728 bytes", for a test's output.
  std::function<void(google::protobuf::Message&)> apply;
};

// Changes `example` in one place at a time. A place is a field of `example` or of a message in it,
// or an element of a list. Each place gets every value that is hostile for its type. There are two
// more changes for each list that is not empty: one empties the list, the other adds 5,000 elements
// to it.
std::vector<Mutation> MutationsOf(const google::protobuf::Message& example);

// Sets every field. Each list gets one element. Numbers become 1, texts "name" and booleans true.
void FillEveryField(google::protobuf::Message& message);

// Whether `text` may be printed: it has at most 4 KiB, and no character that moves a cursor or ends
// a line.
bool IsFitToPrint(absl::string_view text);

// The name of the first field in `message` whose text may not be printed, or whose number is below
// 0, above 2^60 or NaN; empty if there is none.
std::string FirstUnfit(const google::protobuf::Message& message);

}  // namespace systole

#endif  // SYSTOLE_TESTS_CLIENT_FEED_HOSTILE_VALUES_H_
