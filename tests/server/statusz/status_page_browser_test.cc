// Tests the server's page in a real browser. The page has the numbers of /metrics, shows changes
// without a reload, and fits a phone.
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "server/server.h"
#include "server/statusz/status_page.h"
#include "systole/v1/service.grpc.pb.h"
#include "tests/client/emulator/report/browser.h"
#include "tests/core/dataset/test_dataset.h"
#include "tests/core/metrics/exposition_parser.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/server/admin/http_client.h"
#include "tests/server/listen_on.h"
#include "tests/server/rpc/test_catalogue.h"
#include "tests/server/statusz/sample_view.h"
#include "tests/status_matchers.h"
#include "tests/wait_until.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kHeight = 3000;

std::string Between(const std::string& text, const std::string& begin, const std::string& end) {
  const size_t from = text.find(begin);
  if (from == std::string::npos) return "";
  return text.substr(from + begin.size(),
                     text.find(end, from + begin.size()) - from - begin.size());
}

// The page's numbers, by their series.
std::map<std::string, double> NumbersOf(const std::string& dom) {
  std::map<std::string, double> numbers;
  const std::string begin = "<data data-series=\"";
  for (size_t at = dom.find(begin); at != std::string::npos; at = dom.find(begin, at + 1)) {
    const std::string tag = dom.substr(at, dom.find('>', at) - at);
    double value = -1;
    EXPECT_TRUE(absl::SimpleAtod(Between(tag, "value=\"", "\""), &value)) << tag;
    numbers[absl::StrReplaceAll(Between(tag, begin, "\" "), {{"&quot;", "\""}})] = value;
  }
  return numbers;
}

// A real server. The browser opens the server's page through a second HTTP server, `front_`, which
// adds an image to the page. The image is complete only after some events. Without this image, the
// browser, which has no screen, would end as soon as it has loaded the page.
class StatusPageBrowserTest : public testing::Test {
 protected:
  static constexpr int kEvents = 20;

  void SetUp() override {
    folder_.Write("a.tfrecord", TestShards({12})[0]);
    AdminOptions options;
    options.listen = "127.0.0.1:0";
    options.http.event_interval = absl::Milliseconds(100);
    absl::StatusOr<std::unique_ptr<AdminPort>> admin = AdminPort::Open(std::move(options));
    ASSERT_THAT(admin, IsOk());
    admin_port_ = (*admin)->port();
    absl::StatusOr<Catalogue> catalogue = OpenTestCatalogue(folder_ / "a.tfrecord");
    ASSERT_THAT(catalogue, IsOk());
    absl::StatusOr<std::unique_ptr<Server>> server =
        Server::Start(*std::move(catalogue), ListenOn("127.0.0.1:0"), {}, *std::move(admin));
    ASSERT_THAT(server, IsOk());
    server_ = *std::move(server);
    stub_ = v1::Systole::NewStub(
        grpc::CreateChannel(server_->address(), grpc::InsecureChannelCredentials()));
    absl::StatusOr<ListeningSockets> sockets = ListenOnTcp("127.0.0.1", 0);
    ASSERT_THAT(sockets, IsOk());
    page_port_ = sockets->port;
    HttpServerOptions http;
    http.event_interval = absl::Milliseconds(1);
    absl::StatusOr<std::unique_ptr<HttpServer>> front =
        HttpServer::Start(*std::move(sockets), std::move(http),
                          [this](const PageRequest& request) { return Forward(request); });
    ASSERT_THAT(front, IsOk());
    front_ = *std::move(front);
  }

  PageAnswer Forward(const PageRequest& request) {
    if (request.path == "/slow.png") {
      PageAnswer answer;
      answer.next_event = [this]() -> std::optional<std::string> {
        // After the last event the page gets some time to show the event.
        if (events_ >= kEvents || (ended_ && ++idle_ > 500)) return std::nullopt;
        return "";
      };
      return answer;
    }
    if (request.path == "/statusz/events") {
      const auto events = std::make_shared<TestHttpConnection>(admin_port_);
      events->Send("GET /statusz/events HTTP/1.1\r\nHost: localhost\r\n\r\n");
      events->ReadUntil("\r\n\r\n");
      PageAnswer answer = {.content_type = "text/event-stream"};
      answer.next_event = [this, events]() -> std::optional<std::string> {
        std::string bytes = events->ReadUntil("\n\n");
        ended_ = bytes.empty() || absl::StrContains(bytes, "event: last");
        if (bytes.empty()) return std::nullopt;
        if (++events_ == kEvents / 2) OnEvent();
        return bytes;
      };
      return answer;
    }
    const TestHttpAnswer real = HttpGet(admin_port_, request.path);
    PageAnswer answer = {.status = real.status, .content_type = "text/html; charset=utf-8"};
    answer.body =
        absl::StrReplaceAll(real.body, {{"</main>", "<img alt=\"\" src=\"/slow.png\"></main>"}});
    const std::string policy = Between(real.head, "Content-Security-Policy: ", "\r\n");
    answer.headers = {{"Content-Security-Policy",
                       absl::StrReplaceAll(policy, {{"img-src data:", "img-src data: 'self'"}})}};
    return answer;
  }

  // Called between two events.
  void OnEvent() {
    if (at_event_ != nullptr) at_event_();
  }

  OpenedPage Open() {
    return OpenAddress(absl::StrCat("http://127.0.0.1:", page_port_, "/statusz"),
                       ColorScheme::kLight, 1200, kHeight, 1);
  }

  // Begins a stream of images, and takes a whole step of it.
  void Stream() {
    v1::StreamStepsRequest request;
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
        "dataset: 'test' global_batch: 4 num_cores: 1 outputs { name: 'image' feature: 'image' "
        "dtype: FLOAT32 "
        "transforms { decode_jpeg {} } transforms { resize { height: 120 width: 160 } } "
        "transforms { normalize { mean: 127 stddev: 64 } } }",
        request.mutable_spec()));
    request.set_count(1'000'000);
    reader_ = stub_->StreamSteps(&context_, request);
    v1::Chunk chunk;
    while (chunk.step() == 0) ASSERT_TRUE(reader_->Read(&chunk));
  }

  const TempFolder folder_;
  int admin_port_ = 0, page_port_ = 0;
  std::atomic<int> events_ = 0;
  bool ended_ = false;  // Only the thread of `front_` uses this and `idle_`.
  int idle_ = 0;
  std::function<void()> at_event_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<HttpServer> front_;
  std::unique_ptr<v1::Systole::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<v1::Chunk>> reader_;
};

TEST_F(StatusPageBrowserTest, TheNumbersOnThePageEqualTheMetrics) {
  const OpenedPage page = Open();
  ASSERT_EQ(page.error, "");
  EXPECT_EQ(page.console, "");
  const std::map<std::string, double> numbers = NumbersOf(page.dom);
  const absl::StatusOr<Exposition> metrics = ParseExposition(HttpGet(admin_port_, "/metrics").body);
  ASSERT_THAT(metrics, IsOk());
  int compared = 0;
  for (const auto& [series, value] : metrics->series) {
    // These series change all the time, or are not on the page.
    if (absl::StrContains(series, "cpu_seconds") || absl::StrContains(series, "resident") ||
        absl::StrContains(series, "admin_answers") || absl::StrContains(series, "grpc_server") ||
        absl::StrContains(series, "build_info") || absl::StrContains(series, "step_wait_seconds")) {
      continue;
    }
    ASSERT_EQ(numbers.count(series), 1u) << series;
    EXPECT_EQ(numbers.at(series), value) << series;
    ++compared;
  }
  EXPECT_GT(compared, 40);
}

TEST_F(StatusPageBrowserTest, ANewStreamAppearsWithoutReloadingThePage) {
  at_event_ = [this] { Stream(); };
  const OpenedPage page = Open();
  ASSERT_EQ(page.error, "");
  EXPECT_EQ(page.console, "");
  EXPECT_THAT(page.dom, AllOf(HasSubstr("Live: the numbers change by themselves."),
                              HasSubstr("<button id=\"pause\" type=\"button\">Pause</button>"),
                              HasSubstr("data-events=\""), Not(HasSubstr("No stream runs."))));
  const std::string row = Between(page.dom, "<table id=\"streams-table\">", "</tbody>");
  EXPECT_THAT(row, AllOf(HasSubstr("<th scope=\"row\">1</th><td>test</td><td>ipv4:127.0.0.1:"),
                         Not(HasSubstr("<td>0</td>"))));
  // The page also has pictures of the stream's images.
  EXPECT_THAT(Between(page.dom, "id=\"pictures-words\">", "</p>"),
              AllOf(HasSubstr("From test, step "), HasSubstr("normalize undone")));
  EXPECT_THAT(Between(page.dom, "id=\"pictures-list\">", "</ul>"),
              HasSubstr("width=\"80\" height=\"60\" src=\"data:image/jpeg;base64,/9j/"));
  context_.TryCancel();
}

TEST_F(StatusPageBrowserTest, ADrainIsShownOnThePage) {
  at_event_ = [this] { server_->Drain(absl::FromChrono(kLongestWait)); };
  const OpenedPage page = Open();
  ASSERT_EQ(page.error, "");
  EXPECT_EQ(page.console, "");
  EXPECT_THAT(page.dom, AllOf(HasSubstr("class=\"badge draining\">draining</span>"),
                              HasSubstr("The server drains. These are its last numbers."),
                              HasSubstr("<button id=\"pause\" type=\"button\">Go on</button>")));
}

// Returns the widths of the window and of the page, and the elements that reach beyond the window.
// Leaves out elements in a box that scrolls.
constexpr char kMeasure[] = R"js(
  const wide = [...document.querySelectorAll('body *')].filter(
      element => !element.closest('.scroll') &&
                 (element.getBoundingClientRect().right > innerWidth + .5 ||
                  element.getBoundingClientRect().left < 0));
  return [innerWidth, document.documentElement.scrollWidth,
          'wide:' + wide.map(element => element.tagName + '.' + element.className).join(' ')]
      .join(' ');
)js";

// Returns "readable" if each text has the contrast with its background that WCAG demands. Otherwise
// returns the smallest contrast and its element.
constexpr char kContrast[] = R"js(
  const parse = text => text.match(/[\d.]+/g).map(Number);
  const light = ([r, g, b]) => {
    const part = value => (value /= 255) <= .04045 ? value / 12.92 : ((value + .055) / 1.055) ** 2.4;
    return .2126 * part(r) + .7152 * part(g) + .0722 * part(b);
  };
  const behind = element => {
    for (; element; element = element.parentElement) {
      const color = parse(getComputedStyle(element).backgroundColor);
      if (color.length < 4 || color[3] > 0) return color;
    }
    return [255, 255, 255];
  };
  const least = [21, ''];
  for (const element of document.querySelectorAll('body *')) {
    if (![...element.childNodes].some(node => node.nodeType === 3 && node.data.trim())) continue;
    if (!element.getClientRects().length) continue;
    const [a, b] = [light(parse(getComputedStyle(element).color)), light(behind(element))];
    const contrast = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    if (contrast < least[0]) least.splice(0, 2, contrast, element.outerHTML);
  }
  return least[0] >= 4.5 ? 'readable' : least.join(' ');
)js";

// Lists the things that a screen reader needs and the page does not have.
constexpr char kAccess[] = R"js(
  const missing = [];
  const want = (selector, test) => {
    const all = [...document.querySelectorAll(selector)];
    if (!all.length || !all.every(test)) missing.push(selector);
  };
  const named = element => element.ariaLabel ||
      document.getElementById(element.getAttribute('aria-labelledby')).textContent;
  want('body > header, body > main, body > footer', () => true);
  want('section', named);
  want('table', table => table.caption && table.caption.textContent);
  want('thead th', cell => cell.scope === 'col' && cell.textContent);
  want('tbody th', cell => cell.scope === 'row');
  want('svg', named);
  want('img', image => image.alt);
  want('.scroll', box => box.tabIndex === 0 && named(box));
  want('h1', () => document.querySelectorAll('h1').length === 1);
  want('[role=status]', () => document.querySelectorAll('[role=status], [aria-live]').length === 1);
  return 'missing:' + missing.join(' ');
)js";

// The page without its script. The script would send requests to a server, and this test has no
// server.
std::string Still(const ServerView& view) {
  std::string page = StatusPage(view);
  const size_t script = page.find("<script>");
  page.erase(script, page.find("</script>") - script);
  return absl::StrReplaceAll(page, {{" hidden>Pause", ">Pause"}, {"<details>", "<details open>"}});
}

ServerView LongView() {
  ServerView view = SampleView(std::string(100, 'n'));
  PictureSheet sheet = {.number = 1, .datasets = {std::string(100, 'd')}, .how = "as they are"};
  sheet.pictures.resize(8, {.jpeg = "no jpeg", .width = 96, .height = 96});
  view.pictures = std::make_shared<const PictureSheet>(sheet);
  return view;
}

TEST(StatusPageInFramesTest, NothingIsWiderThanTheWindow) {
  const std::string page = Still(LongView());
  const MeasuredFrames opened = OpenInFrames({{page, 400}, {page, 800}, {page, 1200}}, kMeasure,
                                             ColorScheme::kLight, kHeight);
  ASSERT_EQ(opened.error, "");
  EXPECT_EQ(opened.console, "");
  EXPECT_THAT(opened.measured, ElementsAre("400 400 wide:", "800 800 wide:", "1200 1200 wide:"));
}

TEST(StatusPageInFramesTest, TextHasEnoughContrastInLightAndDarkMode) {
  ServerView draining = LongView();
  draining.draining = true;
  const std::vector<Frame> frames = {{Still(LongView()), 400}, {Still(draining), 1200}};
  for (const ColorScheme scheme : {ColorScheme::kLight, ColorScheme::kDark}) {
    const MeasuredFrames opened = OpenInFrames(frames, kContrast, scheme, kHeight);
    ASSERT_EQ(opened.error, "");
    EXPECT_THAT(opened.measured, ElementsAre("readable", "readable"));
  }
}

TEST(StatusPageInFramesTest, ThePageHasTheElementsThatAScreenReaderNeeds) {
  const MeasuredFrames opened =
      OpenInFrames({{Still(LongView()), 800}}, kAccess, ColorScheme::kLight, kHeight);
  ASSERT_EQ(opened.error, "");
  EXPECT_THAT(opened.measured, ElementsAre("missing:"));
}

// Checks that the tests above can fail.
TEST(StatusPageInFramesTest, TheChecksDetectAWidePaleOrInaccessiblePage) {
  const std::string page = absl::StrReplaceAll(
      Still(LongView()), {{"</style>", "h1 { width: 700px; color: #999 !important; }</style>"},
                          {"scope=\"row\"", ""}});
  EXPECT_THAT(OpenInFrames({{page, 400}}, kMeasure, ColorScheme::kLight, kHeight).measured,
              ElementsAre(HasSubstr(" wide:H1.")));
  EXPECT_THAT(OpenInFrames({{page, 400}}, kContrast, ColorScheme::kLight, kHeight).measured,
              ElementsAre(HasSubstr("h1&gt;")));
  EXPECT_THAT(OpenInFrames({{page, 400}}, kAccess, ColorScheme::kLight, kHeight).measured,
              ElementsAre("missing:tbody th"));
}

}  // namespace
}  // namespace systole
