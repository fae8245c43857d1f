#include "bench/ready_slots.h"

#include <cstring>
#include <functional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "core/concurrency/mutex.h"
#include "core/memory/aligned_buffer.h"
#include "core/status/check.h"
#include "proto/framing/chunk.h"
#include "proto/slots/slot_socket.h"
#include "server/slots/slot_server.h"

namespace systole::bench {
namespace {

// The slices of two steps, in slots (shared memory) that are lent to clients again and again.
class ReadySlots {
 public:
  explicit ReadySlots(const ReadySteps& ready) : ready_(ready) {
    for (int64_t step = 0; step < 2; ++step) {
      for (int core = 0; core < ready.num_cores; ++core) {
        absl::StatusOr<AlignedBuffer> slot =
            AlignedBuffer::CreateSealed(ready.layout.slice_bytes());
        SYSTOLE_CHECK(slot.ok());
        std::memcpy(slot->data(), ready.slice(step, core), static_cast<size_t>(slot->size()));
        slots_.push_back(*std::move(slot));
      }
    }
  }
  const ReadySteps& ready() const { return ready_; }
  const std::shared_ptr<const SealedMemory>& slot(int64_t step, int core) const {
    return slots_[static_cast<size_t>(step % 2 * ready_.num_cores + core)].sealed();
  }

 private:
  const ReadySteps& ready_;
  std::vector<AlignedBuffer> slots_;
};

// Sends the steps that a request asks for, out of the slots. Uses the session and the window of the
// real server. It sends the next slice once two conditions are met: the previous slice is written;
// and fewer than two slices are lent, or the lent slices and the next slice have at most
// kWindowBytes together.
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
  // The state that changes when the client gives a slot back. Every lent slot keeps it alive, so it
  // may outlive the writer.
  struct Flow {
    Mutex mu;
    SlotWriter* writer = nullptr;  // Null once the stream has finished.
    bool writing = true;
    int64_t lent = 0;  // In bytes.
  };
  // Calls `happened`, which notes an event in `flow`. Then calls the writer's Next() if the writer
  // can write.
  static void Advance(Flow& flow, const std::function<void(Flow&)>& happened) {
    // Declared before `lock`, so that it is dropped without the lock: dropping it may lock
    // `flow.mu`.
    std::shared_ptr<const void> lent;
    MutexLock lock(flow.mu);
    happened(flow);
    if (flow.writer != nullptr && !flow.writing) lent = flow.writer->Next();
  }
  // Lends and sends the next slice if the window allows it, or ends the stream after the last step.
  // Returns a reference to the slot that was lent, or null if none was lent. If the client has
  // given the slot back already, this reference is the last one, and the caller gives the slot back
  // by dropping the reference.
  std::shared_ptr<const void> Next() {
    if (step_ == end_) {
      flow_->writer = nullptr;
      Finish(grpc::Status::OK);
      return nullptr;
    }
    const int64_t slice_bytes = slots_.ready().layout.slice_bytes();
    // As in the engine, two slices may be lent, however large they are.
    if (flow_->lent >= 2 * slice_bytes && flow_->lent > kWindowBytes - slice_bytes) return nullptr;
    const std::shared_ptr<const SealedMemory>& slot = slots_.slot(step_, core_);
    std::shared_ptr<const void> owner(slot.get(), [flow = flow_, slice_bytes](const void*) {
      Advance(*flow, [slice_bytes](Flow& f) { f.lent -= slice_bytes; });
    });
    flow_->lent += slice_bytes;
    if (const v1::NotShared why = session_->Lend(slot, owner); why != v1::NO_REASON) {
      // The client is gone, and its stream is about to end. If lending fails for another reason,
      // the real server sends the slice without shared memory. This benchmark does not measure
      // that.
      SYSTOLE_CHECK(why == v1::SESSION_OVER);
      step_ = end_;
      Next();
      return owner;
    }
    flow_->writing = true;
    message_ = EncodeChunk(
        {.step = step_, .core = core_, .slot = slot->id(), .slot_bytes = slice_bytes}, {}, nullptr);
    core_ = (core_ + 1) % slots_.ready().num_cores;
    if (core_ == 0) ++step_;
    StartWrite(&message_);
    return owner;
  }

  static constexpr int64_t kWindowBytes = int64_t{16} << 20;  // As in the server.
  const ReadySlots& slots_;
  const std::shared_ptr<SlotSession> session_;
  const std::shared_ptr<Flow> flow_;
  int64_t step_;
  const int64_t end_;
  int core_ = 0;
  grpc::ByteBuffer message_;
};

std::unique_ptr<SlotServer> ListenForSlots(const std::string& address) {
  const absl::StatusOr<std::string> path = SlotSocketPath(address);
  SYSTOLE_CHECK(path.ok());
  absl::StatusOr<std::unique_ptr<SlotServer>> server =
      SlotServer::Listen(*path, {.max_lent_bytes = int64_t{1} << 30});
  SYSTOLE_CHECK(server.ok());
  return *std::move(server);
}

}  // namespace

class RunningSlotServer::Service final : public ReadyService {
 public:
  Service(const ReadySteps& ready, const std::string& address)
      : ReadyService(ready), slots_(ready), slot_server_(ListenForSlots(address)) {}

 private:
  grpc::ServerWriteReactor<grpc::ByteBuffer>* Stream(
      const v1::StreamStepsRequest& request) override {
    std::shared_ptr<SlotSession> session = slot_server_->Claim(request.slot_session()).session;
    SYSTOLE_CHECK(session != nullptr);
    return new SlotWriter(slots_, request, std::move(session));
  }

  const ReadySlots slots_;
  const std::unique_ptr<SlotServer> slot_server_;
};

RunningSlotServer::RunningSlotServer(const ReadySteps& ready, const std::string& address)
    : service_(std::make_unique<Service>(ready, address)), server_(*service_, address) {}

RunningSlotServer::~RunningSlotServer() = default;

}  // namespace systole::bench
