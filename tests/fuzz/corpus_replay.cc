#include "tests/fuzz/corpus_replay.h"

#include <filesystem>
#include <fstream>
#include <iterator>

#include "gtest/gtest.h"
#include "tests/folders.h"

namespace systole {

void ReplayCorpus(const std::string& name, int (*fuzzer)(const uint8_t* data, size_t size)) {
  const std::filesystem::path folder = SourceFolder() + "/tests/fuzz/corpus/" + name;
  int files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream in(entry.path(), std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    fuzzer(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
    ++files;
  }
  EXPECT_GT(files, 0) << folder;
}

}  // namespace systole
