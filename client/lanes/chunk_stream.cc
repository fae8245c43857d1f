#include "client/lanes/chunk_stream.h"

#include <utility>

#include "grpcpp/generic/generic_stub.h"
#include "proto/framing/status_bridge.h"

namespace systole {
namespace {

constexpr char kMethod[] = "/systole.v1.Systole/StreamSteps";

}  // namespace

ChunkStream::ChunkStream(v1::StreamStepsRequest request, int lane, ChunkListener& listener)
    : lane_(lane), listener_(listener), request_(std::move(request)) {}

void ChunkStream::Start(ServerLink& link) {
  // The slots are connected before the request is sent, so that the server finds their connection
  // when it reads the request.
  slots_ = link.OpenSlots();
  if (slots_ != nullptr) {
    request_.set_slot_session(slots_->session());
    request_.clear_compact();
  }
  guarded_request_ = EncodeGuarded(request_);
  context_.AddMetadata(kMessageChecksumKey, guarded_request_.checksum);
  link.AddToken(context_);
  link.AddTrace(context_);
  metered_.emplace(link.meter(), kStreamAheadBytes);
  // In this call only the server streams. The generic stub has only calls that stream in both
  // directions, but on the wire such a call looks the same if the client sends one message.
  grpc::GenericStub stub(link.channel());
  stub.PrepareBidiStreamingCall(&context_, kMethod, grpc::StubOptions(), this);
  // Read() starts reads outside of gRPC's callbacks. For such reads gRPC needs a hold: the call
  // does not end before the hold is removed.
  AddHold();
  StartWriteLast(&guarded_request_.bytes, grpc::WriteOptions());
  StartRead(&message_);
  StartCall();
}

void ChunkStream::Cancel(bool paused) {
  context_.TryCancel();
  if (paused) RemoveHold();
}

void ChunkStream::OnReadDone(bool ok) {
  if (!ok) {
    RemoveHold();
    return;
  }
  metered_->Took(static_cast<int64_t>(message_.Length()));
  ReadVerdict verdict;
  {
    const absl::StatusOr<ReceivedChunk> chunk = ReceivedChunk::Parse(message_);
    message_.Clear();
    verdict = listener_.OnChunk(lane_, chunk, slots_.get());
  }
  // With kPause another thread may have called Read() or Cancel() by now, so this object is not
  // touched any more.
  if (verdict == ReadVerdict::kRead) StartRead(&message_);
  if (verdict == ReadVerdict::kStop) Cancel(/*paused=*/true);
}

void ChunkStream::OnDone(const grpc::Status& status) {
  listener_.OnStreamEnd(
      lane_, {.status = metered_->End(FromGrpcStatus(status)), .pushback = PushbackOf(context_)});
}

}  // namespace systole
