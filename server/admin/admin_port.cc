#include "server/admin/admin_port.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "core/metrics/exposition.h"
#include "core/status/status_macros.h"
#include "core/text/foreign_text.h"
#include "core/text/loopback_host.h"
#include "server/access/call_credentials.h"
#include "server/access/permissions.h"
#include "server/listener/listen_address.h"
#include "server/statusz/status_page.h"
#include "server/traces/slow_steps_page.h"

namespace systole {
namespace {

constexpr char kStarting[] = "starting: the server reads the indexes of its shards\n";

PageAnswer Text(int status, std::string body) {
  return {.status = status, .body = std::move(body)};
}

}  // namespace

struct AdminPort::Page {
  const char* path;
  // What the page shows, in words, for the list at `/`.
  const char* what;
  // The permission's name in the config.
  const char* permission;
  bool (Permissions::*may)() const;
  // One of these two functions makes the page; the other is null.
  PageAnswer (AdminPort::*make)() const = nullptr;
  PageAnswer (AdminPort::*make_for)(const PageRequest& request,
                                    const Permissions& permissions) const = nullptr;
};

const std::vector<AdminPort::Page>& AdminPort::Pages() {
  static const auto& pages = *new std::vector<Page>{
      {"/", "these pages", "health", &Permissions::MaySeeHealth, &AdminPort::List},
      {"/livez", "200 while the process answers", "health", &Permissions::MaySeeHealth,
       &AdminPort::Live},
      {"/readyz", "200 if the server serves; 503 while it starts or drains", "health",
       &Permissions::MaySeeHealth, &AdminPort::Ready},
      {"/metrics", "what the server counts, for Prometheus", "status", &Permissions::MaySeeStatus,
       &AdminPort::Metrics},
      {"/configz", "the config in force, as textproto, without secrets", "status",
       &Permissions::MaySeeStatus, &AdminPort::Config},
      {"/statusz", "the server's state, for people", "status", &Permissions::MaySeeStatus, nullptr,
       &AdminPort::StatusForPeople},
      {"/statusz/events", "what changes on /statusz, as server-sent events", "status",
       &Permissions::MaySeeStatus, nullptr, &AdminPort::StatusEvents},
      {"/tracez", "the slowest steps of the last minutes, with the times of their stages", "status",
       &Permissions::MaySeeStatus, nullptr, &AdminPort::SlowSteps},
      {"/tracez.json", "/tracez as JSON", "status", &Permissions::MaySeeStatus, nullptr,
       &AdminPort::SlowStepsAsJson},
  };
  return pages;
}

absl::StatusOr<std::unique_ptr<AdminPort>> AdminPort::Open(AdminOptions options) {
  SYSTOLE_ASSIGN_OR_RETURN(
      const HostAndPort where,
      HostAndPortOf("--admin", options.listen, "HOST:PORT, such as 127.0.0.1:8471"));
  const bool tls = options.tls.on();
  SYSTOLE_RETURN_IF_ERROR(CheckReach(options.listen, where.host, tls, options.insecure));
  HttpServerOptions http = std::move(options.http);
  options.http.clock = http.clock;  // The times on the pages come from the same clock.
  http.only_loopback_names = IsLoopbackHost(where.host) && !tls;
  if (tls) {
    SYSTOLE_ASSIGN_OR_RETURN(
        http.tls,
        TlsFiles::Open(options.tls, [events = options.events](absl::string_view text, bool good) {
          if (events == nullptr) return;
          events->Add(LogCause::kConnections, good ? LogLevel::kInfo : LogLevel::kError,
                      absl::StrCat("--admin: ", text));
        }));
  }
  SYSTOLE_ASSIGN_OR_RETURN(ListeningSockets sockets, ListenAt("--admin", options.listen, where));
  auto port = absl::WrapUnique(new AdminPort(std::move(options)));
  port->port_ = sockets.port;
  port->address_ = absl::StrCat(where.host, ":", sockets.port);
  SYSTOLE_ASSIGN_OR_RETURN(port->http_,
                           HttpServer::Start(std::move(sockets), std::move(http),
                                             [self = port.get()](const PageRequest& request) {
                                               return self->Answer(request);
                                             }));
  return port;
}

AdminPort::~AdminPort() = default;

void AdminPort::ShowConfig(std::string text) {
  MutexLock lock(mu_);
  config_text_ = std::move(text);
}

PageAnswer AdminPort::Answer(const PageRequest& request) {
  PageAnswer answer = AnswerPage(request);
  MutexLock lock(mu_);
  ++answers_[answer.status];
  return answer;
}

const AdminPort::Page* AdminPort::PageAt(absl::string_view path) {
  for (const Page& page : Pages()) {
    if (path == page.path) return &page;
  }
  return nullptr;
}

PageAnswer AdminPort::AnswerPage(const PageRequest& request) {
  const Page* const found = PageAt(request.path);
  if (found == nullptr) return Text(404, "no such page; / lists the pages\n");
  const absl::StatusOr<Permissions> permissions = CheckMaySee(request, *found);
  if (permissions.ok() && found->make != nullptr) return (this->*found->make)();
  if (permissions.ok()) return (this->*found->make_for)(request, *permissions);
  const absl::Status& status = permissions.status();
  if (options_.events != nullptr) {
    options_.events->Add(
        LogCause::kRefused, LogLevel::kInfo,
        absl::StrCat(found->path, " for ", ForeignName(request.peer),
                     " refused: ", absl::StatusCodeToString(status.code()), ": ", status.message()),
        {.client = request.peer});
  }
  PageAnswer answer =
      Text(absl::IsUnauthenticated(status) ? 401 : 403, absl::StrCat(status.message(), "\n"));
  if (answer.status == 401) answer.headers.emplace_back("WWW-Authenticate", "Bearer");
  return answer;
}

absl::StatusOr<Permissions> AdminPort::CheckMaySee(const PageRequest& request,
                                                   const Page& page) const {
  if (options_.access == nullptr) return Permissions();
  Credentials credentials;
  SYSTOLE_ASSIGN_OR_RETURN(credentials.token,
                           TokenOf(std::vector<absl::string_view>(request.authorization.begin(),
                                                                  request.authorization.end())));
  credentials.certificate_names = request.certificate_names;
  SYSTOLE_ASSIGN_OR_RETURN(Permissions permissions,
                           PermissionsOf(options_.access.get(), std::move(credentials)));
  if ((permissions.*page.may)()) return permissions;
  return NotPermitted(permissions.caller, page.path, page.permission);
}

PageAnswer AdminPort::List() const {
  std::string text;
  for (const Page& page : Pages()) absl::StrAppend(&text, page.path, "  ", page.what, "\n");
  return Text(200, std::move(text));
}

PageAnswer AdminPort::Live() const { return Text(200, "ok\n"); }

PageAnswer AdminPort::Ready() const {
  const Source* const source = source_;
  if (source == nullptr) return Text(503, kStarting);
  if (source->draining()) return Text(503, "draining\n");
  return Text(200, "ready\n");
}

PageAnswer AdminPort::Metrics() const {
  const Source* const source = source_;
  if (source == nullptr) return Text(503, kStarting);
  return {
      .status = 200, .content_type = kExpositionType, .body = ExpositionOf(AllMetrics(*source))};
}

std::vector<MetricFamily> AdminPort::AllMetrics(const Source& source) const {
  std::vector<MetricFamily> families = source.Metrics();
  for (MetricFamily& own : OwnMetrics()) families.push_back(std::move(own));
  return families;
}

void AdminPort::Tick() {
  const Source* const source = source_;
  const absl::Duration now = clock_();
  if (source == nullptr || !history_.Wants(now)) return;
  history_.Add(now, source->Metrics(), source->Streams(Permissions()).streams);
}

ServerView AdminPort::View(const Source& source, const Permissions& permissions) const {
  const absl::Duration now = clock_();
  ServerView view = {.name = source.name(),
                     .up_for = now - opened_at_,
                     .draining = source.draining(),
                     .families = AllMetrics(source),
                     .streams = source.Streams(permissions)};
  history_.Fill(now, view);
  view.no_pictures = options_.no_pictures;
  if (!view.no_pictures.empty()) return view;
  view.pictures = source.Pictures();
  if (view.pictures == nullptr) {
    view.no_pictures = "There are no pictures now. The next slice that a stream sends is shown.";
  } else if (!std::all_of(view.pictures->datasets.begin(), view.pictures->datasets.end(),
                          [&](const std::string& name) { return permissions.MayRead(name); })) {
    view.pictures = nullptr;
    view.no_pictures = "You may see pictures only with the permission to read their dataset.";
  }
  return view;
}

PageAnswer AdminPort::StatusForPeople(const PageRequest&, const Permissions& permissions) const {
  const Source* const source = source_;
  if (source == nullptr) return Text(503, kStarting);
  return {.content_type = "text/html; charset=utf-8",
          .body = StatusPage(View(*source, permissions)),
          .headers = {{"Content-Security-Policy", StatusPagePolicy()}}};
}

PageAnswer AdminPort::StatusEvents(const PageRequest& request, const Permissions&) const {
  if (source_ == nullptr) return Text(503, kStarting);
  if (!request.may_have_events) {
    return Text(503, "too many open pages update themselves; open /statusz without updates\n");
  }
  PageAnswer answer = {.content_type = "text/event-stream; charset=utf-8"};
  answer.next_event = [this, request, shown = int64_t{0},
                       has_ended = false]() mutable -> std::optional<std::string> {
    // The viewer's token may have been withdrawn since the last event.
    const absl::StatusOr<Permissions> viewer = CheckMaySee(request, *PageAt(request.path));
    if (!viewer.ok() || has_ended) return std::nullopt;
    const ServerView view = View(*source_, *viewer);
    has_ended = view.draining;
    const int64_t known =
        std::exchange(shown, view.pictures == nullptr ? 0 : view.pictures->number);
    return StatusEvent(view, known, /*is_last=*/has_ended);
  };
  // The first event is sent at once.
  answer.body = absl::StrCat("retry: 3000\n\n", answer.next_event().value_or(""));
  return answer;
}

PageAnswer AdminPort::Config() const {
  MutexLock lock(mu_);
  return Text(200, config_text_);
}

PageAnswer AdminPort::SlowSteps(const PageRequest&, const Permissions& permissions) const {
  const Source* const source = source_;
  if (source == nullptr) return Text(503, kStarting);
  return {.status = 200,
          .content_type = "text/html; charset=utf-8",
          .body = SlowStepsHtml(source->SlowSteps(permissions))};
}

PageAnswer AdminPort::SlowStepsAsJson(const PageRequest&, const Permissions& permissions) const {
  const Source* const source = source_;
  if (source == nullptr) return Text(503, kStarting);
  return {.status = 200,
          .content_type = "application/json",
          .body = SlowStepsJson(source->SlowSteps(permissions))};
}

std::vector<MetricFamily> AdminPort::OwnMetrics() const {
  MetricFamily answers = {
      .name = "systole_server_admin_answers_total",
      .kind = MetricKind::kCounter,
      .help = "Answers of the admin port, by their status. Malformed requests are not counted."};
  {
    MutexLock lock(mu_);
    for (const auto& [status, count] : answers_) {
      answers.samples.push_back({.labels = {{"status", absl::StrCat(status)}}, .value = count});
    }
  }
  const HttpCounters counters = http_->counters();
  MetricFamily dropped = {
      .name = "systole_server_admin_connections_dropped_total",
      .kind = MetricKind::kCounter,
      .help =
          "Connections to the admin port that got no page. `reason`: refused "
          "(too many at once), displaced (a newer one got its place), late "
          "(request or answer took too long), bad (malformed request, or TLS error)."};
  for (const auto& [reason, count] :
       {std::pair("refused", counters.refused), std::pair("displaced", counters.displaced),
        std::pair("late", counters.late), std::pair("bad", counters.bad)}) {
    dropped.samples.push_back(
        {.labels = {{"reason", reason}}, .value = static_cast<double>(count)});
  }
  return {std::move(answers), std::move(dropped)};
}

}  // namespace systole
