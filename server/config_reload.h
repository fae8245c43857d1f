// Brings a changed config into force while the server serves:
//   1. Begin(config) starts a task on ConfigReload's own thread. The task opens the datasets that
//      were added, and tries again to open the datasets that the server has refused so far.
//   2. When the task has ended, Tick() adds the opened datasets, removes the datasets that the
//      config no longer has, and brings changed access rules into force, all at the same moment.
//      Changes that a running server cannot make have no effect. Tick() logs them.
// After an error, nothing of the config comes into force.
//
// Thread-compatible.
#ifndef SYSTOLE_SERVER_CONFIG_RELOAD_H_
#define SYSTOLE_SERVER_CONFIG_RELOAD_H_

#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/concurrency/mutex.h"
#include "core/concurrency/worker_pool.h"
#include "core/interrupt/interrupt.h"
#include "core/log/event_log.h"
#include "core/record/source/shard_format.h"
#include "server/access/access_control.h"
#include "server/config/config_change.h"
#include "server/rpc/catalogue.h"
#include "server/server.h"
#include "systole/v1/config.pb.h"

namespace systole {

class ConfigReload {
 public:
  // `running` is the complete config with which `server` was started. `options` are those with
  // which the server's datasets were opened. `access` is the server's access control, or null if
  // `running` has no `access`. `server` and `events` must outlive this object.
  ConfigReload(v1::ServerConfig running, ShardOptions options, Server& server,
               std::shared_ptr<AccessControl> access, EventLog& events);
  // Stops opening datasets, and waits for the thread.
  ~ConfigReload();
  ConfigReload(const ConfigReload&) = delete;
  ConfigReload& operator=(const ConfigReload&) = delete;

  // Begins to bring `config` into force. REQUIRES: `config` is complete (CompleteConfig()). While
  // busy(), `config` waits for its turn, and replaces a config that waits already.
  void Begin(v1::ServerConfig config);

  // Brings the config of Begin() into force if its datasets have been opened. Then begins with the
  // config that waits, if there is one. Call it a few times a second, on the thread that calls
  // Begin() and the server's Tick().
  void Tick();

  // Whether a config that was passed to Begin() is neither in force nor refused yet.
  bool busy() const { return opening_ != nullptr; }

  // Stops opening datasets, and waits at most `patience` until the thread has stopped. False: the
  // thread still works, most likely because a read hangs. The destructor would wait for this read.
  bool Stop(absl::Duration patience);

 private:
  // What ConfigReload and its thread share while one config's datasets are opened.
  struct Opening {
    InterruptFlag unwanted;
    Mutex mu;
    CondVar changed;
    std::optional<absl::StatusOr<Catalogue>> opened ABSL_GUARDED_BY(mu);
  };

  void Log(LogLevel level, absl::string_view text);
  // Logs that nothing of the new config comes into force, and `why`.
  void Refuse(absl::string_view why);
  void LogWhatStays(const ConfigChange& change);
  // Brings next_ into force, with the datasets `added`.
  absl::Status Apply(const Catalogue& added);

  v1::ServerConfig running_;
  const ShardOptions options_;
  Server& server_;
  const std::shared_ptr<AccessControl> access_;
  EventLog& events_;
  v1::ServerConfig next_;
  ConfigChange change_;                      // From running_ to next_.
  std::optional<v1::ServerConfig> waiting_;  // Is opened after next_.
  std::shared_ptr<Opening> opening_;         // Null: no config is being opened.
  std::unique_ptr<WorkerPool> thread_;       // Null until something has to be opened.
};

}  // namespace systole

#endif  // SYSTOLE_SERVER_CONFIG_RELOAD_H_
