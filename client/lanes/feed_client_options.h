// What a trainer decides about its feed. The defaults are for a feed over a local network. Options
// with a row in feed_option_table.h are also flags of `systole` and keywords in Python.
//
// Thread-compatible value types.
#ifndef SYSTOLE_CLIENT_LANES_FEED_CLIENT_OPTIONS_H_
#define SYSTOLE_CLIENT_LANES_FEED_CLIENT_OPTIONS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "client/lanes/feed_watch.h"
#include "client/servers/server_security.h"
#include "client/step/step.h"
#include "core/log/event_log.h"

namespace systole {

struct FeedClientOptions {
  // At least one address: "HOST:PORT", "unix:PATH", "dns:///NAME:PORT" (all addresses of the name),
  // "file:PATH" (one address a line) or "xds:///NAME". Names are looked up every few seconds, and a
  // file is read again when it changes. An xds:/// name is resolved by gRPC, and counts as one
  // server. All servers must serve the same data. Servers may join and leave while the feed runs:
  // client/servers/server_list.h.
  std::vector<std::string> servers;

  // TLS, certificates, a token.
  ServerSecurity security;

  // Whether batches may come through memory that client and server share. The server must have a
  // "unix:PATH" address on this machine, belong to the same user (or root), and share its memory.
  // Otherwise batches come as bytes. The steps are the same in both cases.
  bool share_memory = true;

  // Which side finishes a tensor, that is, applies its last transforms. The client can do so on two
  // conditions. Before these transforms, the values are whole numbers that fit into uint8. And each
  // transform changes every value by itself, as normalize, gamma and the cast to bfloat16 do. A
  // tensor that the client finishes travels as uint8. This takes half or a quarter of the bytes,
  // but costs some of the trainer's CPU time. The steps are the same in both cases.
  //   auto    the server if its address is unix:PATH, otherwise the client
  //   server  always the server: for trainers that are short of CPU
  //   client  the client; the server only for tensors that come through shared memory
  std::string finish = "auto";

  // The first step wanted, >= 0.
  int64_t first_step = 0;
  // How many steps, or how many epochs, are wanted. Set at most one of the two. If both are 0, the
  // feed goes up to its end. A feed whose spec has 0 epochs has no end.
  int64_t steps = 0;
  int64_t epochs = 0;
  // The cores wanted, core_begin .. core_end - 1. If both are 0, all cores.
  int core_begin = 0;
  int core_end = 0;

  // The most servers that are used at a time. A feed begins with two. While the trainer waits, the
  // feed adds one server after another. It gives a server back that does not make it faster. If the
  // list is long, different clients use different servers, so that the servers share the work. Each
  // further server costs a connection, but no memory for steps.
  int64_t max_servers = 16;

  // Memory for steps that wait to be taken, in bytes. More memory hides longer interruptions.
  // However large the steps are, there is always room for two steps. Steps that are requested twice
  // (hedge_fraction) take room for two more steps at most. The room does not depend on the number
  // of servers.
  int64_t prefetch_bytes = int64_t{256} << 20;
  // The largest step accepted, in bytes, summed over the cores wanted. The server's description of
  // its tensors decides how much the client allocates. This limit protects the client from a
  // mistaken or hostile server.
  int64_t max_step_bytes = int64_t{8} << 30;
  // Where the steps' memory comes from, and how the tensors lie in it.
  StepMemory memory;
  StepPlacement placement = StepPlacement::kCoreMajor;

  // How long Create() or Resume() waits for the first answer of a server. After that, the same
  // limit holds while the trainer waits for the first step and no server is making it.
  absl::Duration connect_timeout = absl::Seconds(10);
  // The feed ends when the trainer has waited this long for a step, and no step at all has arrived
  // in this time. Bytes of an incomplete step do not count, so a server cannot prolong the wait by
  // sending a few bytes at a time. Time in which the trainer does not wait, or its process is
  // stopped, does not count either.
  absl::Duration retry_for = absl::Minutes(10);
  // A server counts as lost if it sends nothing for this long while the client wants a step from
  // it. The time must be longer than a server takes for one step.
  absl::Duration silence_timeout = absl::Seconds(60);
  // A step that is late, and that the trainer waits for, is also requested from another server. At
  // most this part of all steps (0 to 1), plus two, are requested twice. A larger part hides more
  // interruptions, and makes servers do more work. 0: never.
  double hedge_fraction = 0.02;
  // A server that failed is asked again at once. If it fails again, there is a pause before each
  // further attempt. The pause doubles each time, from `backoff` up to `max_backoff`. Each pause is
  // up to a quarter longer, at random.
  absl::Duration backoff = absl::Milliseconds(50);
  absl::Duration max_backoff = absl::Seconds(2);

  // Whether Create() begins to ask for steps, so that the first steps have arrived when the trainer
  // needs them. If false, the first call of Next() or WaitForNext() begins to ask.
  bool start_at_once = true;
  // How often the client reports to the servers that send it steps how long the trainer waits. The
  // request for a stream has such a report, too. A report takes a few dozen bytes at most. A server
  // shows the reports to people, and does nothing else with them.
  absl::Duration report_every = absl::Seconds(10);
  // Called every 50 ms by the thread that waits in Create() or Resume(); may be null. If it returns
  // true, Create() or Resume() returns Cancelled.
  std::function<bool()> interrupted;

  // Accept servers whose content versions differ from each other or from the resume token's. Steps
  // may then differ in a few bits from those of another run. The order of records is the same.
  bool allow_mixed_content = false;

  // The trace that this feed belongs to: a traceparent of W3C Trace Context. Servers log it, and
  // their traces become part of it. Empty: the trace in $TRACEPARENT, if it is set, with
  // $TRACESTATE, if that is set, too. The trace changes nothing about the steps.
  std::string traceparent;

  // Shows what the feed waits for, even while Create() runs. May be null. Several feeds may use the
  // same watch. Feed and caller share its ownership, because either may be destroyed first.
  std::shared_ptr<FeedWatch> watch;

  // Gets lines about servers that fail, come back, join or leave, about late steps and about masked
  // examples. The log writes at most 20 lines of a kind in 30 s, unless its own options say
  // otherwise. May be null. Several feeds may use the same log. Threads of the feed call the log's
  // sink. So the sink must not wait for the feed, or for a thread that waits for the feed.
  std::shared_ptr<EventLog> log;
};

}  // namespace systole

#endif  // SYSTOLE_CLIENT_LANES_FEED_CLIENT_OPTIONS_H_
