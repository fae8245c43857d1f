// The pages of --admin: whether the server runs and is ready, its metrics, its config, and a page
// for people. The port answers before the server serves, because reading indexes may take
// minutes.
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
  bool insecure = false;  // Whether an address beyond loopback may be without TLS.
  // With client_ca, callers must show a certificate, as on the main port.
  TlsOptions tls;
  // Who may see which page. Null: everybody sees all.
  std::shared_ptr<AccessControl> access;
  // What /configz shows until ShowConfig() is called. It has no secrets.
  std::string config_text;
  // Why the page for people shows no pictures. Empty: it shows them to those who may read the
  // datasets.
  std::string no_pictures;
  // Gets lines about requests that are refused. Null: no log.
  EventLog* events = nullptr;
  // Bounds and times. Open() sets `tls` and `only_loopback_names`.
  HttpServerOptions http = {};
};

class AdminPort {
 public:
  // What the pages show of a server that serves. Its methods are called on the port's thread.
  class Source {
   public:
    virtual ~Source() = default;
    // Which server this is, for people.
    virtual std::string name() const = 0;
    virtual bool draining() const = 0;
    virtual std::vector<MetricFamily> Metrics() const = 0;
    // The streams of those datasets that may be listed with `permissions`.
    virtual StreamSnapshots Streams(const Permissions& permissions) const = 0;
    virtual SlowStepLists SlowSteps(const Permissions& permissions) const = 0;
    // See ServedPictures::Look().
    virtual std::shared_ptr<const PictureSheet> Pictures() const = 0;
  };

  // The port answers at once. /readyz says that the server is starting.
  //   InvalidArgument  no valid address, or one beyond loopback with neither TLS nor `insecure`.
  //   Unavailable      the address is taken or not this machine's.
  // and the errors of TlsFiles::Open().
  static absl::StatusOr<std::unique_ptr<AdminPort>> Open(AdminOptions options);
  // Waits for a page that is being made.
  ~AdminPort();

  // From now on the pages show `source`, which must outlive this port. Call it once.
  void Serve(const Source& source) { source_ = &source; }

  // From now on /configz shows `text`, which has no secrets.
  void ShowConfig(std::string text) ABSL_LOCKS_EXCLUDED(mu_);

  // Keeps a sample of the numbers whose history the page for people shows. Call it about once a
  // second.
  void Tick();

  int port() const { return port_; }
  // The address for clients on this machine.
  const std::string& address() const { return address_; }
  HttpCounters counters() const { return http_->counters(); }

 private:
  struct Page;

  explicit AdminPort(AdminOptions options)
      : options_(std::move(options)),
        clock_(options_.http.clock),
        opened_at_(clock_()),
        config_text_(options_.config_text) {}
  // All pages.
  static const std::vector<Page>& Pages();
  // Null if `path` is no page.
  static const Page* PageAt(absl::string_view path);

  PageAnswer Answer(const PageRequest& request) ABSL_LOCKS_EXCLUDED(mu_);
  PageAnswer AnswerPage(const PageRequest& request);
  // The caller's permissions, if it may see the page.
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
  std::unique_ptr<HttpServer> http_;                    // Last: it calls the members above.
};

}  // namespace systole

#endif  // SYSTOLE_SERVER_ADMIN_ADMIN_PORT_H_
