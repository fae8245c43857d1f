#include "bench/link.h"

#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/status/check.h"
#include "core/status/status_macros.h"

namespace systole::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kOneWay = std::chrono::milliseconds(10);
// One direction of the relay holds at most this many packets. This is room for more than 64 MiB of
// data, to which TCP's buffers may grow. So the relay loses nothing, and TCP's buffers decide how
// much data is under way.
constexpr size_t kRelayPackets = 64 * 1024;

absl::Status Failed(absl::string_view what) {
  return absl::FailedPreconditionError(absl::StrCat(
      what, " failed: ", std::strerror(errno),
      ". Links between network namespaces need root: sudo build/release/bench/link_bench"));
}

absl::Status Run(const std::string& command) {
  const int status = std::system(command.c_str());
  if (status == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("`", command, "` failed. It needs root and the package iproute2"));
}

absl::StatusOr<int> OpenTun(const char* name) {
  const int tun = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
  if (tun < 0) return Failed("opening /dev/net/tun");
  ifreq request = {};
  request.ifr_flags = IFF_TUN | IFF_NO_PI;
  std::strncpy(request.ifr_name, name, IFNAMSIZ - 1);
  if (ioctl(tun, TUNSETIFF, &request) != 0) return Failed("making a tun device");
  return tun;
}

// Sets up the network namespace of the calling process: the loopback, TCP's buffers, the device
// `tun`.
absl::Status Tune(const char* tun, const std::string& address) {
  return Run(absl::StrCat(
      "ip link set lo up && echo '4096 131072 67108864' > /proc/sys/net/ipv4/tcp_rmem && "
      "echo '4096 65536 67108864' > /proc/sys/net/ipv4/tcp_wmem && ip addr add ",
      address, "/24 dev ", tun, " && ip link set ", tun, " txqueuelen 20000 mtu 9000 up"));
}

// One direction of the relay: packets on their way from the device `from` to the device `to`.
struct Direction {
  struct Packet {
    Clock::time_point due;
    std::vector<uint8_t> bytes;
  };
  int from;
  int to;
  std::deque<Packet> held;
  std::vector<std::vector<uint8_t>> spare;

  // Reads one packet. False if there is none, or no room for it.
  bool Take() {
    if (held.size() >= kRelayPackets) return false;  // The device drops what it cannot hold.
    Packet packet;
    if (!spare.empty()) {
      packet.bytes = std::move(spare.back());
      spare.pop_back();
    }
    packet.bytes.resize(9216);
    const ssize_t bytes = read(from, packet.bytes.data(), packet.bytes.size());
    if (bytes <= 0) {
      spare.push_back(std::move(packet.bytes));
      return false;
    }
    packet.bytes.resize(static_cast<size_t>(bytes));
    packet.due = Clock::now() + kOneWay;
    held.push_back(std::move(packet));
    return true;
  }
  void Deliver(Clock::time_point now) {
    while (!held.empty() && held.front().due <= now) {
      // A packet whose write fails is lost, as on any path.
      (void)!write(to, held.front().bytes.data(), held.front().bytes.size());
      spare.push_back(std::move(held.front().bytes));
      held.pop_front();
    }
  }
};

[[noreturn]] void Relay(int a, int b) {
  Direction ways[2] = {{.from = a, .to = b}, {.from = b, .to = a}};
  while (true) {
    bool busy = false;
    for (Direction& way : ways) {
      for (int i = 0; i < 64 && way.Take(); ++i) busy = true;
      way.Deliver(Clock::now());
    }
    if (busy) continue;
    auto wait = std::chrono::nanoseconds(std::chrono::seconds(1));
    for (const Direction& way : ways) {
      if (way.held.empty()) continue;
      wait = std::min(wait, std::chrono::nanoseconds(way.held.front().due - Clock::now()));
    }
    if (wait.count() <= 0) continue;
    pollfd fds[2] = {{.fd = a, .events = POLLIN}, {.fd = b, .events = POLLIN}};
    const timespec timeout = {.tv_sec = wait.count() / 1'000'000'000,
                              .tv_nsec = wait.count() % 1'000'000'000};
    ppoll(fds, 2, &timeout, nullptr);
  }
}

// Prepares the server's process to serve. `client_tun` is the device of the client's namespace.
absl::Status JoinLinks(int client_tun, int control) {
  if (unshare(CLONE_NEWNET) != 0) return Failed("making a network namespace");
  SYSTOLE_ASSIGN_OR_RETURN(const int tun, OpenTun("far"));
  const pid_t relay = fork();
  if (relay == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    Relay(client_tun, tun);
  }
  if (relay < 0) return Failed("fork");
  // The handshake: this process has its namespace now, so the client makes the veth pair. Then this
  // process sets up its end of the pair.
  char ready = 1;
  if (write(control, &ready, 1) != 1 || read(control, &ready, 1) != 1) return Failed("a handshake");
  SYSTOLE_RETURN_IF_ERROR(Tune("far", absl::StrCat(kFarServer)));
  return Run(absl::StrCat("ip addr add ", kGigabitServer,
                          "/24 dev gigabit && ip link set gigabit up && tc qdisc add dev gigabit "
                          "root tbf rate 1gbit burst 256kb latency 20ms"));
}

}  // namespace

absl::Status StartBehindLinks(const std::function<void(int control)>& serve, int& control) {
  if (unshare(CLONE_NEWNET) != 0) return Failed("making a network namespace");
  SYSTOLE_ASSIGN_OR_RETURN(const int tun, OpenTun("far"));
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return Failed("socketpair");
  const pid_t server = fork();
  if (server < 0) return Failed("fork");
  if (server == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(ends[0]);
    const absl::Status joined = JoinLinks(tun, ends[1]);
    SYSTOLE_CHECK(joined.ok());
    serve(ends[1]);
    _exit(0);
  }
  close(ends[1]);
  control = ends[0];
  char ready = 0;
  if (read(control, &ready, 1) != 1) return Failed("starting the server's process");
  SYSTOLE_RETURN_IF_ERROR(Tune("far", "10.77.2.1"));
  SYSTOLE_RETURN_IF_ERROR(
      Run(absl::StrCat("ip link add gigabit type veth peer name gigabit netns ", server,
                       " && ip addr add 10.77.1.1/24 dev gigabit && ip link set gigabit up")));
  if (write(control, &ready, 1) != 1) return Failed("a handshake");
  return absl::OkStatus();
}

}  // namespace systole::bench
