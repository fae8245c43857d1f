// A server of ready batches, for measuring the wire alone.
//
// Thread-compatible. A failure to make or start anything ends the program.
#ifndef SYSTOLE_BENCH_READY_FEED_H_
#define SYSTOLE_BENCH_READY_FEED_H_

#include <cstdint>
#include <memory>
#include <string>

#include "bench/rounds.h"
#include "client/servers/server_security.h"
#include "core/batch/slice_layout.h"
#include "core/memory/aligned_buffer.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server.h"
#include "systole/v1/service.grpc.pb.h"

namespace systole::bench {

// Steps of `global_batch` images 224x224x3 in bf16 for `num_cores` cores, ready in memory. There
// are two different steps, so that neither server nor client finds everything in the cache.
struct ReadySteps {
  ReadySteps(int64_t global_batch, int num_cores);

  int64_t bytes() const { return layout.slice_bytes() * num_cores; }
  const uint8_t* slice(int64_t step, int core) const {
    return steps[step % 2].data() + core * layout.slice_bytes();
  }

  const int64_t global_batch;
  const int num_cores;
  v1::FeedSpec spec;  // A client whose feed has this spec gets `layout`.
  SliceLayout layout;
  AlignedBuffer steps[2];
};

// Streams `ready`, framed as the real server frames steps, to any client that asks for
// `ready.spec`. `ready` must outlive the service.
class ReadyService : public v1::Systole::WithCallbackMethod_ResolveFeed<
                         v1::Systole::WithRawCallbackMethod_StreamSteps<v1::Systole::Service>> {
 public:
  explicit ReadyService(const ReadySteps& ready) : ready_(ready) {}
  grpc::ServerUnaryReactor* ResolveFeed(grpc::CallbackServerContext* context,
                                        const v1::ResolveFeedRequest* request,
                                        v1::ResolveFeedResponse* response) override;
  grpc::ServerWriteReactor<grpc::ByteBuffer>* StreamSteps(grpc::CallbackServerContext* context,
                                                          const grpc::ByteBuffer* bytes) override;

 private:
  virtual grpc::ServerWriteReactor<grpc::ByteBuffer>* Stream(const v1::StreamStepsRequest& request);

  const ReadySteps& ready_;
};

// Serves `service` at `listen`, "HOST:0" (any free port) or "unix:PATH", until destroyed.
struct RunningServer {
  explicit RunningServer(
      grpc::Service& service, const std::string& listen = "127.0.0.1:0",
      std::shared_ptr<grpc::ServerCredentials> own = grpc::InsecureServerCredentials());

  std::string address;
  int port = 0;                                          // Has no meaning on a Unix socket.
  std::shared_ptr<grpc::ServerCredentials> credentials;  // Must outlive `server`.
  std::unique_ptr<grpc::Server> server;
};

// Measures how fast a FeedClient takes `steps` steps from the server of `ready` at `address`. The
// sample's amount is in bytes.
Sample MeasureFeedClient(const std::string& address, const ReadySteps& ready, int64_t steps,
                         const ServerSecurity& security = {});

}  // namespace systole::bench

#endif  // SYSTOLE_BENCH_READY_FEED_H_
