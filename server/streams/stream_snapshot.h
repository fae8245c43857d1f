// A running stream as it is now, for people. All texts are fit to print. RunningStreams makes the
// snapshots.
//
// Thread-compatible value type.
#ifndef SYSTOLE_SERVER_STREAMS_STREAM_SNAPSHOT_H_
#define SYSTOLE_SERVER_STREAMS_STREAM_SNAPSHOT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "proto/framing/trainer_report.h"

namespace systole {

// The most streams that are shown.
inline constexpr size_t kMaxStreamsShown = 256;

struct StreamSnapshot {
  int64_t number = 0;  // As the log names it.
  // The client as the log names it: "ipv4:192.0.2.1:4711" or "identity 'team' at ipv4:..".
  std::string client;
  std::string dataset;  // Several are separated by commas.
  uint64_t feed = 0;    // The feed's fingerprint, as the log has it.
  absl::Duration open;  // How long the stream has been open.
  int64_t steps = 0;    // Sent since the stream opened.
  int64_t payload_bytes = 0;
  TrainerReport trainer;  // What the client reports.
  std::string output;     // The name of `trainer.output`. Empty: not known.
};

struct StreamSnapshots {
  std::vector<StreamSnapshot> streams;
  size_t left_out = 0;  // Streams beyond kMaxStreamsShown.
};

}  // namespace systole

#endif  // SYSTOLE_SERVER_STREAMS_STREAM_SNAPSHOT_H_
