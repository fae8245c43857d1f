// Measures what encryption costs the wire: ready batches go over TLS from a C++ server into the
// client's aligned memory. The ceiling is OpenSSL on a raw TCP socket that moves the same bytes
// with the same cipher.
#include <openssl/ssl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/ready_feed.h"
#include "bench/rounds.h"
#include "bench/tcp_pair.h"
#include "benchmark/benchmark.h"
#include "core/concurrency/worker_pool.h"
#include "core/memory/aligned_buffer.h"
#include "core/process/allocator.h"
#include "core/status/check.h"
#include "server/listener/tls_credentials.h"
#include "tests/core/storage/temp_folder.h"

namespace systole {
namespace {

using bench::ReadySteps;

struct Freer {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  void operator()(SSL* connection) const { SSL_free(connection); }
};
using Context = std::unique_ptr<SSL_CTX, Freer>;
using Connection = std::unique_ptr<SSL, Freer>;

Connection Over(SSL_CTX* context, int socket) {
  Connection connection(SSL_new(context));
  SYSTOLE_CHECK(connection != nullptr && SSL_set_fd(connection.get(), socket) == 1);
  return connection;
}

// The cipher that the server at `port` chooses for a client that leaves the choice to the server.
std::string CipherOf(int port) {
  const Context context(SSL_CTX_new(TLS_client_method()));
  constexpr unsigned char kHttp2[] = {2, 'h', '2'};
  SYSTOLE_CHECK(SSL_CTX_set_alpn_protos(context.get(), kHttp2, sizeof(kHttp2)) == 0);
  const int socket = bench::ConnectTo(port);
  const Connection connection = Over(context.get(), socket);
  SYSTOLE_CHECK(SSL_connect(connection.get()) == 1);
  const std::string name = SSL_get_cipher_name(connection.get());
  close(socket);
  return name;
}

// The ceiling: SSL_write() sends 1 MiB at a time, and SSL_read() receives straight into one of two
// aligned buffers, each as large as a step.
bench::Sample MeasureOpenSsl(const TlsOptions& tls, const std::string& cipher,
                             const ReadySteps& ready, int64_t steps,
                             AlignedBuffer (&destination)[2]) {
  const auto [sender, receiver] = bench::TcpPair();
  const Context serving(SSL_CTX_new(TLS_server_method()));
  const Context asking(SSL_CTX_new(TLS_client_method()));
  SYSTOLE_CHECK(SSL_CTX_use_certificate_chain_file(serving.get(), tls.certificate.c_str()) == 1 &&
                SSL_CTX_use_PrivateKey_file(serving.get(), tls.key.c_str(), SSL_FILETYPE_PEM) ==
                    1 &&
                SSL_CTX_set_ciphersuites(serving.get(), cipher.c_str()) == 1);
  const Connection from = Over(serving.get(), sender);
  const Connection to = Over(asking.get(), receiver);
  const int64_t bytes = ready.bytes();
  WorkerPool sending(1);
  sending.Submit([&] {
    SYSTOLE_CHECK(SSL_accept(from.get()) == 1);
    for (int64_t step = 0; step < steps; ++step) {
      for (int64_t at = 0; at < bytes;) {
        const int64_t piece = std::min<int64_t>(bytes - at, 1 << 20);
        const int sent = SSL_write(from.get(), ready.slice(step, 0) + at, static_cast<int>(piece));
        SYSTOLE_CHECK(sent > 0);
        at += sent;
      }
    }
  });
  SYSTOLE_CHECK(SSL_connect(to.get()) == 1);
  const bench::Sample sample =
      bench::Measure(static_cast<double>(bytes * steps), [&, to = to.get()] {
        for (int64_t step = 0; step < steps; ++step) {
          uint8_t* place = destination[step % 2].data();
          for (int64_t at = 0; at < bytes;) {
            const int got =
                SSL_read(to, place + at, static_cast<int>(std::min<int64_t>(bytes - at, 1 << 30)));
            SYSTOLE_CHECK(got > 0);
            at += got;
          }
        }
      });
  close(sender);
  close(receiver);
  return sample;
}

void BM_TlsAgainstOpenSsl(benchmark::State& state) {
  const ReadySteps ready(/*global_batch=*/state.range(0), /*num_cores=*/8);
  const int64_t steps = std::max<int64_t>(1, bench::ScaledWork(int64_t{1} << 30) / ready.bytes());
  const TempFolder folder;
  SYSTOLE_CHECK(std::system(absl::StrCat(SYSTOLE_SOURCE_DIR "/deploy/make_certificates.sh ",
                                         folder.path(), " 2>/dev/null")
                                .c_str()) == 0);
  const TlsOptions tls = {.certificate = folder / "server.pem", .key = folder / "server.key"};
  absl::StatusOr<std::unique_ptr<TlsFiles>> files = TlsFiles::Open(tls, nullptr);
  SYSTOLE_CHECK(files.ok());
  bench::ReadyService service(ready);
  const bench::RunningServer server(service, "127.0.0.1:0", TlsCredentialsOver(*std::move(files)));
  const ServerSecurity security = {.tls = true, .ca_file = folder / "ca.pem"};
  const std::string cipher = CipherOf(server.port);
  AlignedBuffer destination[2] = {*AlignedBuffer::Create(ready.bytes()),
                                  *AlignedBuffer::Create(ready.bytes())};
  for (auto _ : state) {
    const std::vector<std::vector<bench::Sample>> samples =
        bench::TakeTurns({[&] { return MeasureFeedClient(server.address, ready, steps, security); },
                          [&] { return MeasureOpenSsl(tls, cipher, ready, steps, destination); }});
    bench::ReportRow(state, "of_openssl",
                     {.figure = "wire with TLS: ready bf16 batches into the caller's memory",
                      .ceiling = absl::StrCat("OpenSSL on a raw TCP socket, ", cipher),
                      .unit = "GB/s",
                      .unit_size = 1e9,
                      .wanted = 0.5},
                     samples[0], samples[1]);
  }
}
BENCHMARK(BM_TlsAgainstOpenSsl)
    ->ArgName("global_batch")
    ->Arg(128)
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

}  // namespace
}  // namespace systole

int main(int argc, char** argv) {
  systole::KeepFreedMemory();
  return systole::bench::RunBenchmarks(argc, argv);
}
