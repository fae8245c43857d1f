// The client's side of shared memory: takes the slices of one stream out of a server's slots.
//
// The server writes a slice into memory that both have mapped, and sends only where it lies. It is
// copied out once, into the step's own memory, and the slot is given back at once: what the trainer
// holds is its own, whatever the server does afterwards.
//
// Single-thread, but the thread may change: one stream's callbacks.
#ifndef SYSTOLE_CLIENT_FEED_SLOT_READER_H_
#define SYSTOLE_CLIENT_FEED_SLOT_READER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/memory/sealed_memory.h"
#include "proto/slots/slot_socket.h"

namespace systole {

class SlotReader {
 public:
  // Connects to the server that listens on `path` and says hello. Errors of SlotSocket::Connect().
  static absl::StatusOr<std::unique_ptr<SlotReader>> Connect(const std::string& path);

  // What StreamStepsRequest.slot_session says, for the server to find this connection.
  const std::string& session() const { return session_; }

  // Copies the slice in `slot`, all of destination.size() bytes, and gives the slot back.
  //   Unavailable        the server is gone; what was copied may be damaged.
  //   ResourceExhausted  this process lacks descriptors or memory, or the server hears nothing now.
  //   Internal           the server offered what cannot be trusted (size, seals), or did not offer
  //                      this slot; names the field. Nothing was copied.
  // After an error the reader is of no use any more.
  absl::Status CopyOut(uint64_t slot, absl::Span<uint8_t> destination);

 private:
  SlotReader(SlotSocket socket, std::string session)
      : socket_(std::move(socket)), session_(std::move(session)) {}
  // Maps what the server has offered since, each of `slot_bytes`, and unmaps what it has retired.
  absl::Status TakeOffers(int64_t slot_bytes);
  absl::Status TakeOffer(const SlotSocket::Packet& packet, int64_t slot_bytes);

  const SlotSocket socket_;
  const std::string session_;
  std::map<uint64_t, SealedView> slots_;
};

}  // namespace systole

#endif  // SYSTOLE_CLIENT_FEED_SLOT_READER_H_
