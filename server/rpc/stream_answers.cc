#include "server/rpc/stream_answers.h"

#include <cstdint>

#include "absl/time/time.h"
#include "proto/framing/trainer_report.h"

namespace systole {

void AddStreams(const StreamSnapshots& snapshots, v1::ServerStatusResponse& response) {
  for (const StreamSnapshot& snapshot : snapshots.streams) {
    v1::StreamStatus& stream = *response.add_streams();
    stream.set_stream(snapshot.number);
    stream.set_client(snapshot.client);
    stream.set_dataset(snapshot.dataset);
    stream.set_feed(snapshot.feed);
    stream.set_seconds(absl::ToDoubleSeconds(snapshot.open));
    stream.set_steps(snapshot.steps);
    stream.set_payload_bytes(snapshot.payload_bytes);
    SetReport(snapshot.trainer, *stream.mutable_trainer());
    stream.set_output(snapshot.output);
  }
  response.set_streams_left_out(static_cast<int32_t>(snapshots.left_out));
}

}  // namespace systole
