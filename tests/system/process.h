// Runs one of the real programs as a child process of a test. The child cannot outlive the test: it
// is killed when its Process is destroyed. If the test dies first, the kernel kills the child.
//
// If a signal or a sanitizer's report ends a program, the test fails, even if the test does not
// check how the program ended. A signal that the test itself sent does not make the test fail.
//
// Thread-compatible.
#ifndef SYSTOLE_TESTS_SYSTEM_PROCESS_H_
#define SYSTOLE_TESTS_SYSTEM_PROCESS_H_

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace systole {

struct ProcessOptions {
  // Variables "NAME=VALUE", added to the environment of the test.
  std::vector<std::string> environment;
  // If 0, stdout is kept until the end. Otherwise stdout is a pipe of this many bytes (at least
  // 4096), which ReadLine() reads. A program that has filled the pipe waits, so a test can stop it
  // in the middle of a feed.
  int stdout_pipe_bytes = 0;
  // How many files the program may open (RLIMIT_NOFILE, soft and hard). 0 means the test's limits.
  int open_files = 0;
};

struct Finished {
  // The exit code, or -1 if a signal ended the program.
  int exit_code = -1;
  // The signal that ended the program, or 0.
  int signal = 0;
  // The most memory that the program has had at once. This number is at least the memory that the
  // test had when it started the program.
  int64_t peak_bytes = 0;
  std::string out;
  std::string err;
};

class Process {
 public:
  // `args[0]` is the program's path. Aborts the test if the program cannot be started.
  explicit Process(const std::vector<std::string>& args, const ProcessOptions& options = {});
  // Kills and reaps the program if Wait() did not.
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  void Signal(int signal);
  bool IsRunning();
  // The next line of stdout with its newline. Returns "" at the end of stdout. After ten minutes
  // (half an hour under a sanitizer) fails the test and returns "". REQUIRES: stdout_pipe_bytes.
  std::string ReadLine();
  // What the program has written to stderr so far.
  std::string err() const;
  // A size from /proc/PID/status of the program, in bytes. `which` is "VmRSS" for the memory that
  // the program has now, or "VmHWM" for the most that it has had at once.
  int64_t MemoryBytes(const std::string& which) const;
  // How many files the program has open now.
  int OpenFiles() const;
  // Waits for the program's end. `out` is the output that ReadLine() has not returned. After ten
  // minutes (half an hour under a sanitizer) kills the program and fails the test.
  Finished Wait();

 private:
  using Deadline = std::chrono::steady_clock::time_point;

  void Reap(int options);
  // Reads more of the pipe into `unread_`. Returns false at the pipe's end. At the deadline fails
  // the test and returns false.
  bool ReadMore(Deadline deadline);

  const std::string program_;
  pid_t pid_ = -1;
  std::set<int> sent_signals_;
  bool reaped_ = false;
  int wait_status_ = 0;
  int64_t peak_bytes_ = 0;
  int out_fd_ = -1;  // A memory file, or the reading end of the pipe.
  int err_fd_ = -1;  // A memory file.
  bool out_is_pipe_ = false;
  std::string unread_;  // Read from the pipe, but not yet taken.
};

}  // namespace systole

#endif  // SYSTOLE_TESTS_SYSTEM_PROCESS_H_
