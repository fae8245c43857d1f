#include "server/admin/admin_port.h"

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/access_token/token_file.h"
#include "core/textproto/message_text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/metrics/exposition_parser.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/folders.h"
#include "tests/server/admin/http_client.h"
#include "tests/status_matchers.h"
#include "tests/wait_until.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class FakeSource final : public AdminPort::Source {
 public:
  bool draining() const override { return is_draining; }
  std::vector<MetricFamily> Metrics() const override {
    return {{.name = "classified_total",
             .kind = MetricKind::kCounter,
             .help = "Counts.",
             .samples = {{.value = 1}}}};
  }
  SlowStepLists SlowSteps(const Permissions& permissions) const override {
    if (!permissions.MayList("classified")) return {};
    SlowStep step;
    step.dataset = "classified<";
    return {.made = {step}, .sent = {}};
  }
  std::string name() const override { return "classified:8470"; }
  StreamSnapshots Streams(const Permissions& permissions) const override {
    if (!permissions.MayList("classified")) return {};
    return {.streams = {{.number = 1, .client = "ipv4:192.0.2.1:1", .dataset = "classified"}}};
  }
  std::shared_ptr<const PictureSheet> Pictures() const override {
    if (!has_pictures) return nullptr;
    PictureSheet sheet = {.number = 1, .datasets = {"classified"}, .how = "as they are"};
    sheet.pictures = {{.jpeg = "jpeg", .width = 4, .height = 4}};
    return std::make_shared<const PictureSheet>(sheet);
  }
  std::atomic<bool> is_draining = false;
  std::atomic<bool> has_pictures = false;
};

class AdminPortTest : public testing::Test {
 protected:
  void SetUp() override { port_ = nullptr; }
  void Open(AdminOptions options) {
    if (options.listen.empty()) options.listen = "127.0.0.1:0";
    options.config_text = "datasets { name: \"classified\" }\n";
    options.events = &events_;
    absl::StatusOr<std::unique_ptr<AdminPort>> port = AdminPort::Open(std::move(options));
    ASSERT_THAT(port, IsOk());
    port_ = *std::move(port);
  }
  void OpenWith(const std::string& access) {
    v1::AccessConfig config;
    ASSERT_THAT(ParseTextproto(access, "access", config), IsOk());
    if (!config.token_file().empty()) config.set_token_file(folder_ / "tokens");
    absl::StatusOr<std::shared_ptr<AccessControl>> control =
        AccessControl::Create(config, {"classified"});
    ASSERT_THAT(control, IsOk());
    AdminOptions options;
    options.access = *std::move(control);
    Open(std::move(options));
    port_->Serve(source_);
  }
  void MakeCertificates() {
    const std::string command = absl::StrCat(SourceFolder(), "/deploy/make_certificates.sh ",
                                             certificates_.path(), " 2>/dev/null");
    ASSERT_EQ(std::system(command.c_str()), 0);
  }
  TlsOptions ServerTls(bool verify_clients) const {
    return {.certificate = certificates_ / "server.pem",
            .key = certificates_ / "server.key",
            .client_ca = verify_clients ? certificates_ / "ca.pem" : ""};
  }
  TestTls ClientTls(bool certificate) const {
    if (!certificate) return {.ca = certificates_ / "ca.pem"};
    return {.ca = certificates_ / "ca.pem",
            .certificate = certificates_ / "client.pem",
            .key = certificates_ / "client.key"};
  }
  int StatusOf(const std::string& path, const std::string& headers = "") const {
    return HttpGet(port_->port(), path, headers).status;
  }
  static std::string Bearer(const std::string& token) {
    return absl::StrCat("Authorization: Bearer ", token, "\r\n");
  }

  const TempFolder folder_;
  const TempFolder certificates_;
  std::string log_;
  EventLog events_{
      [this](LogLevel, const std::string& line) { absl::StrAppend(&log_, line, "\n"); },
      {.least = LogLevel::kDebug, .max_lines = 1000}};
  FakeSource source_;
  std::unique_ptr<AdminPort> port_;
};

constexpr const char* kAllPages[] = {"/",        "/livez",  "/readyz",      "/metrics",
                                     "/configz", "/tracez", "/tracez.json", "/statusz"};

TEST_F(AdminPortTest, ThePortIsReadyOnlyWhileTheServerServes) {
  Open({});
  EXPECT_EQ(StatusOf("/livez"), 200);
  EXPECT_EQ(StatusOf("/readyz"), 503);
  EXPECT_THAT(HttpGet(port_->port(), "/readyz").body, HasSubstr("starting"));
  EXPECT_EQ(StatusOf("/metrics"), 503);
  EXPECT_EQ(StatusOf("/configz"), 200);
  port_->Serve(source_);
  EXPECT_EQ(StatusOf("/readyz"), 200);
  source_.is_draining = true;
  EXPECT_EQ(StatusOf("/readyz"), 503);
  EXPECT_THAT(HttpGet(port_->port(), "/readyz").body, HasSubstr("draining"));
  EXPECT_EQ(StatusOf("/livez"), 200);
  EXPECT_EQ(StatusOf("/metrics"), 200);
}

TEST_F(AdminPortTest, TheFirstPageListsAllPages) {
  Open({});
  const std::string list = HttpGet(port_->port(), "/").body;
  for (const char* path : kAllPages) EXPECT_THAT(list, HasSubstr(absl::StrCat(path, "  ")));
  for (const char* path : {"/metrics/", "//", "/Metrics", "/x", "/metrics%00", "/../metrics"}) {
    EXPECT_EQ(StatusOf(path), 404) << path;
  }
  EXPECT_EQ(StatusOf("/metrics?name=x"), 503);
}

TEST_F(AdminPortTest, SlowStepsAreServedAsHtmlAndAsJson) {
  Open({});
  EXPECT_EQ(StatusOf("/tracez"), 503);
  EXPECT_EQ(StatusOf("/tracez.json"), 503);
  port_->Serve(source_);
  const TestHttpAnswer page = HttpGet(port_->port(), "/tracez");
  EXPECT_THAT(page.head, HasSubstr("Content-Type: text/html; charset=utf-8"));
  EXPECT_THAT(page.body, HasSubstr("classified&lt;"));
  const TestHttpAnswer json = HttpGet(port_->port(), "/tracez.json");
  EXPECT_THAT(json.head, HasSubstr("Content-Type: application/json"));
  EXPECT_THAT(json.body, HasSubstr("\"dataset\":\"classified<\""));
}

TEST_F(AdminPortTest, PrometheusMetricsIncludeThoseOfTheServerAndThePort) {
  Open({});
  port_->Serve(source_);
  EXPECT_EQ(StatusOf("/nothing"), 404);
  const TestHttpAnswer answer = HttpGet(port_->port(), "/metrics");
  EXPECT_THAT(answer.head, HasSubstr("Content-Type: text/plain; version=0.0.4"));
  const absl::StatusOr<Exposition> metrics = ParseExposition(answer.body);
  ASSERT_THAT(metrics, IsOk());
  EXPECT_EQ(metrics->series.at("classified_total"), 1);
  EXPECT_EQ(metrics->series.at("systole_server_admin_answers_total{status=\"404\"}"), 1);
  EXPECT_EQ(metrics->series.at("systole_server_admin_connections_dropped_total{reason=\"bad\"}"),
            0);
}

TEST_F(AdminPortTest, WithoutAccessRulesEverybodySeesAll) {
  Open({});
  port_->Serve(source_);
  for (const char* path : kAllPages) {
    EXPECT_EQ(StatusOf(path), 200) << path;
    EXPECT_EQ(StatusOf(path, Bearer("unknown")), 200) << path;
  }
}

TEST_F(AdminPortTest, EachPageNeedsItsPermission) {
  const std::string probe = *AddToken(folder_ / "tokens", "probe", std::nullopt);
  const std::string monitor = *AddToken(folder_ / "tokens", "monitor", std::nullopt);
  OpenWith(
      "token_file: 'TOKENS' identities { name: 'probe' token_names: 'probe' may { health: true } } "
      "identities { name: 'monitor' token_names: 'monitor' may { status: true } }");
  for (const char* path : {"/livez", "/readyz"}) {
    EXPECT_EQ(StatusOf(path), 401) << path;
    EXPECT_EQ(StatusOf(path, Bearer(probe)), 200) << path;
    EXPECT_EQ(StatusOf(path, Bearer(monitor)), 403) << path;
  }
  for (const char* path :
       {"/metrics", "/configz", "/tracez", "/tracez.json", "/statusz", "/statusz/events"}) {
    EXPECT_EQ(StatusOf(path), 401) << path;
    EXPECT_EQ(StatusOf(path, Bearer(probe)), 403) << path;
    if (std::string(path) == "/statusz/events") continue;  // Its answer has no end.
    EXPECT_EQ(StatusOf(path, Bearer(monitor)), 200) << path;
  }
  EXPECT_THAT(HttpGet(port_->port(), "/metrics").head, HasSubstr("WWW-Authenticate: Bearer\r\n"));
  for (const char* path : kAllPages) {
    for (const std::string& headers :
         {Bearer("wrong"), Bearer(""), std::string("Authorization: Basic eDp5\r\n"),
          Bearer(probe) + Bearer(monitor)}) {
      EXPECT_EQ(StatusOf(path, headers), 401) << path << headers;
    }
  }
}

constexpr char kEventsRequest[] = "GET /statusz/events HTTP/1.1\r\nHost: localhost\r\n";

AdminOptions QuickEvents() {
  AdminOptions options;
  options.http.event_interval = absl::Milliseconds(1);
  return options;
}

TEST_F(AdminPortTest, TheStatusPageShowsTheServersCurrentState) {
  Open({});
  EXPECT_EQ(StatusOf("/statusz"), 503);
  EXPECT_EQ(StatusOf("/statusz/events"), 503);
  port_->Serve(source_);
  const TestHttpAnswer page = HttpGet(port_->port(), "/statusz");
  EXPECT_THAT(page.head, AllOf(HasSubstr("Content-Type: text/html"),
                               HasSubstr("Content-Security-Policy: default-src 'none'; style-src "
                                         "'sha256-")));
  EXPECT_THAT(page.body, AllOf(HasSubstr("<h1>classified:8470</h1>"), HasSubstr(">serving<"),
                               HasSubstr("<td>ipv4:192.0.2.1:1</td>")));
  source_.is_draining = true;
  EXPECT_THAT(HttpGet(port_->port(), "/statusz").body, HasSubstr(">draining<"));
}

TEST_F(AdminPortTest, EventsFollowTheServerUntilItDrains) {
  Open(QuickEvents());
  port_->Serve(source_);
  TestHttpConnection viewer(port_->port());
  ASSERT_TRUE(viewer.Send(absl::StrCat(kEventsRequest, "\r\n")));
  const std::string first = viewer.ReadUntil("\n\ndata: ");
  EXPECT_THAT(first, AllOf(HasSubstr("Content-Type: text/event-stream"), HasSubstr("retry: "),
                           HasSubstr("data: {\"state\":\"serving\"")));
  source_.is_draining = true;
  const std::string rest = viewer.ReadAll();
  const size_t last = rest.find("event: last\ndata: {\"state\":\"draining\"");
  ASSERT_NE(last, std::string::npos);
  EXPECT_EQ(rest.find("data: ", last + 19), std::string::npos);  // Nothing follows.
}

TEST_F(AdminPortTest, AFifthEventStreamIsRefusedButPagesStayReadable) {
  Open(QuickEvents());
  port_->Serve(source_);
  std::vector<std::unique_ptr<TestHttpConnection>> viewers;
  for (int i = 0; i < 4; ++i) {
    viewers.push_back(std::make_unique<TestHttpConnection>(port_->port()));
    ASSERT_TRUE(viewers.back()->Send(absl::StrCat(kEventsRequest, "\r\n")));
    viewers.back()->ReadUntil("data: ");
  }
  const TestHttpAnswer fifth = HttpGet(port_->port(), "/statusz/events");
  EXPECT_EQ(fifth.status, 503);
  EXPECT_THAT(fifth.body, HasSubstr("too many open pages"));
  EXPECT_EQ(StatusOf("/statusz"), 200);
  EXPECT_EQ(StatusOf("/livez"), 200);
}

TEST_F(AdminPortTest, AnEventStreamEndsWhenItsTokenIsRevoked) {
  const std::string token = *AddToken(folder_ / "tokens", "m", std::nullopt);
  v1::AccessConfig config;
  ASSERT_THAT(ParseTextproto("token_file: 'TOKENS' identities { name: 'm' token_names: 'm' may { "
                             "status: true } }",
                             "access", config),
              IsOk());
  config.set_token_file(folder_ / "tokens");
  absl::StatusOr<std::shared_ptr<AccessControl>> control =
      AccessControl::Create(config, {"classified"});
  ASSERT_THAT(control, IsOk());
  AdminOptions options = QuickEvents();
  options.access = *control;
  Open(std::move(options));
  port_->Serve(source_);
  TestHttpConnection viewer(port_->port());
  ASSERT_TRUE(viewer.Send(absl::StrCat(kEventsRequest, Bearer(token), "\r\n")));
  EXPECT_THAT(viewer.ReadUntil("data: "), HasSubstr("200 OK"));
  ASSERT_THAT(AddToken(folder_ / "others", "other", std::nullopt), IsOk());
  std::filesystem::rename(folder_ / "others", folder_ / "tokens");
  ASSERT_TRUE(WaitUntil([&] {
    EXPECT_THAT((*control)->Reload(), IsOk());
    return StatusOf("/statusz", Bearer(token)) == 401;
  }));
  viewer.ReadAll();  // The stream of events ends.
}

TEST_F(AdminPortTest, PicturesAndStreamsAreForThoseWhoMaySeeTheDataset) {
  source_.has_pictures = true;
  const std::string all = *AddToken(folder_ / "tokens", "all", std::nullopt);
  const std::string some = *AddToken(folder_ / "tokens", "some", std::nullopt);
  OpenWith(
      "token_file: 'TOKENS' identities { name: 'a' token_names: 'all' may { status: true read: "
      "'classified' } } identities { name: 's' token_names: 'some' may { status: true } }");
  const auto page = [&](const std::string& token) {
    return HttpGet(port_->port(), "/statusz", Bearer(token)).body;
  };
  EXPECT_THAT(page(all), HasSubstr("anBlZw=="));
  EXPECT_THAT(page(some),
              AllOf(Not(HasSubstr("anBlZw==")), HasSubstr("permission to read their dataset"),
                    HasSubstr("No stream runs.")));
  AdminOptions without;
  without.no_pictures = "They are off.";
  Open(std::move(without));
  port_->Serve(source_);
  const std::string off = HttpGet(port_->port(), "/statusz").body;
  EXPECT_THAT(off, AllOf(Not(HasSubstr("anBlZw==")), HasSubstr("They are off.")));
}

TEST_F(AdminPortTest, WithoutPermissionNoPageShowsServerDatasetOrMetricNames) {
  const std::string probe = *AddToken(folder_ / "tokens", "probe", std::nullopt);
  OpenWith(
      "token_file: 'TOKENS' identities { name: 'probe' token_names: 'probe' may { health: true } }"
      "anonymous { health: true }");
  for (const char* path : kAllPages) {
    EXPECT_THAT(HttpGet(port_->port(), path).body, Not(HasSubstr("classified"))) << path;
    EXPECT_THAT(HttpGet(port_->port(), path, Bearer(probe)).body, Not(HasSubstr("classified")))
        << path;
  }
  EXPECT_EQ(StatusOf("/livez"), 200);
}

TEST_F(AdminPortTest, ATokenIsOnNoPageAndInNoLog) {
  const std::string token = *AddToken(folder_ / "tokens", "m", std::nullopt);
  const std::string wrong = "d3JvbmctdG9rZW4td3JvbmctdG9rZW4";
  OpenWith("token_file: 'TOKENS' identities { name: 'm' token_names: 'm' may { status: true } }");
  std::string all;
  for (const char* path : kAllPages) {
    for (const std::string& headers : {Bearer(token), Bearer(wrong)}) {
      const TestHttpAnswer answer =
          HttpGet(port_->port(), absl::StrCat(path, "?token=", token), headers);
      absl::StrAppend(&all, answer.head, answer.body);
    }
  }
  EXPECT_EQ(StatusOf(absl::StrCat("/", token)), 404);
  port_ = nullptr;
  EXPECT_THAT(log_, HasSubstr("/metrics for ipv4:127.0.0.1:"));
  for (const std::string& text : {all, log_}) {
    EXPECT_THAT(text, AllOf(Not(HasSubstr(token)), Not(HasSubstr(wrong))));
  }
}

TEST_F(AdminPortTest, WithoutTlsANonLoopbackAddressNeedsTheInsecureOption) {
  AdminOptions options;
  options.listen = "0.0.0.0:0";
  EXPECT_THAT(AdminPort::Open(std::move(options)),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("--insecure")));
  options = {};
  options.listen = "0.0.0.0:0";
  options.insecure = true;
  Open(std::move(options));
  EXPECT_EQ(StatusOf("/livez"), 200);
  options = {};
  options.listen = "unix:/tmp/x";
  EXPECT_THAT(AdminPort::Open(std::move(options)),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("--admin 'unix:/tmp/x'")));
}

TEST_F(AdminPortTest, WithTlsOnlyTlsIsAnswered) {
  MakeCertificates();
  AdminOptions options;
  options.listen = "0.0.0.0:0";
  options.tls = ServerTls(/*verify_clients=*/false);
  Open(std::move(options));
  EXPECT_EQ(StatusOf("/livez"), 0);
  EXPECT_EQ(HttpGet(port_->port(), "/livez", "", ClientTls(false)).status, 200);
}

TEST_F(AdminPortTest, ACallerMustShowItsCertificateIfTheMainPortWantsOne) {
  MakeCertificates();
  AdminOptions options;
  options.tls = ServerTls(/*verify_clients=*/true);
  Open(std::move(options));
  EXPECT_EQ(HttpGet(port_->port(), "/livez", "", ClientTls(false)).status, 0);
  EXPECT_EQ(HttpGet(port_->port(), "/livez", "", ClientTls(true)).status, 200);
}

TEST_F(AdminPortTest, AClientCertificateIdentifiesTheCaller) {
  MakeCertificates();
  v1::AccessConfig config;
  ASSERT_THAT(ParseTextproto("identities { name: 'm' certificate_names: 'client' "
                             "may { status: true } }",
                             "access", config),
              IsOk());
  AdminOptions options;
  options.tls = ServerTls(/*verify_clients=*/true);
  absl::StatusOr<std::shared_ptr<AccessControl>> access = AccessControl::Create(config, {});
  ASSERT_THAT(access, IsOk());
  options.access = *std::move(access);
  Open(std::move(options));
  EXPECT_EQ(HttpGet(port_->port(), "/configz", "", ClientTls(true)).status, 200);
  EXPECT_EQ(HttpGet(port_->port(), "/livez", "", ClientTls(true)).status, 403);
}

TEST_F(AdminPortTest, NewConnectionsUseReplacedTlsFilesUnlessTheyAreInvalid) {
  MakeCertificates();
  AdminOptions options;
  options.tls = ServerTls(/*verify_clients=*/false);
  Open(std::move(options));
  EXPECT_EQ(HttpGet(port_->port(), "/livez", "", ClientTls(false)).status, 200);
  // A new authority signs the new certificates. Clients that trust only the old authority refuse
  // these certificates.
  const std::string old_ca =
      certificates_.Write("old-ca.pem", ReadWholeFile(certificates_ / "ca.pem"));
  ASSERT_EQ(std::system(absl::StrCat("rm ", certificates_ / "ca.key").c_str()), 0);
  MakeCertificates();
  EXPECT_EQ(HttpGet(port_->port(), "/livez", "", ClientTls(false)).status, 200);
  EXPECT_EQ(HttpGet(port_->port(), "/livez", "", {.ca = old_ca}).status, 0);
  // TLS files with an error change nothing.
  certificates_.Write("server.pem", "no certificate");
  EXPECT_EQ(HttpGet(port_->port(), "/livez", "", ClientTls(false)).status, 200);
  port_ = nullptr;
  EXPECT_THAT(log_, HasSubstr("--admin: the TLS files have changed; new connections use them"));
  EXPECT_THAT(log_, HasSubstr("--admin: the TLS files have changed, and the old ones stay"));
}

}  // namespace
}  // namespace systole
