// The argument `compression` of the package's functions.
//
// Single-thread: call with the GIL held.
#ifndef SYSTOLE_CLIENT_PYTHON_EXTENSION_COMPRESSION_NAME_H_
#define SYSTOLE_CLIENT_PYTHON_EXTENSION_COMPRESSION_NAME_H_

#include <string>

#include "core/compression/compression.h"

namespace systole::python {

// The compression of files that are read. Raises InvalidSpec for an unknown name.
Compression CompressionToRead(const std::string& name);
// The compression of files that are written. Raises InvalidSpec for "detect" and unknown names.
Compression CompressionToWrite(const std::string& name);

}  // namespace systole::python

#endif  // SYSTOLE_CLIENT_PYTHON_EXTENSION_COMPRESSION_NAME_H_
