// The entry point of a fuzzer. libFuzzer calls the entry point with one input after the other. In a
// build without libFuzzer, a test calls it with each file of the fuzzer's corpus:
//
//   SYSTOLE_FUZZER(jpeg, const uint8_t* data, size_t size) {
//     ..
//     return 0;
//   }
//
// The first argument names the corpus, tests/fuzz/corpus/jpeg, and the source, jpeg_fuzzer.cc.
#ifndef SYSTOLE_TESTS_FUZZ_FUZZER_H_
#define SYSTOLE_TESTS_FUZZ_FUZZER_H_

#ifdef SYSTOLE_LIBFUZZER  // systole_fuzzer() of tests/CMakeLists.txt defines it.

#define SYSTOLE_FUZZER(name, data, size) extern "C" int LLVMFuzzerTestOneInput(data, size)

#else

#include "gtest/gtest.h"
#include "tests/fuzz/corpus_replay.h"

#define SYSTOLE_FUZZER(name, data, size)                                   \
  static int name##_input(data, size);                                     \
  TEST(CorpusReplay, name) { systole::ReplayCorpus(#name, name##_input); } \
  static int name##_input(data, size)

#endif

#endif  // SYSTOLE_TESTS_FUZZ_FUZZER_H_
