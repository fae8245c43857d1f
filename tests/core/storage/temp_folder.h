// A folder for one test. At the end it is removed with everything in it.
//
// Thread-compatible.
#ifndef SYSTOLE_TESTS_CORE_STORAGE_TEMP_FOLDER_H_
#define SYSTOLE_TESTS_CORE_STORAGE_TEMP_FOLDER_H_

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "core/status/check.h"

namespace systole {

class TempFolder {
 public:
  TempFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "systole-XXXXXX").string();
    SYSTOLE_CHECK(mkdtemp(pattern.data()) != nullptr);
    path_ = pattern;
  }
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::string& path() const { return path_; }
  // The path of `name` in this folder.
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

  // Writes a file and returns its path.
  std::string Write(const std::string& name, const std::string& bytes) const {
    std::ofstream out(*this / name, std::ios::binary);
    out << bytes;
    out.close();
    SYSTOLE_CHECK(out.good());
    return *this / name;
  }

  // The names of everything in the folder, hidden ones included, sorted.
  std::vector<std::string> List() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) {
      names.push_back(entry.path().filename().string());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

 private:
  std::string path_;
};

// The bytes of the file `path`.
inline std::string ReadWholeFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  SYSTOLE_CHECK(in.good());
  return std::string(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
}

// Moves a file's modification time by `seconds` without touching its bytes.
inline void ShiftMtime(const std::string& path, int seconds) {
  std::filesystem::last_write_time(
      path, std::filesystem::last_write_time(path) + std::chrono::seconds(seconds));
}

}  // namespace systole

#endif  // SYSTOLE_TESTS_CORE_STORAGE_TEMP_FOLDER_H_
