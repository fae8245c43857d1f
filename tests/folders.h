// Where the tree and its build lie. Only folders.cc is compiled with these paths, so ccache finds
// the objects of all other tests in every clone.
//
// Thread-safe.
#ifndef SYSTOLE_TESTS_FOLDERS_H_
#define SYSTOLE_TESTS_FOLDERS_H_

#include <string>

namespace systole {

// The absolute path of the tree's root. It does not end with a slash.
std::string SourceFolder();

// The absolute path of the folder in which CMake builds the tree. It does not end with a slash.
std::string BuildFolder();

}  // namespace systole

#endif  // SYSTOLE_TESTS_FOLDERS_H_
