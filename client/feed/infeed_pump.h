// Moves a feed's steps into the queues in front of the cores, on a thread of its own.
//
//   FeedClient::Next() -> step -> slice of core a -> queue 0
//                              -> slice of core b -> queue 1 ..
//
// The slices of a step share the step's memory. The client gets the memory back when the last slice
// is dropped.
//
// Thread-compatible, except Metrics(), which any thread may call. Borrows the client and the
// queues. Nothing else may use the client, except for Cancel(), stats() and Metrics().
#ifndef SYSTOLE_CLIENT_FEED_INFEED_PUMP_H_
#define SYSTOLE_CLIENT_FEED_INFEED_PUMP_H_

#include <memory>
#include <vector>

#include "client/feed/feed_client.h"
#include "client/infeed/infeed_queue.h"
#include "core/concurrency/worker_pool.h"
#include "core/metrics/metric_family.h"

namespace systole {

class InfeedPump {
 public:
  // Starts the thread. queues[i] gets the slices of core client.core_begin() + i. When the feed
  // ends, the pump closes every queue. After an error of the feed, the pump closes them with that
  // error. If a queue is cancelled, the pump stops and cancels the other queues. REQUIRES: as many
  // queues as the client has cores.
  InfeedPump(FeedClient& client, std::vector<InfeedQueue*> queues);
  // Cancels the client and the queues (steps still in the queues are dropped) and waits for the
  // thread.
  ~InfeedPump();
  InfeedPump(const InfeedPump&) = delete;
  InfeedPump& operator=(const InfeedPump&) = delete;

  // The client's metrics, and how many steps are ready for the cores. The waits in the client's
  // metrics are those of this pump. The pump may wait for a step while the queues still have steps
  // for the cores.
  std::vector<MetricFamily> Metrics() const;

 private:
  void Run();

  FeedClient& client_;
  const std::vector<InfeedQueue*> queues_;
  WorkerPool thread_;  // Last: the thread uses the members above.
};

}  // namespace systole

#endif  // SYSTOLE_CLIENT_FEED_INFEED_PUMP_H_
