#include "core/cache/disk_store.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>

#include "absl/types/span.h"
#include "core/cache/disk_entry.h"
#include "core/storage/byte_source.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int64_t kBudget = 64 * 4096;

CacheKey Key(uint64_t number) { return {.high = 0xab00000000000000 + number, .low = number}; }

class DiskStoreTest : public testing::Test {
 protected:
  std::unique_ptr<DiskStore> Open(int64_t budget = kBudget) const {
    absl::StatusOr<std::unique_ptr<DiskStore>> store = DiskStore::Open(path_, budget);
    EXPECT_THAT(store, IsOk());
    return *std::move(store);
  }
  std::string FileOf(const CacheKey& key) const { return path_ + "/ab/" + DiskEntryName(key); }

  const TempFolder folder_;
  const std::string path_ = folder_ / "a/kept";
};

TEST_F(DiskStoreTest, ValuesOutliveTheStore) {
  for (uint64_t i = 0; i < 10; ++i) Open()->Insert(Key(i), 1, std::string(i * 100, 'x'));
  const auto store = Open();
  EXPECT_EQ(store->used_bytes(), 10 * 4096);
  for (uint64_t i = 0; i < 10; ++i) {
    const auto found = store->Find(Key(i), 1);
    ASSERT_NE(found, nullptr);
    EXPECT_EQ(*found, std::string(i * 100, 'x'));
  }
  EXPECT_EQ(store->Find(Key(11), 1), nullptr);
}

TEST_F(DiskStoreTest, AValueIsReadIntoMemoryOfItsSize) {
  const auto store = Open();
  store->Insert(Key(1), 1, "the value");
  std::string out(9, '?');
  EXPECT_TRUE(store->FindInto(Key(1), 1, absl::MakeSpan(out)));
  EXPECT_EQ(out, "the value");
  EXPECT_FALSE(store->FindInto(Key(2), 1, absl::MakeSpan(out)));
  EXPECT_EQ(store->damaged_entries(), 0);
  // A value whose size differs from the caller's memory counts as damaged.
  std::string longer(10, '?');
  EXPECT_FALSE(store->FindInto(Key(1), 1, absl::MakeSpan(longer)));
  EXPECT_EQ(store->damaged_entries(), 1);
  EXPECT_FALSE(std::filesystem::exists(FileOf(Key(1))));
}

TEST_F(DiskStoreTest, AValueWrittenPastThePageCacheIsReadUnchanged) {
  const auto store = Open();
  uint64_t number = 0;
  alignas(kFilePageBytes) static char memory[8 * kFilePageBytes];
  for (const size_t begin : {kDiskEntryHeaderBytes, size_t{0}}) {
    for (const size_t size : {3 * kFilePageBytes, 3 * kFilePageBytes - kDiskEntryHeaderBytes,
                              3 * kFilePageBytes + 5, uint64_t{100}}) {
      const absl::string_view value(memory + begin, size);
      for (size_t i = 0; i < size; ++i) memory[begin + i] = static_cast<char>(i * i >> 7);
      const CacheKey key = Key(++number);
      store->Insert(key, 1, value, DiskWrite::kDirect);
      EXPECT_EQ(std::filesystem::file_size(FileOf(key)), kDiskEntryHeaderBytes + size);
      const auto found = store->Find(key, 1);
      ASSERT_NE(found, nullptr);
      EXPECT_TRUE(*found == value);
    }
  }
  EXPECT_EQ(store->damaged_entries(), 0);
}

TEST_F(DiskStoreTest, DamagedShortLongAndForeignFilesAreRemovedAndNeverServed) {
  const auto damage = [&](const auto& change) {
    for (const bool into : {false, true}) {
      {
        const auto store = Open();
        store->Insert(Key(1), 1, "the value");
        store->Insert(Key(2), 1, "another value");
      }
      change(FileOf(Key(1)));
      const auto store = Open();
      std::string out(9, '?');
      const bool found = into ? store->FindInto(Key(1), 1, absl::MakeSpan(out))
                              : store->Find(Key(1), 1) != nullptr;
      EXPECT_FALSE(found);
      EXPECT_EQ(store->damaged_entries(), 1);
      EXPECT_FALSE(std::filesystem::exists(FileOf(Key(1))));
      EXPECT_NE(store->Find(Key(2), 1), nullptr);
      EXPECT_EQ(store->used_bytes(), 4096);
    }
  };
  for (const int at : {0, 14, 17, 33, 41, 50}) {
    damage([at](const std::string& path) {
      std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
      file.seekp(at);
      file.put('!');
    });
  }
  damage([](const std::string& path) { std::filesystem::resize_file(path, 56); });
  damage([](const std::string& path) { std::filesystem::resize_file(path, 0); });
  damage([](const std::string& path) { std::filesystem::resize_file(path, 58); });
  damage([this](const std::string& path) {
    std::filesystem::copy_file(FileOf(Key(2)), path,
                               std::filesystem::copy_options::overwrite_existing);
  });
  damage([this](const std::string& path) {
    std::filesystem::remove(path);
    std::filesystem::create_symlink(FileOf(Key(2)), path);
  });
}

TEST_F(DiskStoreTest, AFolderCannotBeOpenedByTwoStores) {
  const auto store = Open();
  EXPECT_THAT(DiskStore::Open(path_, kBudget),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("another process"), HasSubstr(path_),
                             HasSubstr("a folder of its own"))));
}

TEST_F(DiskStoreTest, AForkedProcessDoesNotKeepTheFolderLocked) {
  auto store = Open();
  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  ASSERT_GT(child, 0);
  store.reset();
  EXPECT_THAT(DiskStore::Open(path_, kBudget), IsOk());
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

TEST_F(DiskStoreTest, TheStoreStaysWithinItsBudgetAlsoAfterTheBudgetShrinks) {
  {
    const auto store = Open();
    for (uint64_t i = 0; i < 100; ++i) store->Insert(Key(i), 1, std::string(5000, 'x'));
    EXPECT_EQ(store->used_bytes(), kBudget);
    EXPECT_FALSE(store->Admits(1));
  }
  const auto smaller = Open(kBudget / 2);
  EXPECT_EQ(smaller->used_bytes(), kBudget / 2);
  int64_t files = 0;
  for (const auto& file : std::filesystem::recursive_directory_iterator(path_)) {
    files += file.is_regular_file() && file.path().filename() != "lock" ? 1 : 0;
  }
  EXPECT_EQ(files * 2 * 4096, kBudget / 2);
}

TEST_F(DiskStoreTest, OtherFilesAreLeftAlone) {
  Open()->Insert(Key(1), 1, "value");
  std::ofstream(path_ + "/ab/notes.txt") << "mine";
  std::ofstream(path_ + "/00/" + DiskEntryName(Key(1))) << "in the wrong folder";
  const auto store = Open();
  EXPECT_EQ(store->used_bytes(), 4096);
  EXPECT_TRUE(std::filesystem::exists(path_ + "/ab/notes.txt"));
}

TEST_F(DiskStoreTest, AValueThatCannotBeWrittenIsNotKept) {
  const auto store = Open();
  std::filesystem::remove_all(path_ + "/ab");
  store->Insert(Key(1), 1, "value");
  EXPECT_EQ(store->used_bytes(), 0);
  EXPECT_EQ(store->Find(Key(1), 1), nullptr);
}

TEST_F(DiskStoreTest, AFileInPlaceOfTheFolderIsAnErrorThatNamesThePath) {
  folder_.Write("file", "no folder");
  EXPECT_THAT(DiskStore::Open(folder_ / "file", kBudget).status().message(),
              AllOf(HasSubstr("file'"), HasSubstr("want a folder")));
}

TEST(DiskEntryTest, FileNamesParseBackToKeysAndInvalidNamesAreRefused) {
  CacheKey key;
  EXPECT_TRUE(ParseDiskEntryName(DiskEntryName(Key(7)), key));
  EXPECT_EQ(key, Key(7));
  for (const std::string name :
       {"", "lock", "AB000000000000070000000000000007", "ab0000000000000700000000000000071"}) {
    EXPECT_FALSE(ParseDiskEntryName(name, key)) << name;
  }
}

}  // namespace
}  // namespace systole
