// The admin port (--admin). Its pages show whether the server runs and is ready, its metrics, its
// config, its slowest steps, and its state for people (/statusz). The port answers before the
// server serves feeds, because reading the shards' indexes may take minutes.
//
// Thread-safe.
#ifndef SYSTOLE_SERVER_ADMIN_ADMIN_PORT_H_
#define SYSTOLE_SERVER_ADMIN_ADMIN_PORT_H_

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/concurrency/monotonic_clock.h"
#include "core/concurrency/mutex.h"
#include "core/log/event_log.h"
#include "core/metrics/metric_family.h"
#include "server/access/access_control.h"
#include "server/access/permissions.h"
#include "server/admin/http_server.h"
#include "server/listener/tls_files.h"
#include "server/statusz/server_view.h"
#include "server/statusz/status_history.h"
#include "server/streams/stream_snapshot.h"
#include "server/traces/slow_steps.h"

namespace systole {

struct AdminOptions {
  std::string listen;     // HOST:PORT.
  bool insecure = false;  // Whether the port may listen beyond loopback without TLS.
  // If `client_ca` is set, callers must show a certificate, as on the main port.
  TlsOptions tls;
  // Who may see which page. Null: everybody may see every page.
  std::shared_ptr<AccessControl> access;
  // What /configz shows until ShowConfig() is called. Must not contain secrets.
  std::string config_text;
  // Why /statusz shows no pictures. Empty: it shows pictures to people who may read the datasets
  // that the pictures come from.
  std::string no_pictures;
  // Gets a line for each request that is not permitted, and for changes of the TLS files. May be
  // null.
  EventLog* events = nullptr;
  // Bounds, time limits and the clock. Open() sets `tls` and `only_loopback_names`.
  HttpServerOptions http = {};
};

class AdminPort {
 public:
  // A running server, from which the pages get what they show. The port's thread calls the methods.
  // Tick() calls some of them, too, on its caller's thread.
  class Source {
   public:
    virtual ~Source() = default;
    // The server's name for people.
    virtual std::string name() const = 0;
    virtual bool draining() const = 0;
    virtual std::vector<MetricFamily> Metrics() const = 0;
    // The streams of those datasets that may be listed with `permissions`.
    virtual StreamSnapshots Streams(const Permissions& permissions) const = 0;
    virtual SlowStepLists SlowSteps(const Permissions& permissions) const = 0;
    // See ServedPictures::Look().
    virtual std::shared_ptr<const PictureSheet> Pictures() const = 0;
  };

  // The port answers at once. Until Serve() is called, /readyz says that the server is starting.
  //   InvalidArgument  `listen` is not a valid address, or it is beyond loopback and there is
  //                    neither TLS nor `insecure`.
  //   Unavailable      the address is in use, or is not an address of this machine.
  //   Also the errors of TlsFiles::Open().
  static absl::StatusOr<std::unique_ptr<AdminPort>> Open(AdminOptions options);
  // Waits for a page that is being made.
  ~AdminPort();

  // From now on the pages show `source`, which must outlive this port. Call it once.
  void Serve(const Source& source) { source_ = &source; }

  // From now on /configz shows `text`, which must not contain secrets.
  void ShowConfig(std::string text) ABSL_LOCKS_EXCLUDED(mu_);

  // Adds the present numbers to the history that /statusz shows, once in kSampleInterval. Call it
  // about once a second.
  void Tick();

  int port() const { return port_; }
  // HOST:PORT for clients on this machine. HOST is as in `listen`.
  const std::string& address() const { return address_; }
  HttpCounters counters() const { return http_->counters(); }

 private:
  struct Page;

  explicit AdminPort(AdminOptions options)
      : options_(std::move(options)),
        clock_(options_.http.clock),
        opened_at_(clock_()),
        config_text_(options_.config_text) {}
  static const std::vector<Page>& Pages();
  // The page with this path; null if there is none.
  static const Page* PageAt(absl::string_view path);

  PageAnswer Answer(const PageRequest& request) ABSL_LOCKS_EXCLUDED(mu_);
  PageAnswer AnswerPage(const PageRequest& request);
  // The caller's permissions, if the caller may see the page; else an error.
  absl::StatusOr<Permissions> CheckMaySee(const PageRequest& request, const Page& page) const;
  PageAnswer List() const;
  PageAnswer Live() const;
  PageAnswer Ready() const;
  PageAnswer Metrics() const ABSL_LOCKS_EXCLUDED(mu_);
  PageAnswer Config() const ABSL_LOCKS_EXCLUDED(mu_);
  PageAnswer SlowSteps(const PageRequest& request, const Permissions& permissions) const;
  PageAnswer SlowStepsAsJson(const PageRequest& request, const Permissions& permissions) const;
  PageAnswer StatusForPeople(const PageRequest& request, const Permissions& permissions) const;
  PageAnswer StatusEvents(const PageRequest& request, const Permissions& permissions) const;
  ServerView View(const Source& source, const Permissions& permissions) const;
  std::vector<MetricFamily> AllMetrics(const Source& source) const ABSL_LOCKS_EXCLUDED(mu_);
  // Metrics of this port itself.
  std::vector<MetricFamily> OwnMetrics() const ABSL_LOCKS_EXCLUDED(mu_);

  const AdminOptions options_;
  const MonotonicClock clock_;
  const absl::Duration opened_at_;
  std::string address_;
  int port_ = 0;
  std::atomic<const Source*> source_ = nullptr;
  StatusHistory history_;
  mutable Mutex mu_;
  std::string config_text_ ABSL_GUARDED_BY(mu_);
  std::map<int, double> answers_ ABSL_GUARDED_BY(mu_);  // By status.
  // Comes last, because its thread uses the members above.
  std::unique_ptr<HttpServer> http_;
};

}  // namespace systole

#endif  // SYSTOLE_SERVER_ADMIN_ADMIN_PORT_H_
