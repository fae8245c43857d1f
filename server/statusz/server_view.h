// What a server's page shows: the server at one moment. The numbers are the families that
// `/metrics` shows, so the page and the metrics cannot differ.
//
// Thread-compatible value types.
#ifndef SYSTOLE_SERVER_STATUSZ_SERVER_VIEW_H_
#define SYSTOLE_SERVER_STATUSZ_SERVER_VIEW_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "core/metrics/metric_family.h"
#include "server/streams/stream_snapshot.h"

namespace systole {

// Pictures of what one stream sent.
struct PictureSheet {
  struct Picture {
    std::string jpeg;
    int width = 0;
    int height = 0;
    int64_t slot = 0;  // The example's place in the core's part of the step.
  };
  int64_t number = 0;  // Differs from sheet to sheet.
  // The sheet may show examples of all these datasets, so only callers who may read all of them may
  // see it.
  std::vector<std::string> datasets;
  int64_t step = 0;
  int core = 0;
  // How values became pixels or, if there is no picture, why there is none.
  std::string how;
  std::vector<Picture> pictures;
};

// The numbers whose history the page shows, at one moment.
struct HistorySample {
  absl::Duration at;
  double payload_bytes = 0;
  double steps = 0;
  std::optional<double> wait_ratio;
};

struct ServerView {
  std::string name;
  absl::Duration up_for;
  bool draining = false;
  std::vector<MetricFamily> families;
  StreamSnapshots streams;
  // The streams as they were some seconds ago: the rates of `streams` cover the time since then.
  std::vector<StreamSnapshot> streams_before;
  std::vector<HistorySample> history;  // Oldest first; the last one is now.
  std::shared_ptr<const PictureSheet> pictures;
  std::string no_pictures;  // Why `pictures` is null.
};

}  // namespace systole

#endif  // SYSTOLE_SERVER_STATUSZ_SERVER_VIEW_H_
