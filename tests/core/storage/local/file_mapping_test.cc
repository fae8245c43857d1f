#include "core/storage/local/file_mapping.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/status/check.h"
#include "core/storage/local/file_source.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr uint64_t kPage = 4096;

// A file without a name. It is closed when the process ends, so a death test leaves nothing behind.
class AnonymousFile {
 public:
  explicit AnonymousFile(const std::string& bytes) : fd_(::memfd_create("mapped", MFD_CLOEXEC)) {
    SYSTOLE_CHECK(::write(fd_, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
  }
  ~AnonymousFile() { ::close(fd_); }
  int fd() const { return fd_; }
  void Cut(uint64_t bytes) const {
    SYSTOLE_CHECK(::ftruncate(fd_, static_cast<off_t>(bytes)) == 0);
  }

 private:
  const int fd_;
};

// Touches each page, and returns the first byte of each.
std::string FirstOfEachPage(absl::string_view bytes) {
  std::string seen;
  for (size_t at = 0; at < bytes.size(); at += kPage) {
    seen.push_back(*static_cast<const volatile char*>(bytes.data() + at));
  }
  return seen;
}

std::string ThreePages() {
  return std::string(kPage, 'a') + std::string(kPage, 'b') + std::string(kPage, 'c');
}

TEST(FileMappingTest, TheMappingHoldsAllBytesOfTheFile) {
  const AnonymousFile file("0123456789");
  FileMapping mapping(file.fd(), 10);
  const MappedRead mapped(&mapping);
  EXPECT_EQ(mapped.bytes(), "0123456789");
  EXPECT_FALSE(mapped.failed());
}

TEST(FileMappingTest, AnEmptyFileAPipeAndANullMappingHaveNoBytes) {
  const AnonymousFile empty("");
  FileMapping of_nothing(empty.fd(), 0);
  EXPECT_EQ(MappedRead(&of_nothing).bytes(), "");
  EXPECT_EQ(MappedRead(nullptr).bytes(), "");
  EXPECT_FALSE(MappedRead(nullptr).failed());
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  FileMapping of_pipe(ends[0], 10);
  EXPECT_EQ(MappedRead(&of_pipe).bytes(), "");
  EXPECT_EQ(MappedRead(&of_pipe).bytes(), "");  // A second try fails, too.
  EXPECT_FALSE(MappedRead(&of_pipe).failed());
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(FileMappingTest, PrefetchMapsNothingAndReadsNothing) {
  const TempFolder folder;
  absl::StatusOr<std::unique_ptr<FileSource>> source =
      FileSource::Open(folder.Write("a", ThreePages()));
  ASSERT_THAT(source, IsOk());
  Mapping& mapping = *(*source)->mapping();
  const auto prefetch = [&] {
    for (const uint64_t offset : {uint64_t{0}, kPage, 3 * kPage - 1, 3 * kPage, ~uint64_t{0}}) {
      for (const uint64_t bytes : {uint64_t{0}, uint64_t{1}, kPage})
        mapping.Prefetch(offset, bytes);
    }
    mapping.Prefetch(1, ~uint64_t{0});
  };
  prefetch();
  EXPECT_THAT(ReadWholeFile("/proc/self/maps"), Not(HasSubstr(folder.path())));
  const MappedRead mapped(&mapping);
  prefetch();
  ASSERT_EQ(::truncate((folder / "a").c_str(), 0), 0);
  prefetch();  // The pages are gone, but no read has touched them.
  EXPECT_FALSE(mapped.failed());
  EXPECT_EQ(FirstOfEachPage(mapped.bytes()), std::string(3, '\0'));
  prefetch();
  EXPECT_TRUE(mapped.failed());
}

TEST(FileMappingTest, ASourceIsMappedFromItsFirstReadUntilItsDestruction) {
  const TempFolder folder;
  absl::StatusOr<std::unique_ptr<FileSource>> source = FileSource::Open(folder.Write("a", "abc"));
  ASSERT_THAT(source, IsOk());
  EXPECT_THAT(ReadWholeFile("/proc/self/maps"), Not(HasSubstr(folder.path())));
  EXPECT_EQ(MappedRead((*source)->mapping()).bytes(), "abc");
  EXPECT_THAT(ReadWholeFile("/proc/self/maps"), HasSubstr(folder / "a"));
  source->reset();
  EXPECT_THAT(ReadWholeFile("/proc/self/maps"), Not(HasSubstr(folder.path())));
}

TEST(FileMappingTest, AFileTruncatedDuringAReadReadsAsZerosAndIsMarkedFailed) {
  const AnonymousFile file(ThreePages());
  FileMapping mapping(file.fd(), 3 * kPage);
  const MappedRead mapped(&mapping);
  EXPECT_EQ(FirstOfEachPage(mapped.bytes()), "abc");
  file.Cut(kPage);
  EXPECT_FALSE(mapped.failed());
  EXPECT_EQ(*static_cast<const volatile char*>(mapped.bytes().data()), 'a');  // This page stays.
  EXPECT_EQ(*static_cast<const volatile char*>(mapped.bytes().data() + 3 * kPage - 1), '\0');
  EXPECT_TRUE(mapped.failed());
  EXPECT_EQ(FirstOfEachPage(mapped.bytes()), std::string(3, '\0'));  // Now all pages are zeros.
}

TEST(FileMappingTest, AFailedMappingIsNotReadAgain) {
  const AnonymousFile file(ThreePages());
  FileMapping mapping(file.fd(), 3 * kPage);
  {
    const MappedRead mapped(&mapping);
    file.Cut(0);
    EXPECT_EQ(FirstOfEachPage(mapped.bytes()), std::string(3, '\0'));
  }
  const MappedRead again(&mapping);
  EXPECT_EQ(again.bytes(), "");
  EXPECT_TRUE(again.failed());
}

TEST(FileMappingTest, FaultMarksItsOwnMappingAlone) {
  const AnonymousFile cut(ThreePages());
  const AnonymousFile whole(ThreePages());
  FileMapping cut_mapping(cut.fd(), 3 * kPage);
  FileMapping whole_mapping(whole.fd(), 3 * kPage);
  const MappedRead outer(&cut_mapping);
  {
    const MappedRead inner(&whole_mapping);
    cut.Cut(0);
    EXPECT_EQ(FirstOfEachPage(outer.bytes()), std::string(3, '\0'));
    EXPECT_EQ(FirstOfEachPage(inner.bytes()), "abc");
    EXPECT_FALSE(inner.failed());
  }
  EXPECT_TRUE(outer.failed());
}

TEST(FileMappingTest, EveryThreadThatReadsATruncatedFileSeesTheFailure) {
  for (int round = 0; round < 20; ++round) {
    const AnonymousFile file(std::string(64 * kPage, 'x'));
    FileMapping mapping(file.fd(), 64 * kPage);
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        // Reads until a page is zero because the file was cut. Whenever a thread sees a zero, the
        // mapping must be marked as failed.
        for (bool zero = false; !zero;) {
          const MappedRead mapped(&mapping);
          if (mapped.bytes().empty()) return;
          zero = FirstOfEachPage(mapped.bytes()).find('\0') != std::string::npos;
          EXPECT_EQ(zero && !mapped.failed(), false);
        }
      });
    }
    file.Cut(0);
    for (std::thread& thread : threads) thread.join();
  }
}

// Touches a missing page in a mapping that is not ours.
void FaultElsewhere() {
  const AnonymousFile file(ThreePages());
  const void* const pages = ::mmap(nullptr, kPage, PROT_READ, MAP_SHARED, file.fd(), 0);
  file.Cut(0);
  FirstOfEachPage(absl::string_view(static_cast<const char*>(pages), kPage));
}

// Reads through a FileMapping, which installs our handler of SIGBUS.
void ReadMapped() {
  const AnonymousFile file(ThreePages());
  FileMapping mapping(file.fd(), 3 * kPage);
  SYSTOLE_CHECK(FirstOfEachPage(MappedRead(&mapping).bytes()) == "abc");
}

class FileMappingDeathTest : public testing::Test {
 protected:
  // The death tests run in a process of their own, where no handler is installed yet.
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(FileMappingDeathTest, AFaultOutsideFileMappingsStillEndsTheProcess) {
  const auto fault = [] {
    ::signal(SIGBUS, SIG_DFL);  // Replaces a sanitizer's handler.
    ReadMapped();
    FaultElsewhere();
  };
  EXPECT_EXIT(fault(), testing::KilledBySignal(SIGBUS), "");
}

TEST_F(FileMappingDeathTest, AFaultInAMappingOutsideAnyReadStillEndsTheProcess) {
  const auto fault = [] {
    ::signal(SIGBUS, SIG_DFL);
    const AnonymousFile file(ThreePages());
    FileMapping mapping(file.fd(), 3 * kPage);
    const char* kept = MappedRead(&mapping).bytes().data();
    file.Cut(0);
    FirstOfEachPage(absl::string_view(kept, kPage));
  };
  EXPECT_EXIT(fault(), testing::KilledBySignal(SIGBUS), "");
}

TEST_F(FileMappingDeathTest, ASigbusSentByKillStillEndsTheProcess) {
  const auto send = [] {
    ::signal(SIGBUS, SIG_DFL);
    ReadMapped();
    ::kill(::getpid(), SIGBUS);
  };
  EXPECT_EXIT(send(), testing::KilledBySignal(SIGBUS), "");
}

TEST_F(FileMappingDeathTest, SignalThatWasIgnoredStaysIgnored) {
  const auto send = [] {
    ::signal(SIGBUS, SIG_IGN);
    ReadMapped();
    ::kill(::getpid(), SIGBUS);
    std::_Exit(3);
  };
  EXPECT_EXIT(send(), testing::ExitedWithCode(3), "");
}

TEST_F(FileMappingDeathTest, AnEarlierSigbusHandlerGetsFaultsOutsideFileMappings) {
  const auto plain = [] {
    ::signal(SIGBUS, [](int) { std::_Exit(4); });
    ReadMapped();
    FaultElsewhere();
  };
  EXPECT_EXIT(plain(), testing::ExitedWithCode(4), "");
  const auto with_info = [] {
    struct sigaction action = {};
    action.sa_flags = SA_SIGINFO;
    action.sa_sigaction = [](int, siginfo_t* info, void*) {
      std::_Exit(info->si_code == BUS_ADRERR ? 5 : 6);
    };
    ::sigaction(SIGBUS, &action, nullptr);
    ReadMapped();
    FaultElsewhere();
  };
  EXPECT_EXIT(with_info(), testing::ExitedWithCode(5), "");
}

TEST_F(FileMappingDeathTest, AForkedChildAlsoSurvivesATruncatedFile) {
  // Runs in the death test's process: forks a child, and ends the process with the child's exit
  // code.
  const auto fork_and_cut = [] {
    const AnonymousFile file(ThreePages());
    FileMapping mapping(file.fd(), 3 * kPage);
    const MappedRead mapped(&mapping);
    const pid_t child = ::fork();
    if (child == 0) {
      file.Cut(0);
      std::_Exit(FirstOfEachPage(mapped.bytes()) == std::string(3, '\0') && mapped.failed() ? 7
                                                                                            : 8);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    std::_Exit(WIFEXITED(status) ? WEXITSTATUS(status) : 9);
  };
  EXPECT_EXIT(fork_and_cut(), testing::ExitedWithCode(7), "");
}

}  // namespace
}  // namespace systole
