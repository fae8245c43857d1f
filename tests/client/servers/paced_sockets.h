// Makes gRPC servers send slowly. On a busy machine a client counts the bytes late. If a
// server sent fast, a test's result would depend on how late the client is.
#ifndef SYSTOLE_TESTS_CLIENT_SERVERS_PACED_SOCKETS_H_
#define SYSTOLE_TESTS_CLIENT_SERVERS_PACED_SOCKETS_H_

#include <cstdint>
#include <memory>

#include "grpcpp/impl/server_builder_option.h"

namespace systole {

// At this rate a busy client still counts the bytes in time, and a test does not take long.
inline constexpr uint32_t kPacedBytesPerSecond = 200'000'000;

// An option for ServerBuilder::SetOption(): the kernel sends no more than kPacedBytesPerSecond on
// each TCP connection.
std::unique_ptr<grpc::ServerBuilderOption> PacedSockets();

}  // namespace systole

#endif  // SYSTOLE_TESTS_CLIENT_SERVERS_PACED_SOCKETS_H_
