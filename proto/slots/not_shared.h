// v1::NotShared in words, for a server's log and a client's report.
//
// Thread-safe: pure functions.
#ifndef SYSTOLE_PROTO_SLOTS_NOT_SHARED_H_
#define SYSTOLE_PROTO_SLOTS_NOT_SHARED_H_

#include <string>

namespace systole {

// Says what prevents sharing, and what to do about it if something can be done. `reason` may be a
// number that only a later version knows.
std::string NotSharedText(int reason);

}  // namespace systole

#endif  // SYSTOLE_PROTO_SLOTS_NOT_SHARED_H_
