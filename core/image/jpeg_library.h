// Which libjpeg runs in this process. libjpeg has no function that says its version; the headers'
// is that of the machine that compiled. So the mapped library is known by its GNU build id.
//
// Thread-safe: nothing changes once it is known.
#ifndef SYSTOLE_CORE_IMAGE_JPEG_LIBRARY_H_
#define SYSTOLE_CORE_IMAGE_JPEG_LIBRARY_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace systole {

// Part of the content version, because another release of libjpeg may give other pixels:
//   libjpeg-turbo-2.1.5              a build whose version is known here, as Debian 12's
//   libjpeg-build-75b7..             any other, by the hexadecimal digits of its build id
//   libjpeg-unknown-headers-2.1.5    linked statically or without a build id: all that can be said
//                                    is what it was compiled for
const std::string& JpegLibraryVersion();

// Whether libjpeg's code, or that of the program it is linked into, holds `address`.
bool IsJpegLibraryCode(uintptr_t address);

// The parts of JpegLibraryVersion(). A build id is in hexadecimal digits, empty if there is none.
std::string JpegVersionOfBuild(absl::string_view build_id);
// Of a program's PT_NOTE segment whose notes are aligned to `alignment` bytes. Whatever the bytes.
std::string BuildIdOfNotes(absl::string_view notes, size_t alignment);

}  // namespace systole

#endif  // SYSTOLE_CORE_IMAGE_JPEG_LIBRARY_H_
