#include "server/listener/read_observer.h"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/descriptor/owned_fd.h"
#include "gtest/gtest.h"
#include "openssl/ssl.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

class Recorder final : public ReadObserver {
 public:
  bool OnBytes(size_t bytes) override {
    bytes_ += bytes;
    return admits_;
  }
  bool OnPlainText(absl::Span<const uint8_t> bytes) override {
    text_.append(bytes.begin(), bytes.end());
    return admits_;
  }

  size_t bytes_ = 0;
  std::string text_;
  bool admits_ = true;
};

struct Sockets {
  Sockets() {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    near = OwnedFd(ends[0]);
    far = OwnedFd(ends[1]);
  }
  void Send(absl::string_view bytes) const {
    EXPECT_EQ(::send(far.get(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  }
  OwnedFd near, far;
};

// Reads into pieces of three bytes each.
ssize_t Read(const OwnedFd& fd, std::string& into, int flags = 0) {
  std::array<char, 12> buffer;
  std::array<iovec, 4> pieces;
  for (size_t i = 0; i < pieces.size(); ++i) {
    pieces[i] = {.iov_base = buffer.data() + 3 * i, .iov_len = 3};
  }
  msghdr message = {};
  message.msg_iov = pieces.data();
  message.msg_iovlen = pieces.size();
  const ssize_t got = ::recvmsg(fd.get(), &message, flags | MSG_DONTWAIT);
  if (got > 0) into.assign(buffer.data(), static_cast<size_t>(got));
  return got;
}

TEST(ReadObserverTest, ReadsOfThisProgramAreSeen) { EXPECT_THAT(CheckReadsAreSeen(), IsOk()); }

TEST(ReadObserverTest, ReadBytesReachBothTheObserverAndTheReaderInOrder) {
  const Sockets sockets;
  const auto recorder = std::make_shared<Recorder>();
  ObserveReads(sockets.near.get(), recorder);
  std::string text;
  sockets.Send("hello there");
  EXPECT_EQ(Read(sockets.near, text, MSG_PEEK), 11);  // A peek does not count as a read.
  EXPECT_EQ(recorder->bytes_, 0u);
  EXPECT_EQ(Read(sockets.near, text), 11);
  EXPECT_EQ(text, "hello there");
  EXPECT_EQ(recorder->text_, "hello there");
  EXPECT_EQ(recorder->bytes_, 11u);
}

TEST(ReadObserverTest, ARefusedReadFailsAsAConnectionReset) {
  const Sockets sockets;
  const auto recorder = std::make_shared<Recorder>();
  ObserveReads(sockets.near.get(), recorder);
  recorder->admits_ = false;
  sockets.Send("flood");
  std::string text;
  EXPECT_EQ(Read(sockets.near, text), -1);
  EXPECT_EQ(errno, ECONNRESET);
}

TEST(ReadObserverTest, ReadsOfUnobservedSocketsAreUnchanged) {
  const Sockets sockets;
  const auto recorder = std::make_shared<Recorder>();
  ObserveReads(sockets.near.get(), recorder);
  const Sockets others;
  others.Send("others");
  std::string text;
  EXPECT_EQ(Read(others.near, text), 6);
  EXPECT_EQ(Read(others.near, text), -1);
  EXPECT_EQ(errno, EAGAIN);
  EXPECT_EQ(recorder->bytes_, 0u);
}

TEST(ReadObserverTest, AReusedDescriptorNumberIsNotObserved) {
  const auto recorder = std::make_shared<Recorder>();
  int number;
  {
    const Sockets sockets;
    number = sockets.near.get();
    ObserveReads(number, recorder);
  }
  const Sockets others;
  ASSERT_EQ(others.near.get(), number);
  others.Send("others");
  std::string text;
  EXPECT_EQ(Read(others.near, text), 6);
  EXPECT_EQ(recorder->bytes_, 0u);
}

// A client and a server that speak TLS in memory, without certificates.
class TlsPair {
 public:
  // The server's side is made for the socket `handed_over`. -1 means no socket.
  explicit TlsPair(int handed_over) : context_(::SSL_CTX_new(::TLS_method()), ::SSL_CTX_free) {
    ::SSL_CTX_set_max_proto_version(context_.get(), TLS1_2_VERSION);
    EXPECT_EQ(::SSL_CTX_set_cipher_list(context_.get(), "ADH:@SECLEVEL=0"), 1);
    ::SSL_CTX_set_dh_auto(context_.get(), 1);
    {
      const HandedOver handing(handed_over);
      server_ = ::SSL_new(context_.get());
    }
    client_ = ::SSL_new(context_.get());
    BIO* near = nullptr;
    BIO* far = nullptr;
    EXPECT_EQ(::BIO_new_bio_pair(&near, 0, &far, 0), 1);
    ::SSL_set_bio(server_, near, near);
    ::SSL_set_bio(client_, far, far);
    ::SSL_set_accept_state(server_);
    ::SSL_set_connect_state(client_);
    for (int i = 0; i < 4; ++i) {
      ::SSL_do_handshake(client_);
      ::SSL_do_handshake(server_);
    }
    EXPECT_EQ(::SSL_is_init_finished(server_), 1);
  }
  ~TlsPair() {
    ::SSL_free(server_);
    ::SSL_free(client_);
  }

  // Sends `text` and returns how many bytes the server reads into `into`, or -1 for an error.
  int Send(const std::string& text, std::string& into) {
    EXPECT_GT(::SSL_write(client_, text.data(), static_cast<int>(text.size())), 0);
    into.resize(100);
    const int got = ::SSL_read(server_, into.data(), 100);
    if (got > 0) into.resize(static_cast<size_t>(got));
    return got;
  }

 private:
  const std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> context_;
  SSL* server_ = nullptr;
  SSL* client_ = nullptr;
};

TEST(ReadObserverTest, OverTlsTheObserverGetsPlainTextAndCountsEncryptedBytes) {
  const Sockets sockets;
  const auto recorder = std::make_shared<Recorder>();
  ObserveReads(sockets.near.get(), recorder);
  TlsPair tls(sockets.near.get());
  std::string text;
  EXPECT_EQ(tls.Send("secret", text), 6);
  EXPECT_EQ(text, "secret");
  EXPECT_EQ(recorder->text_, "secret");
  // Bytes that are read from the socket itself are encrypted, so the observer does not get them.
  sockets.Send("cipher");
  EXPECT_EQ(Read(sockets.near, text), 6);
  EXPECT_EQ(recorder->text_, "secret");
  EXPECT_EQ(recorder->bytes_, 6u);
  recorder->admits_ = false;
  EXPECT_EQ(tls.Send("flood", text), -1);
}

TEST(ReadObserverTest, EachTlsConnectionIsShownOnlyToItsOwnObserver) {
  std::vector<std::unique_ptr<Sockets>> sockets;
  std::vector<std::shared_ptr<Recorder>> recorders;
  std::vector<std::unique_ptr<TlsPair>> pairs;
  for (int i = 0; i < 8; ++i) {
    sockets.push_back(std::make_unique<Sockets>());
    recorders.push_back(std::make_shared<Recorder>());
    ObserveReads(sockets.back()->near.get(), recorders.back());
    pairs.push_back(std::make_unique<TlsPair>(sockets.back()->near.get()));
  }
  TlsPair of_nobody(-1);
  std::string text;
  EXPECT_EQ(of_nobody.Send("unseen", text), 6);
  for (size_t i = 0; i < pairs.size(); ++i) pairs[i]->Send(std::string(i + 1, 'x'), text);
  for (size_t i = 0; i < pairs.size(); ++i) EXPECT_EQ(recorders[i]->text_, std::string(i + 1, 'x'));
}

}  // namespace
}  // namespace systole
