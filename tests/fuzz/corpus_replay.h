// Runs a fuzzer's entry point over its corpus. So the ordinary tests, too, try every input of the
// corpus.
//
// Not thread-safe.
#ifndef SYSTOLE_TESTS_FUZZ_CORPUS_REPLAY_H_
#define SYSTOLE_TESTS_FUZZ_CORPUS_REPLAY_H_

#include <cstddef>
#include <cstdint>
#include <string>

namespace systole {

// Calls `fuzzer` with the bytes of each file of tests/fuzz/corpus/NAME. The calling test fails if
// there is none, because a check of no file would prove nothing.
void ReplayCorpus(const std::string& name, int (*fuzzer)(const uint8_t* data, size_t size));

}  // namespace systole

#endif  // SYSTOLE_TESTS_FUZZ_CORPUS_REPLAY_H_
