// Brings into force a config that was read again, while the server serves. A thread of its own
// opens the datasets that were added. ConfigReload takes away the datasets that were removed, and
// says in the log what a running server cannot change.
//
//   Begin(config) -> a thread opens what was added -> Tick() brings it into force, or drops it
//
// Everything that a running server can change comes into force at the same moment. After an error,
// nothing of the config comes into force.
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
  // which its datasets were opened. `access` is the server's access control, or null if the
  // server's config has no `access`. `server` and `events` must outlive this.
  ConfigReload(v1::ServerConfig running, ShardOptions options, Server& server,
               std::shared_ptr<AccessControl> access, EventLog& events);
  // Stops, and waits for the thread.
  ~ConfigReload();
  ConfigReload(const ConfigReload&) = delete;
  ConfigReload& operator=(const ConfigReload&) = delete;

  // Begins to bring `config`, which is complete, into force. If the datasets of an earlier config
  // are still being opened, `config` waits for them. If several configs wait, only the last one
  // counts.
  void Begin(v1::ServerConfig config);

  // Brings into force what has been opened. Call it a few times a second, from the thread that
  // calls Begin() and the server's Tick().
  void Tick();

  // Whether a config of Begin() is being opened, waits, or has been opened and is not in force yet.
  bool busy() const { return opening_ != nullptr; }

  // Stops opening datasets. Returns false if the thread still works after `patience`, most likely
  // because a read hangs. The destructor would then wait for the thread.
  bool Stop(absl::Duration patience);

 private:
  // What the thread and its owner share.
  struct Opening {
    InterruptFlag unwanted;
    Mutex mu;
    CondVar changed;
    std::optional<absl::StatusOr<Catalogue>> opened ABSL_GUARDED_BY(mu);
  };

  void Log(LogLevel level, absl::string_view text);
  // Logs that nothing of a config comes into force, and `why`.
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
