// Makes benchmarks' data sets, unless they are there, and prints the paths of their shards, one a
// line: make_corpus [NAME ..]. ShardsNamed() (corpora.h) has the names. Without a name, makes
// photographs and small-records.
#include <cstdio>
#include <string>
#include <vector>

#include "bench/corpora.h"

int main(int argc, char** argv) {
  std::vector<std::string> names(argv + 1, argv + argc);
  if (names.empty()) names = {"photographs", "small-records"};
  for (const std::string& name : names) {
    const std::vector<std::string> paths = systole::bench::ShardsNamed(name);
    if (paths.empty()) {
      std::fprintf(stderr, "make_corpus: no corpus is named '%s'\n", name.c_str());
      return 2;
    }
    for (const std::string& path : paths) std::printf("%s\n", path.c_str());
  }
  return 0;
}
