#include "tests/system/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>

#include "core/status/check.h"

namespace systole {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kStuckAfter(120);

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
    : out_is_pipe_(options.stdout_pipe_bytes > 0) {
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
    // Only calls that are safe after a fork of a process with threads.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(126);
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
    Signal(SIGKILL);
    Reap(0);
  }
  close(out_fd_);
  close(err_fd_);
}

void Process::Signal(int signal) const { SYSTOLE_CHECK(kill(pid_, signal) == 0); }

void Process::Reap(int options) {
  if (!reaped_) reaped_ = waitpid(pid_, &wait_status_, options) == pid_;
}

bool Process::IsRunning() {
  Reap(WNOHANG);
  return !reaped_;
}

std::string Process::ReadLine() {
  SYSTOLE_CHECK(out_is_pipe_);
  size_t newline;
  while ((newline = unread_.find('\n')) == std::string::npos) {
    char buffer[4096];
    const ssize_t got = read(out_fd_, buffer, sizeof(buffer));
    if (got <= 0) return "";
    unread_.append(buffer, static_cast<size_t>(got));
  }
  const std::string line = unread_.substr(0, newline + 1);
  unread_.erase(0, newline + 1);
  return line;
}

std::string Process::err() const { return ReadMemoryFile(err_fd_); }

std::string Process::ReadRestOfPipe() {
  const Clock::time_point deadline = Clock::now() + kStuckAfter;
  pollfd wanted = {.fd = out_fd_, .events = POLLIN, .revents = 0};
  while (Clock::now() < deadline) {
    if (poll(&wanted, 1, /*timeout_ms=*/100) <= 0) continue;
    char buffer[65536];
    const ssize_t got = read(out_fd_, buffer, sizeof(buffer));
    if (got <= 0) break;
    unread_.append(buffer, static_cast<size_t>(got));
  }
  return std::move(unread_);
}

Finished Process::Wait() {
  Finished finished;
  if (out_is_pipe_) finished.out = ReadRestOfPipe();
  const Clock::time_point deadline = Clock::now() + kStuckAfter;
  while (IsRunning()) {
    if (Clock::now() > deadline) {
      Signal(SIGKILL);
      Reap(0);
    } else {
      usleep(2000);
    }
  }
  finished.exit_code =
      WIFEXITED(wait_status_) ? WEXITSTATUS(wait_status_) : 128 + WTERMSIG(wait_status_);
  if (!out_is_pipe_) finished.out = ReadMemoryFile(out_fd_);
  finished.err = err();
  return finished;
}

}  // namespace systole
