// Names the libjpeg that runs in this process. libjpeg has no function that returns its version,
// and its headers have only the version at compile time. So the loaded library is identified by its
// GNU build id.
//
// Thread-safe: the answers do not change.
#ifndef SYSTOLE_CORE_IMAGE_JPEG_JPEG_LIBRARY_H_
#define SYSTOLE_CORE_IMAGE_JPEG_JPEG_LIBRARY_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace systole {

// Names the loaded libjpeg. The name is part of the content version, because another release of
// libjpeg may give other pixels. It is one of:
//   libjpeg-turbo-2.1.5              a build in our list of known ones, such as Debian 12's
//   libjpeg-build-75b7..             any other build: the hexadecimal digits of its build id
//   libjpeg-unknown-headers-2.1.5    linked statically or without a build id: the version of the
//                                    headers that this code was compiled with
const std::string& JpegLibraryVersion();

// Whether `address` lies in libjpeg's code, or in the code of the program that libjpeg is linked
// into.
bool IsJpegLibraryCode(uintptr_t address);

// JpegLibraryVersion() uses the next two functions. In both, a build id is in hexadecimal digits,
// and is empty if the library has none.
std::string JpegVersionOfBuild(absl::string_view build_id);
// The build id in a PT_NOTE segment whose notes are aligned to `alignment` bytes. Empty if there is
// none. Damaged notes are allowed.
std::string BuildIdOfNotes(absl::string_view notes, size_t alignment);

}  // namespace systole

#endif  // SYSTOLE_CORE_IMAGE_JPEG_JPEG_LIBRARY_H_
