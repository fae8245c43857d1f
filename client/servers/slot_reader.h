// The client's side of shared memory: copies the slices of one stream out of a server's slots.
//
// The server writes a slice into a slot, a piece of memory that client and server have mapped, and
// sends only the slot's number. The reader copies the slice into the step's own memory and gives
// the slot back at once. So the server cannot change the trainer's step afterwards.
//
// Single-thread, but the thread may change: gRPC runs one stream's callbacks one at a time.
#ifndef SYSTOLE_CLIENT_SERVERS_SLOT_READER_H_
#define SYSTOLE_CLIENT_SERVERS_SLOT_READER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/memory/sealed_memory.h"
#include "proto/slots/slot_socket.h"

namespace systole {

class SlotReader {
 public:
  // Connects to the server that listens on `path`, and sends it the hello. Errors of
  // SlotSocket::Connect().
  static absl::StatusOr<std::unique_ptr<SlotReader>> Connect(const std::string& path);

  // The id for StreamStepsRequest.slot_session, by which the server finds this connection.
  const std::string& session() const { return session_; }

  // Calls `copy` on the slice in `slot`, `slot_bytes` long, and gives the slot back.
  //   Unavailable        the server is gone; what was copied may be damaged.
  //   ResourceExhausted  this process lacks descriptors or memory, or the slot cannot be given back
  //                      because the server does not read the socket.
  //   Internal           the server offered memory that cannot be trusted (size, seals), or did not
  //                      offer this slot. The error names the field of the server's message.
  //                      Nothing was copied.
  // After an error the reader must not be used again.
  absl::Status CopyOut(uint64_t slot, int64_t slot_bytes,
                       absl::FunctionRef<void(const uint8_t* slice)> copy);

 private:
  SlotReader(SlotSocket socket, std::string session)
      : socket_(std::move(socket)), session_(std::move(session)) {}
  // Maps the slots that the server has offered since the last call, `slot_bytes` each. Unmaps the
  // slots that the server has retired.
  absl::Status TakeOffers(int64_t slot_bytes);
  absl::Status TakeOffer(const SlotSocket::Packet& packet, int64_t slot_bytes);

  const SlotSocket socket_;
  const std::string session_;
  std::map<uint64_t, SealedView> slots_;
};

}  // namespace systole

#endif  // SYSTOLE_CLIENT_SERVERS_SLOT_READER_H_
