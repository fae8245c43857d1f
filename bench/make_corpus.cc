// Makes the benchmarks' data sets, unless they are there, and prints the paths of their shards, one
// a line: make_corpus [photographs | small-records]; both without an argument.
#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "bench/corpora.h"

namespace {

void Print(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) std::printf("%s\n", path.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  const absl::string_view wanted = argc > 1 ? argv[1] : "";
  const bool photographs = argc == 1 || wanted == "photographs";
  const bool small_records = argc == 1 || wanted == "small-records";
  if (argc > 2 || !(photographs || small_records)) {
    std::fprintf(stderr, "usage: make_corpus [photographs | small-records]\n");
    return 2;
  }
  if (photographs) Print(systole::bench::PhotographShards());
  if (small_records) Print(systole::bench::SmallRecordShards());
  return 0;
}
