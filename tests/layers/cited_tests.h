// Checks that the tests that documents cite exist.
//
// Thread-safe: a pure function.
#ifndef SYSTOLE_TESTS_LAYERS_CITED_TESTS_H_
#define SYSTOLE_TESTS_LAYERS_CITED_TESTS_H_

#include <string>
#include <vector>

#include "tests/layers/layer_check.h"

namespace systole::layers {

// A document cites a test as `Suite.Name`, where Suite ends with "Test". After such a citation,
// `.Name` in the same line cites another test of the suite. Returns one line per cited test that
// no source below `tests` defines.
std::vector<std::string> CheckCitedTests(const Tree& tree);

}  // namespace systole::layers

#endif  // SYSTOLE_TESTS_LAYERS_CITED_TESTS_H_
