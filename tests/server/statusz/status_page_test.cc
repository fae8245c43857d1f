#include "server/statusz/status_page.h"

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "openssl/evp.h"
#include "server/statusz/page_model.h"
#include "tests/server/statusz/sample_view.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::string Between(const std::string& text, const std::string& begin, const std::string& end) {
  const size_t from = text.find(begin);
  if (from == std::string::npos) return "";
  const size_t at = from + begin.size();
  return text.substr(at, text.find(end, at) - at);
}

std::string Sha256Base64(const std::string& text) {
  std::string hash(32, '\0');
  EXPECT_EQ(EVP_Digest(text.data(), text.size(), reinterpret_cast<unsigned char*>(hash.data()),
                       nullptr, EVP_sha256(), nullptr),
            1);
  return absl::Base64Escape(hash);
}

TEST(StatusPageTest, TheContentSecurityPolicyHasTheStyleAndScriptHashes) {
  const std::string page = StatusPage(SampleView());
  EXPECT_THAT(
      StatusPagePolicy(),
      AllOf(HasSubstr(absl::StrCat("style-src 'sha256-",
                                   Sha256Base64(Between(page, "<style>", "</style>")), "';")),
            HasSubstr(absl::StrCat("script-src 'sha256-",
                                   Sha256Base64(Between(page, "<script>", "</script>")), "';"))));
}

TEST(StatusPageTest, ThePageRefersToNoExternalResources) {
  const std::string page = StatusPage(SampleView());
  EXPECT_THAT(page, AllOf(Not(HasSubstr("http:")), Not(HasSubstr("https:")),
                          Not(HasSubstr("style=\"")), Not(HasSubstr("src=\"/"))));
}

TEST(StatusPageTest, EverySeriesIsOnThePageWithItsValue) {
  const ServerView view = SampleView();
  std::map<std::string, double> series;
  for (const MetricFamily& family : view.families) {
    for (const MetricSample& sample : family.samples) {
      std::string name = family.name;
      if (!sample.labels.empty()) {
        absl::StrAppend(&name, "{", sample.labels[0].name, "=\"", sample.labels[0].value, "\"}");
      }
      if (family.name != "systole_server_build_info") series[name] = sample.value;
    }
  }
  const std::string page = StatusPage(view);
  std::map<std::string, int> shown;
  const std::string begin = "<data data-series=\"";
  for (size_t at = page.find(begin); at != std::string::npos; at = page.find(begin, at + 1)) {
    const std::string element = page.substr(at, page.find("</data>", at) - at);
    const std::string name =
        absl::StrReplaceAll(Between(element, begin, "\" value"), {{"&quot;", "\""}});
    double value = -1;
    EXPECT_TRUE(absl::SimpleAtod(Between(element, "value=\"", "\""), &value));
    ASSERT_EQ(series.count(name), 1u) << name;
    EXPECT_EQ(value, series[name]) << name;
    ++shown[name];
  }
  EXPECT_EQ(shown.size(), series.size());  // Every series is shown.
}

TEST(StatusPageTest, HostileNamesAreEscaped) {
  const std::string hostile = "</style></script><img src=x>\"'&\n\x01";
  const ServerView view = SampleView(hostile);
  const std::string page = StatusPage(view);
  EXPECT_THAT(page, AllOf(Not(HasSubstr("<img")), HasSubstr("&lt;img src=x&gt;&quot;")));
  // The event is one line. So no text in it can end the event or begin a new event.
  const std::string event = StatusEvent(view, 0, false);
  EXPECT_EQ(event.find('\n'), event.size() - 2);
}

TEST(StatusPageTest, AnEventHasTheTableCellsOfThePage) {
  const ServerView view = SampleView();
  const std::string event = StatusEvent(view, 0, /*is_last=*/false);
  EXPECT_THAT(event,
              AllOf(StartsWith("data: {\"state\":\"serving\","), Not(HasSubstr("pictures\":["))));
  const std::string page = StatusPage(view);
  for (const PageTable& table : PageModelOf(view).tables) {
    for (const std::vector<PageCell>& row : table.rows) {
      for (const PageCell& cell : row) {
        EXPECT_THAT(event, HasSubstr(absl::StrCat("[\"", cell.text, "\"")));
        EXPECT_THAT(page, HasSubstr(absl::StrReplaceAll(absl::StrCat(">", cell.text, "<"),
                                                        {{"'", "&#39;"}})));
      }
    }
  }
  EXPECT_THAT(StatusEvent(view, 0, /*is_last=*/true), StartsWith("event: last\ndata: {"));
}

TEST(StatusPageTest, PicturesAreSentOnceAndClearedWhenNoLongerVisible) {
  ServerView view = SampleView();
  PictureSheet sheet = {.number = 5, .datasets = {"a", "b"}, .step = 7, .how = "as they are"};
  sheet.pictures = {{.jpeg = "jpeg", .width = 8, .height = 6, .slot = 2}};
  view.pictures = std::make_shared<const PictureSheet>(sheet);
  EXPECT_THAT(StatusPage(view),
              HasSubstr("width=\"8\" height=\"6\" src=\"data:image/jpeg;base64,anBlZw==\""));
  EXPECT_THAT(StatusEvent(view, 0, false), HasSubstr(",8,6,\"anBlZw==\"]"));
  EXPECT_THAT(
      StatusEvent(view, 5, false),
      AllOf(Not(HasSubstr("anBlZw")), HasSubstr("From a, b, step 7, core 0: as they are.")));
  // A viewer who may no longer see the pictures gets an empty list.
  view.pictures = nullptr;
  EXPECT_THAT(StatusEvent(view, 5, false), HasSubstr("\"pictures\":[]"));
}

std::vector<std::string> Texts(const std::vector<PageCell>& row) {
  std::vector<std::string> texts;
  for (const PageCell& cell : row) texts.push_back(cell.text);
  return texts;
}

TEST(PageModelTest, RatesOfAStreamAreThoseOfTheLastSeconds) {
  const PageTable streams = PageModelOf(SampleView()).tables[0];
  ASSERT_EQ(streams.rows.size(), 2u);
  EXPECT_THAT(Texts(streams.rows[0]),
              ElementsAre("12", "flowers", "identity 'flowers' at ipv4:192.0.2.1:4711",
                          "1 min 15 s", "4,000", "21.0", "10.0 MB/s", "50 %", "decode (image)"));
  EXPECT_THAT(Texts(streams.rows[1]), ElementsAre("3", "second", "ipv6:%5B::1%5D:4712", "5 h 0 min",
                                                  "0", "0.0", "0 B/s", "–", "–"));
  EXPECT_EQ(streams.rest, "and 7 more");
}

TEST(PageModelTest, StreamsOfUnlistableDatasetsAreMentionedWithoutDetails) {
  ServerView view = SampleView();
  view.streams = {};
  EXPECT_EQ(PageModelOf(view).tables[0].rest,
            "Streams run, but each reads a dataset that you may not list.");
}

TEST(PageModelTest, TheRowsOfTablesAndThePageSizeAreLimited) {
  ServerView view = SampleView();
  view.streams.streams.resize(256, view.streams.streams[0]);
  std::vector<DatasetNumbers> datasets;
  for (int i = 0; i < 5000; ++i) datasets.push_back({.name = absl::StrCat("d", i)});
  view.families = DatasetFamilies(datasets);
  const PageModel model = PageModelOf(view);
  EXPECT_EQ(model.tables[0].rows.size(), kMaxRows);
  EXPECT_EQ(model.tables[0].rest, "and 163 more");
  EXPECT_EQ(model.tables[1].rows.size(), kMaxRows);
  EXPECT_EQ(model.tables[1].rest, "and 1 more");  // The row "other".
  EXPECT_LT(StatusPage(view).size(), 100u << 10);
}

TEST(PageModelTest, APlotHasItsNumbersInWords) {
  const PagePlot plot = PageModelOf(SampleView()).plots[1];
  EXPECT_EQ(plot.words, "Now 20, 20 at most in the last 9 min 55 s.");
  EXPECT_THAT(plot.path, AllOf(StartsWith("M5.0 0.0L10.0 0.0L"), HasSubstr("L600.0 0.0")));
}

TEST(PageModelTest, AnEmptyViewSaysThatNothingIsKnown) {
  const PageModel model = PageModelOf({});
  EXPECT_EQ(model.plots[0].path, "");
  EXPECT_EQ(model.plots[0].words, "Nothing is known yet.");
  EXPECT_EQ(model.tables[0].rest, "No stream runs.");
  EXPECT_EQ(model.tables[1].rest, "No dataset is served.");
  EXPECT_THAT(StatusPage({}), HasSubstr("</html>"));
}

}  // namespace
}  // namespace systole
