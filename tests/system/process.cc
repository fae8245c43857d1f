#include "tests/system/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/status/check.h"
#include "gtest/gtest.h"
#include "tests/sanitizers.h"

namespace systole {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kStuckAfter(kSanitized ? 1800 : 600);
// tests/CMakeLists.txt sets this exit code for sanitizers. The sanitizers' default is a code that
// our programs use.
constexpr int kSanitizerReport = 99;
constexpr char kStuck[] = "is stuck: it did not finish in time";

std::string ReadMemoryFile(int fd) {
  std::string text;
  char buffer[65536];
  ssize_t got;
  while ((got = pread(fd, buffer, sizeof(buffer), static_cast<off_t>(text.size()))) > 0) {
    text.append(buffer, static_cast<size_t>(got));
  }
  return text;
}

std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (const std::string& string : strings) pointers.push_back(const_cast<char*>(string.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

Process::Process(const std::vector<std::string>& args, const ProcessOptions& options)
    : program_(args[0]), out_is_pipe_(options.stdout_pipe_bytes > 0) {
  int child_out;
  if (out_is_pipe_) {
    int ends[2];
    SYSTOLE_CHECK(pipe2(ends, O_CLOEXEC) == 0);
    SYSTOLE_CHECK(fcntl(ends[1], F_SETPIPE_SZ, options.stdout_pipe_bytes) > 0);
    out_fd_ = ends[0];
    child_out = ends[1];
  } else {
    out_fd_ = child_out = memfd_create("stdout", MFD_CLOEXEC);
  }
  err_fd_ = memfd_create("stderr", MFD_CLOEXEC);
  const int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
  SYSTOLE_CHECK(out_fd_ >= 0 && err_fd_ >= 0 && null_fd >= 0);

  std::vector<std::string> environment = options.environment;
  for (char** entry = environ; *entry != nullptr; ++entry) environment.emplace_back(*entry);
  const std::vector<char*> argv = Pointers(args);
  const std::vector<char*> envp = Pointers(environment);
  const pid_t parent = getpid();
  pid_ = fork();
  SYSTOLE_CHECK(pid_ >= 0);
  if (pid_ == 0) {
    // The child may only make calls that are safe after the fork of a process with threads.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(126);
    if (options.open_files > 0) {
      const rlimit limit = {.rlim_cur = static_cast<rlim_t>(options.open_files),
                            .rlim_max = static_cast<rlim_t>(options.open_files)};
      if (setrlimit(RLIMIT_NOFILE, &limit) != 0) _exit(126);
    }
    dup2(null_fd, STDIN_FILENO);
    dup2(child_out, STDOUT_FILENO);
    dup2(err_fd_, STDERR_FILENO);
    execve(argv[0], argv.data(), envp.data());
    _exit(127);
  }
  close(null_fd);
  if (out_is_pipe_) close(child_out);
}

Process::~Process() {
  if (!reaped_) {
    // If another signal has already killed the program, Reap() still reports that signal, because
    // the first signal counts.
    Signal(SIGKILL);
    Reap(0);
  }
  close(out_fd_);
  close(err_fd_);
}

void Process::Signal(int signal) {
  sent_signals_.insert(signal);
  SYSTOLE_CHECK(kill(pid_, signal) == 0);
}

void Process::Reap(int options) {
  if (reaped_) return;
  rusage used = {};
  reaped_ = wait4(pid_, &wait_status_, options, &used) == pid_;
  if (!reaped_) return;
  peak_bytes_ = int64_t{used.ru_maxrss} << 10;
  if (WIFEXITED(wait_status_) && WEXITSTATUS(wait_status_) == kSanitizerReport) {
    ADD_FAILURE() << program_ << " was ended by a sanitizer; it wrote:\n" << err();
  }
  if (WIFSIGNALED(wait_status_) && sent_signals_.count(WTERMSIG(wait_status_)) == 0) {
    ADD_FAILURE() << program_ << " died of signal " << WTERMSIG(wait_status_) << " ("
                  << strsignal(WTERMSIG(wait_status_)) << "); it wrote:\n"
                  << err();
  }
}

bool Process::IsRunning() {
  Reap(WNOHANG);
  return !reaped_;
}

std::string Process::ReadLine() {
  SYSTOLE_CHECK(out_is_pipe_);
  size_t newline;
  const Deadline deadline = Clock::now() + kStuckAfter;
  while ((newline = unread_.find('\n')) == std::string::npos) {
    if (!ReadMore(deadline)) return "";
  }
  const std::string line = unread_.substr(0, newline + 1);
  unread_.erase(0, newline + 1);
  return line;
}

std::string Process::err() const { return ReadMemoryFile(err_fd_); }

bool Process::ReadMore(Deadline deadline) {
  pollfd wanted = {.fd = out_fd_, .events = POLLIN, .revents = 0};
  while (poll(&wanted, 1, /*timeout_ms=*/100) <= 0) {
    if (Clock::now() < deadline) continue;
    ADD_FAILURE() << program_ << " " << kStuck;
    return false;
  }
  char buffer[65536];
  const ssize_t got = read(out_fd_, buffer, sizeof(buffer));
  if (got <= 0) return false;
  unread_.append(buffer, static_cast<size_t>(got));
  return true;
}

int64_t Process::MemoryBytes(const std::string& which) const {
  std::ifstream status(absl::StrCat("/proc/", pid_, "/status"));
  for (std::string line; std::getline(status, line);) {
    const std::vector<std::string> words =
        absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
    int64_t kib = 0;
    if (words.size() == 3 && words[0] == which + ":" && absl::SimpleAtoi(words[1], &kib)) {
      return kib << 10;
    }
  }
  ADD_FAILURE() << program_ << ": cannot read " << which << " of process " << pid_;
  return 0;
}

int Process::OpenFiles() const {
  const std::filesystem::directory_iterator files(absl::StrCat("/proc/", pid_, "/fd"));
  return static_cast<int>(std::distance(begin(files), end(files)));
}

Finished Process::Wait() {
  const Deadline deadline = Clock::now() + kStuckAfter;
  while (out_is_pipe_ && ReadMore(deadline)) {
  }
  while (IsRunning()) {
    if (Clock::now() > deadline) {
      ADD_FAILURE() << program_ << " " << kStuck << "; it wrote:\n" << err();
      Signal(SIGKILL);
      Reap(0);
    } else {
      usleep(2000);
    }
  }
  Finished finished;
  if (WIFEXITED(wait_status_)) finished.exit_code = WEXITSTATUS(wait_status_);
  if (WIFSIGNALED(wait_status_)) finished.signal = WTERMSIG(wait_status_);
  finished.peak_bytes = peak_bytes_;
  finished.out = out_is_pipe_ ? std::exchange(unread_, "") : ReadMemoryFile(out_fd_);
  finished.err = err();
  return finished;
}

}  // namespace systole
