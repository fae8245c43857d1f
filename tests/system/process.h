// One of the real programs, run as a child process of a test. It cannot outlive the test: it is
// killed when its Process goes, and by the kernel if the test dies first.
//
// A program that dies of a signal or of a sanitizer's report fails the test, whether or not anybody
// asks how it ended, unless the test sent that signal.
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
  // "NAME=VALUE", added to the environment of the test.
  std::vector<std::string> environment;
  // 0: stdout is kept until the end. Otherwise it is a pipe that holds so many bytes (at least
  // 4096) for ReadLine(): a program that has filled it waits, which is how a test stops one in
  // mid-stream.
  int stdout_pipe_bytes = 0;
  // How many files it may open (RLIMIT_NOFILE, soft and hard); 0: as many as the test.
  int open_files = 0;
};

struct Finished {
  // -1 if a signal ended it: none of the codes that a program can return.
  int exit_code = -1;
  // The signal that ended it, or 0.
  int signal = 0;
  // The most that it has had in memory at once; at least what the test had when it started it.
  int64_t peak_bytes = 0;
  std::string out;
  std::string err;
};

class Process {
 public:
  // `args[0]` is the program's path. Aborts the test if the program cannot be started.
  explicit Process(const std::vector<std::string>& args, const ProcessOptions& options = {});
  // Kills and reaps it if Wait() did not.
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  void Signal(int signal);
  bool IsRunning();
  // The next line of stdout with its newline; "" at the end, or with a failure after two minutes.
  // REQUIRES: stdout_pipe_bytes.
  std::string ReadLine();
  // What it has written to stderr so far.
  std::string err() const;
  // What /proc/PID/status says of its memory now: "VmRSS", or "VmHWM", the most of it so far.
  int64_t MemoryBytes(const std::string& which) const;
  // How many files it has open now.
  int OpenFiles() const;
  // Waits for the end. `out` is what ReadLine() has not taken. A process still there after two
  // minutes is stuck: it is killed, and that is a failure.
  Finished Wait();

 private:
  using Deadline = std::chrono::steady_clock::time_point;

  void Reap(int options);
  // Reads more of the pipe into `unread_`. False at its end, or with a failure at the deadline.
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
  std::string unread_;  // Read from the pipe, not yet taken.
};

}  // namespace systole

#endif  // SYSTOLE_TESTS_SYSTEM_PROCESS_H_
