// The version of the bytes that the feeds of this program have.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_PLAN_CONTENT_VERSION_H_
#define SYSTOLE_CORE_PLAN_CONTENT_VERSION_H_

#include <string>

namespace systole {

// Every release that changes a byte of any feed raises this version. The text also has the version
// of the libjpeg in use, because releases of libjpeg may change pixels.
std::string ContentVersion();

}  // namespace systole

#endif  // SYSTOLE_CORE_PLAN_CONTENT_VERSION_H_
