#include "proto/slots/slot_socket.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/memory/sealed_memory.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/slots/slot_messages.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/status_matchers.h"
#include "tests/wait_until.h"

namespace systole {
namespace {

using ::testing::_;
using ::testing::Eq;
using ::testing::HasSubstr;

constexpr uid_t kNobody = 65534;

SlotListener MustListen(const std::string& path) {
  absl::StatusOr<SlotListener> listener = SlotListener::Listen(path);
  EXPECT_THAT(listener, IsOk());
  return *std::move(listener);
}

SlotSocket MustConnect(const std::string& path) {
  absl::StatusOr<SlotSocket> socket = SlotSocket::Connect(path);
  EXPECT_THAT(socket, IsOk());
  return *std::move(socket);
}

SlotSocket MustAccept(const SlotListener& listener) {
  absl::StatusOr<std::optional<SlotSocket>> socket = listener.Accept();
  EXPECT_TRUE(socket.ok() && socket->has_value()) << socket.status();
  return **std::move(socket);
}

// The two ends of a connection.
struct Ends {
  explicit Ends(const std::string& path)
      : listener(MustListen(path)), client(MustConnect(path)), server(MustAccept(listener)) {}
  SlotListener listener;
  SlotSocket client;
  SlotSocket server;
};

TEST(SlotSocketTest, TheSlotPathIsTheServersUnixPathWithASuffix) {
  EXPECT_THAT(SlotSocketPath("unix:/run/systole"), IsOkAndHolds(Eq("/run/systole.slots")));
  EXPECT_THAT(SlotSocketPath("unix:///run/systole"), IsOkAndHolds(Eq("/run/systole.slots")));
  EXPECT_THAT(SlotSocketPath("unix:here"), IsOkAndHolds(Eq("here.slots")));
  EXPECT_THAT(SlotSocketPath("127.0.0.1:80"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not a unix:PATH")));
}

TEST(SlotSocketTest, APathTooLongForASocketIsRefused) {
  EXPECT_THAT(SlotSocketPath(absl::StrCat("unix:", std::string(101, 'x'))), IsOk());
  EXPECT_THAT(SlotSocketPath(absl::StrCat("unix:", std::string(102, 'x'))),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("108 bytes, want 1 to 107")));
}

TEST(SlotSocketTest, PacketsComeWholeInOrderWithTheirDescriptors) {
  const TempFolder folder;
  const Ends ends(folder / "s");
  absl::StatusOr<SealedMemory> memory = SealedMemory::Create(5000);
  ASSERT_THAT(memory, IsOk());
  memory->data()[4999] = 42;
  EXPECT_THAT(ends.server.Receive(), IsOkAndHolds(Eq(std::nullopt)));
  ASSERT_THAT(ends.client.Send("one"), IsOk());
  ASSERT_THAT(ends.client.Send("two", memory->fd()), IsOk());
  auto first = ends.server.Receive();
  ASSERT_TRUE(first.ok() && first->has_value());
  EXPECT_EQ((*first)->message, "one");
  EXPECT_FALSE((*first)->passed.ok());
  auto second = ends.server.Receive();
  ASSERT_TRUE(second.ok() && second->has_value());
  EXPECT_EQ((*second)->message, "two");
  EXPECT_EQ(fcntl((*second)->passed.get(), F_GETFD), FD_CLOEXEC);
  const absl::StatusOr<SealedView> view = SealedView::Map((*second)->passed.get(), 5000);
  ASSERT_THAT(view, IsOk());
  EXPECT_EQ(view->data()[4999], 42);
}

TEST(SlotSocketTest, PacketsSentBeforeThePeerClosedAreStillReceived) {
  const TempFolder folder;
  std::optional<Ends> ends(folder / "s");
  ASSERT_THAT(ends->client.Send("last words"), IsOk());
  const SlotSocket server = std::move(ends->server);
  ends.reset();
  auto packet = server.Receive();
  ASSERT_TRUE(packet.ok() && packet->has_value());
  EXPECT_EQ((*packet)->message, "last words");
  EXPECT_THAT(server.Receive(), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("gone")));
  EXPECT_THAT(server.Send("anyone?"), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("gone")));
}

TEST(SlotSocketTest, AfterShutdownThePeersSendFails) {
  const TempFolder folder;
  const Ends ends(folder / "s");
  ends.server.Shutdown();
  EXPECT_THAT(ends.client.Send("x"), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("gone")));
  EXPECT_THAT(ends.client.Receive(), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("gone")));
}

TEST(SlotSocketTest, SendingToAPeerThatDoesNotReadFailsInsteadOfBlocking) {
  const TempFolder folder;
  const Ends ends(folder / "s");
  absl::Status status;
  int sent = 0;
  for (; status.ok() && sent < 1'000'000; ++sent) status = ends.client.Send("x");
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("cannot send")));
  EXPECT_GT(sent, 100);  // The socket keeps these messages for a peer that reads late.
}

// ---- What a hostile peer sends ----

void SendRaw(int socket, size_t bytes, const std::vector<int>& passed) {
  std::string message(bytes, 'x');
  iovec vec = {message.data(), message.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(16 * sizeof(int))] = {};
  msghdr packet = {};
  packet.msg_iov = &vec;
  packet.msg_iovlen = 1;
  if (!passed.empty()) {
    packet.msg_control = control;
    packet.msg_controllen = CMSG_SPACE(passed.size() * sizeof(int));
    cmsghdr* header = CMSG_FIRSTHDR(&packet);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(passed.size() * sizeof(int));
    std::memcpy(CMSG_DATA(header), passed.data(), passed.size() * sizeof(int));
  }
  ASSERT_EQ(sendmsg(socket, &packet, MSG_NOSIGNAL), static_cast<ssize_t>(bytes));
}

int OpenDescriptors() {
  int open = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    ++open;
  }
  return open;
}

TEST(SlotSocketTest, SeveralDescriptorsInAPacketAreRefusedAndClosed) {
  const TempFolder folder;
  const Ends ends(folder / "s");
  for (const size_t count : {2, 4, 5, 12}) {
    SendRaw(ends.client.fd(), 3, std::vector<int>(count, STDERR_FILENO));
    const int before = OpenDescriptors();
    EXPECT_THAT(ends.server.Receive(), StatusIs(absl::StatusCode::kInvalidArgument,
                                                HasSubstr("more than one descriptor")));
    EXPECT_EQ(OpenDescriptors(), before) << count;
  }
}

TEST(SlotSocketTest, AnOverlongPacketIsRefused) {
  const TempFolder folder;
  const Ends ends(folder / "s");
  SendRaw(ends.client.fd(), kMaxSlotMessageBytes + 1, {});
  EXPECT_THAT(ends.server.Receive(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("longer than 4096")));
}

TEST(SlotSocketTest, ADescriptorBeyondTheOpenFileLimitIsResourceExhausted) {
  const TempFolder folder;
  const Ends ends(folder / "s");
  SendRaw(ends.client.fd(), 3, {STDERR_FILENO});
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none = {.rlim_cur = 0, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const absl::Status status = ends.server.Receive().status();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("ulimit -n")));
}

// ---- Who may connect ----

TEST(SlotSocketTest, MemoryIsSharedWithTheOwnUserAndRootAlone) {
  EXPECT_TRUE(MayShareMemory(1000, 1000));
  EXPECT_TRUE(MayShareMemory(1000, 0));
  EXPECT_TRUE(MayShareMemory(0, 0));
  EXPECT_FALSE(MayShareMemory(1000, 1001));
  EXPECT_FALSE(MayShareMemory(0, 1000));  // Root trusts only root's servers.
}

TEST(SlotSocketTest, TheSocketFileIsForItsUserAlone) {
  const TempFolder folder;
  const mode_t before = umask(0);
  const SlotListener listener = MustListen(folder / "s");
  umask(before);
  struct stat info = {};
  ASSERT_EQ(stat((folder / "s").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

// These tests need two users: the user of this process, and the user of a child that this process
// forks. If this process is root, the child becomes `nobody`. Otherwise the child keeps its user,
// and this process pretends to be kSomebodyElse (by geteuid() at the end of this file). In both
// cases the kernel tells each end of a connection the other end's true user.
constexpr uid_t kSomebodyElse = 4'000'000'000;
std::optional<uid_t> pretended_user;

// The user that the child has after BecomeOtherUser().
uid_t OtherUser() { return pretended_user.has_value() ? getuid() : kNobody; }

// Called in the child: changes its user to the other user. Returns false if that fails.
bool BecomeOtherUser() {
  pretended_user.reset();
  return getuid() != 0 || setresuid(kNobody, kNobody, kNobody) == 0;
}

class OtherUserTest : public testing::Test {
 protected:
  void SetUp() override {
    if (getuid() != 0) pretended_user = kSomebodyElse;
    ASSERT_EQ(chmod(folder_.path().c_str(), 0777), 0);
  }
  void TearDown() override { pretended_user.reset(); }

  const TempFolder folder_;
};

// A child that runs `work` as the other user. Its exit code is the result of `work`: 0 is success.
class OtherUserChild {
 public:
  explicit OtherUserChild(const std::function<int()>& work) : pid_(fork()) {
    if (pid_ == 0) _exit(BecomeOtherUser() ? work() : 100);
  }
  ~OtherUserChild() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  bool HasEnded() {
    int status = 0;
    if (waitpid(pid_, &status, WNOHANG) != pid_) return false;
    exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    pid_ = 0;
    return true;
  }
  int exit_code() const { return exit_code_; }

 private:
  pid_t pid_;
  int exit_code_ = -1;
};

TEST_F(OtherUserTest, AClientOfAnotherUserIsHungUpOnDespiteFilePermissions) {
  const SlotListener listener = MustListen(folder_ / "s");
  ASSERT_EQ(chmod((folder_ / "s").c_str(), 0777), 0);
  OtherUserChild client([this] {
    const absl::StatusOr<SlotSocket> socket = SlotSocket::Connect(folder_ / "s");
    if (!socket.ok()) return 1;
    pollfd hang_up = {.fd = socket->fd(), .events = POLLIN, .revents = 0};
    if (poll(&hang_up, 1, static_cast<int>(std::chrono::milliseconds(kLongestWait).count())) != 1)
      return 2;
    return absl::IsUnavailable(socket->Receive().status()) ? 0 : 3;
  });
  // The only client belongs to another user. Memory is not shared with other users, so the listener
  // must not accept this client.
  EXPECT_TRUE(WaitUntil([&] {
    EXPECT_THAT(listener.Accept(), IsOkAndHolds(Eq(std::nullopt)));
    return client.HasEnded();
  }));
  EXPECT_EQ(client.exit_code(), 0);
}

TEST_F(OtherUserTest, TheErrorForALockedSocketSaysItBelongsToAnotherUser) {
  const SlotListener listener = MustListen(folder_ / "s");
  // If this process is not root, the child's user owns the file, and the usual mode would let the
  // child in. So the mode is 0.
  ASSERT_EQ(chmod((folder_ / "s").c_str(), 0), 0);
  OtherUserChild client([this] {
    const absl::Status status = SlotSocket::Connect(folder_ / "s").status();
    const bool is_named = absl::IsPermissionDenied(status) &&
                          absl::StrContains(status.message(), "belongs to another user");
    return is_named ? 0 : 1;
  });
  EXPECT_TRUE(WaitUntil([&] { return client.HasEnded(); }));
  EXPECT_EQ(client.exit_code(), 0);
}

TEST_F(OtherUserTest, ConnectingToAServerOfAnotherUserIsRefused) {
  OtherUserChild server([this] {
    const absl::StatusOr<SlotListener> listener = SlotListener::Listen(folder_ / "s");
    if (!listener.ok()) return 1;
    // The test waits for the new name, which shows that the socket listens.
    std::filesystem::rename(folder_ / "s", folder_ / "listening");
    pause();
    return 0;
  });
  ASSERT_TRUE(WaitUntil(
      [&] { return server.HasEnded() || std::filesystem::exists(folder_ / "listening"); }));
  EXPECT_THAT(SlotSocket::Connect(folder_ / "listening"),
              StatusIs(absl::StatusCode::kPermissionDenied,
                       HasSubstr(absl::StrCat("user ", OtherUser(), ", want ", geteuid()))));
}

// ---- The file ----

TEST(SlotListenerTest, ConnectingToAMissingSocketIsUnavailable) {
  const TempFolder folder;
  EXPECT_THAT(SlotSocket::Connect(folder / "none"),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("none")));
}

TEST(SlotListenerTest, AStaleSocketRefusesClientsAndIsReplaced) {
  const TempFolder folder;
  {
    const OwnedFd stale(socket(AF_UNIX, SOCK_SEQPACKET, 0));
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    const std::string path = folder / "s";
    std::memcpy(address.sun_path, path.data(), path.size());
    ASSERT_EQ(bind(stale.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  }
  EXPECT_THAT(SlotSocket::Connect(folder / "s"),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("no server shares memory")));
  const SlotListener listener = MustListen(folder / "s");
  MustConnect(folder / "s");
}

TEST(SlotListenerTest, AFileThatIsNoSocketIsLeftAlone) {
  const TempFolder folder;
  folder.Write("s", "precious");
  EXPECT_THAT(SlotListener::Listen(folder / "s"),
              StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr("not a socket")));
  EXPECT_TRUE(std::filesystem::is_regular_file(folder / "s"));
}

TEST(SlotListenerTest, AListenerRemovesItsSocketFileButNotThatOfALaterListener) {
  const TempFolder folder;
  {
    std::optional<SlotListener> first(MustListen(folder / "s"));
    std::filesystem::remove(folder / "s");
    const SlotListener second = MustListen(folder / "s");
    first.reset();
    EXPECT_TRUE(std::filesystem::exists(folder / "s"));
    MustConnect(folder / "s");
    MustAccept(second);
  }
  EXPECT_FALSE(std::filesystem::exists(folder / "s"));
}

TEST(SlotListenerTest, ASocketThatSomebodyListensOnIsLeftAlone) {
  const TempFolder folder;
  const SlotListener first = MustListen(folder / "s");
  EXPECT_THAT(SlotListener::Listen(folder / "s"),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("a process listens")));
  MustConnect(folder / "s");
  MustAccept(first);
}

TEST(SlotListenerTest, ASocketWhoseQueueIsFullIsLeftAlone) {
  const TempFolder folder;
  const SlotListener first = MustListen(folder / "s");
  std::vector<SlotSocket> waiting;
  while (waiting.size() < 10'000) {
    absl::StatusOr<SlotSocket> socket = SlotSocket::Connect(folder / "s");
    if (!socket.ok()) break;
    waiting.push_back(*std::move(socket));
  }
  EXPECT_THAT(RemoveStaleSocket(folder / "s"), StatusIs(absl::StatusCode::kUnavailable, _));
  EXPECT_TRUE(std::filesystem::exists(folder / "s"));
}

TEST(SlotListenerTest, ConnectingToAFullQueueFailsInsteadOfBlocking) {
  const TempFolder folder;
  const SlotListener listener = MustListen(folder / "s");
  std::vector<SlotSocket> waiting;
  absl::Status status;
  while (status.ok() && waiting.size() < 10'000) {
    absl::StatusOr<SlotSocket> socket = SlotSocket::Connect(folder / "s");
    status = socket.status();
    if (socket.ok()) waiting.push_back(*std::move(socket));
  }
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable, HasSubstr("cannot connect")));
}

TEST(SlotListenerTest, ListeningInAMissingFolderIsAnError) {
  EXPECT_FALSE(SlotListener::Listen("/nowhere/at/all.slots").ok());
}

}  // namespace
}  // namespace systole

// Replaces libc's geteuid() in the whole program.
extern "C" uid_t geteuid() noexcept {
  return systole::pretended_user.value_or(static_cast<uid_t>(syscall(SYS_geteuid)));
}
