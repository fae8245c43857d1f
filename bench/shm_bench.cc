// The same host: ready batches out of a server's shared memory into the client's aligned memory,
// against memcpy of the same bytes by one thread. Server and client share the process, as they
// share the machine; descriptors, mappings and messages are those of two processes.
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/ready_feed.h"
#include "bench/rounds.h"
#include "benchmark/benchmark.h"
#include "core/flow/mutex.h"
#include "core/memory/aligned_buffer.h"
#include "core/memory/allocator.h"
#include "core/status/check.h"
#include "proto/framing/chunk.h"
#include "proto/slots/slot_socket.h"
#include "server/slot_server.h"

namespace systole::bench {
namespace {

constexpr int kNumCores = 8;

// Ready slices in slots: two steps of them, each lent again when the client has given it back.
class ReadySlots {
 public:
  explicit ReadySlots(const ReadySteps& ready) : ready_(ready) {
    for (int64_t i = 0; i < 2 * kNumCores; ++i) {
      absl::StatusOr<AlignedBuffer> slot = AlignedBuffer::CreateSealed(ready.layout.slice_bytes());
      SYSTOLE_CHECK(slot.ok());
      std::memcpy(slot->data(), ready.slice(i / kNumCores, static_cast<int>(i % kNumCores)),
                  static_cast<size_t>(slot->size()));
      slots_.push_back(*std::move(slot));
    }
  }
  const ReadySteps& ready() const { return ready_; }
  const std::shared_ptr<const SealedMemory>& slot(int64_t step, int core) const {
    return slots_[static_cast<size_t>(step % 2 * kNumCores + core)].sealed();
  }

 private:
  const ReadySteps& ready_;
  std::vector<AlignedBuffer> slots_;
};

// Sends `count` steps out of the slots, with the real server's session and window. A slice is sent
// when the one before it is written and fewer than a window's are with the client.
class SlotWriter final : public grpc::ServerWriteReactor<grpc::ByteBuffer> {
 public:
  SlotWriter(const ReadySlots& slots, const v1::StreamStepsRequest& request,
             std::shared_ptr<SlotSession> session)
      : slots_(slots),
        session_(std::move(session)),
        flow_(std::make_shared<Flow>()),
        step_(request.first_step()),
        end_(step_ + request.count()) {
    flow_->writer = this;
    Advance(*flow_, [](Flow& flow) { flow.writing = false; });
  }
  void OnWriteDone(bool ok) override {
    if (!ok) step_ = end_;
    Advance(*flow_, [](Flow& flow) { flow.writing = false; });
  }
  void OnCancel() override {
    Advance(*flow_, [this](Flow&) { step_ = end_; });
  }
  void OnDone() override { delete this; }

 private:
  // What the writer shares with the slots that clients hold; outlives it.
  struct Flow {
    Mutex mu;
    SlotWriter* writer = nullptr;  // Null once it has finished.
    bool writing = true;
    int64_t lent = 0;
  };
  // Applies what has happened, and goes on if that is possible now.
  static void Advance(Flow& flow, const std::function<void(Flow&)>& happened) {
    MutexLock lock(flow.mu);
    happened(flow);
    if (flow.writer != nullptr && !flow.writing) flow.writer->Next();
  }
  void Next() {
    if (step_ == end_) {
      flow_->writer = nullptr;
      Finish(grpc::Status::OK);
      return;
    }
    const int64_t slice_bytes = slots_.ready().layout.slice_bytes();
    if (flow_->lent + slice_bytes > kWindowBytes) return;
    const std::shared_ptr<const SealedMemory>& slot = slots_.slot(step_, core_);
    const std::shared_ptr<const void> owner(slot.get(), [flow = flow_, slice_bytes](const void*) {
      Advance(*flow, [slice_bytes](Flow& f) { f.lent -= slice_bytes; });
    });
    flow_->lent += slice_bytes;
    flow_->writing = true;
    SYSTOLE_CHECK(session_->Lend(slot, owner) == v1::NO_REASON);
    message_ = EncodeChunk(
        {.step = step_, .core = core_, .slot = slot->id(), .slot_bytes = slice_bytes}, {}, nullptr);
    core_ = (core_ + 1) % kNumCores;
    if (core_ == 0) ++step_;
    StartWrite(&message_);
  }

  static constexpr int64_t kWindowBytes = int64_t{16} << 20;  // As the server's.
  const ReadySlots& slots_;
  const std::shared_ptr<SlotSession> session_;
  const std::shared_ptr<Flow> flow_;
  int64_t step_;
  const int64_t end_;
  int core_ = 0;
  grpc::ByteBuffer message_;
};

class ReadySlotService final : public ReadyService {
 public:
  ReadySlotService(const ReadySlots& slots, SlotServer& slot_server)
      : ReadyService(slots.ready()), slots_(slots), slot_server_(slot_server) {}

 private:
  grpc::ServerWriteReactor<grpc::ByteBuffer>* Stream(
      const v1::StreamStepsRequest& request) override {
    std::shared_ptr<SlotSession> session = slot_server_.Claim(request.slot_session()).session;
    SYSTOLE_CHECK(session != nullptr);
    return new SlotWriter(slots_, request, std::move(session));
  }

  const ReadySlots& slots_;
  SlotServer& slot_server_;
};

// The ceiling: slice by slice from the ready steps to one of two others, by one thread.
Sample MeasureMemcpy(const ReadySteps& ready, int64_t steps, AlignedBuffer (&destination)[2]) {
  const int64_t slice_bytes = ready.layout.slice_bytes();
  return Measure(static_cast<double>(ready.bytes() * steps), [&] {
    for (int64_t step = 0; step < steps; ++step) {
      for (int core = 0; core < kNumCores; ++core) {
        std::memcpy(destination[step % 2].data() + core * slice_bytes, ready.slice(step, core),
                    static_cast<size_t>(slice_bytes));
      }
      benchmark::DoNotOptimize(destination[step % 2].data());
    }
  });
}

void BM_SharedMemoryAgainstMemcpy(benchmark::State& state) {
  const ReadySteps ready(/*global_batch=*/state.range(0), kNumCores);
  const ReadySlots slots(ready);
  const int64_t steps = std::max<int64_t>(1, ScaledWork(int64_t{4} << 30) / ready.bytes());
  const std::string path =
      (std::filesystem::temp_directory_path() / absl::StrCat("systole-shm-", getpid())).string();
  const std::string address = absl::StrCat("unix:", path);
  const absl::StatusOr<std::string> slot_path = SlotSocketPath(address);
  SYSTOLE_CHECK(slot_path.ok());
  const absl::StatusOr<std::unique_ptr<SlotServer>> slot_server =
      SlotServer::Listen(*slot_path, {.max_lent_bytes = int64_t{1} << 30});
  SYSTOLE_CHECK(slot_server.ok());
  ReadySlotService service(slots, **slot_server);
  const RunningServer server(service, address);
  AlignedBuffer destination[2] = {*AlignedBuffer::Create(ready.bytes()),
                                  *AlignedBuffer::Create(ready.bytes())};
  MeasureMemcpy(ready, 2, destination);  // So that its pages are there.
  for (auto _ : state) {
    const std::vector<std::vector<Sample>> samples =
        TakeTurns({[&] { return MeasureFeedClient(server.address, ready, steps); },
                   [&] { return MeasureMemcpy(ready, steps, destination); }});
    ReportRow(state, "of_memcpy",
              {.figure = "same host: ready bf16 batches through shared memory",
               .ceiling = "memcpy of the same bytes",
               .unit = "GB/s",
               .unit_size = 1e9,
               .wanted = 0.80},
              samples[0], samples[1]);
  }
}
BENCHMARK(BM_SharedMemoryAgainstMemcpy)
    ->ArgName("global_batch")
    ->Arg(128)
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

}  // namespace
}  // namespace systole::bench

int main(int argc, char** argv) {
  systole::KeepFreedMemory();
  return systole::bench::RunBenchmarks(argc, argv);
}
