// The argument `compression` of the package's functions.
//
// Single-thread: call with the GIL held.
#ifndef SYSTOLE_CLIENT_PYTHON_EXTENSION_COMPRESSION_NAME_H_
#define SYSTOLE_CLIENT_PYTHON_EXTENSION_COMPRESSION_NAME_H_

#include <string>

#include "core/compression/compression.h"

namespace systole::python {

// Of files that are read. Raises InvalidSpec for another name.
Compression CompressionToRead(const std::string& name);
// Of files that are written: as above, but not "detect".
Compression CompressionToWrite(const std::string& name);

}  // namespace systole::python

#endif  // SYSTOLE_CLIENT_PYTHON_EXTENSION_COMPRESSION_NAME_H_
