#include "tests/chaos/crowd.h"

#include <sys/socket.h>

#include <chrono>
#include <utility>

#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "tests/loopback_socket.h"

namespace systole {
namespace {

constexpr int kOtherMachine = 2;
constexpr int kRoundsASecond = 20;

// The connection preface of an HTTP/2 client, and an empty SETTINGS frame after it.
constexpr absl::string_view kHello("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0", 33);

}  // namespace

IdleCrowd::IdleCrowd(int port, int idle, int each_second) {
  for (int i = 0; i < idle; ++i) {
    OwnedFd socket = ConnectOnLoopback(port, kOtherMachine);
    if (i % 2 == 0) ::send(socket.get(), kHello.data(), kHello.size(), MSG_NOSIGNAL);
    idle_.push_back(std::move(socket));
  }
  visitors_ = std::thread([this, port, each_second] { ComeAndGo(port, each_second); });
}

IdleCrowd::~IdleCrowd() {
  stopping_ = true;
  visitors_.join();
}

void IdleCrowd::ComeAndGo(int port, int each_second) {
  absl::Time next = absl::Now();
  while (!stopping_) {
    std::vector<OwnedFd> visitors;
    for (int i = 0; i < each_second / kRoundsASecond; ++i) {
      visitors.push_back(ConnectOnLoopback(port, kOtherMachine));
      ++visits_;
    }
    next += absl::Seconds(1) / kRoundsASecond;
    absl::SleepFor(next - absl::Now());
  }
}

ReaderCrowd::ReaderCrowd(const std::string& address, const v1::FeedSpec& spec,
                         const Readers& readers) {
  for (int i = 0; i < readers.honest + readers.slow + readers.silent; ++i) {
    auto call = std::make_unique<Call>();
    grpc::ChannelArguments own_connection;
    own_connection.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    call->stub = v1::Systole::NewStub(
        grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), own_connection));
    // If a message never comes, the deadline ends the call. The deadline is far longer than a test
    // takes.
    call->context.set_deadline(std::chrono::system_clock::now() + std::chrono::hours(1));
    v1::StreamStepsRequest request;
    *request.mutable_spec() = spec;
    request.mutable_spec()->set_seed(static_cast<uint64_t>(1000 + i));
    request.set_count(1'000'000);
    call->reader = call->stub->StreamSteps(&call->context, request);
    call->reader->WaitForInitialMetadata();
    calls_.push_back(std::move(call));
  }
  for (int i = 0; i < readers.honest; ++i) {
    threads_.emplace_back([call = calls_[static_cast<size_t>(i)].get()] {
      v1::Chunk chunk;
      while (call->reader->Read(&chunk)) continue;
    });
  }
  if (readers.slow > 0) {
    threads_.emplace_back([this, begin = readers.honest, end = readers.honest + readers.slow] {
      ReadSlowly(begin, end);
    });
  }
}

ReaderCrowd::~ReaderCrowd() {
  stopping_ = true;
  for (const std::unique_ptr<Call>& call : calls_) call->context.TryCancel();
  for (std::thread& thread : threads_) thread.join();
}

void ReaderCrowd::ReadSlowly(int begin, int end) {
  absl::Time next = absl::Now();
  while (!stopping_) {
    for (int i = begin; i < end && !stopping_; ++i) {
      v1::Chunk chunk;
      calls_[static_cast<size_t>(i)]->reader->Read(&chunk);
      next += absl::Seconds(1) / (end - begin);
      absl::SleepFor(next - absl::Now());
    }
  }
}

}  // namespace systole
