#include "client/emulator/report/html_report.h"

#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/emulator/report/sample_reports.h"

namespace systole::emulator {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr size_t kTwoMegabytes = 2000000;

TEST(HtmlReportTest, CarriesTheJsonWordForWord) {
  const RunReport report = SampleTraining("flowers-cnn", 2, 10);
  EXPECT_THAT(ToHtml(report), HasSubstr(absl::StrCat("<script type=\"application/json\" "
                                                     "id=\"report\">",
                                                     ToJson(report), "</script>")));
}

TEST(HtmlReportTest, NamesFactsAndNotesAreEscaped) {
  const std::string evil = "</script><script>alert(1)</script><!--";
  RunReport report = SampleTraining(evil, 1, 4);
  report.facts.push_back({"spec\"><x>", "<label>", std::string("a\" onclick=\"b")});
  report.roofline = SamplePaced(1, 1).roofline;
  report.roofline->layers[0].name = evil;
  report.notes = {evil};
  const std::string html = ToHtml(report);
  EXPECT_THAT(html, Not(HasSubstr("alert(1)</script>")));
  EXPECT_THAT(html, Not(HasSubstr("<x>")));
  EXPECT_THAT(html, Not(HasSubstr("<label>")));
  EXPECT_THAT(html, Not(HasSubstr("a\" onclick")));
  EXPECT_THAT(html, Not(HasSubstr("<!--")));
  EXPECT_THAT(html, HasSubstr("\"model\":\"\\u003c/script>\\u003cscript>alert(1)"));
}

TEST(HtmlReportTest, ReferencesNoExternalResource) {
  for (const RunReport& report : {SampleTraining("m", 2, 10), SamplePaced(8, 20), SampleLoad()}) {
    EXPECT_THAT(ToHtml(report),
                AllOf(HasSubstr("Content-Security-Policy\" content=\"default-src 'none'"),
                      Not(HasSubstr("http:")), Not(HasSubstr("https:")), Not(HasSubstr("src=")),
                      Not(HasSubstr("href=")), Not(HasSubstr("url("))));
  }
}

TEST(HtmlReportTest, FunctionalModeShowsNoUtilizationBarrierOrRoofline) {
  const std::string html = ToHtml(SampleTraining("m", 2, 10));
  EXPECT_THAT(html, HasSubstr("Functional mode"));
  EXPECT_THAT(html, Not(HasSubstr("tilization")));
  EXPECT_THAT(html, Not(HasSubstr("Barrier")));
  EXPECT_THAT(html, Not(HasSubstr("plot-roofline")));
}

TEST(HtmlReportTest, PlotsAndTablesWithoutDataAreLeftOut) {
  const std::string empty = ToHtml({.mode = RunMode::kReplay});
  EXPECT_THAT(empty, AllOf(HasSubstr("Replay mode"), Not(HasSubstr("<figure")),
                           Not(HasSubstr("<table")), Not(HasSubstr("class=\"sheet"))));
  const std::string paced = ToHtml(SamplePaced(8, 20));
  EXPECT_THAT(paced, AllOf(Not(HasSubstr("id=\"plot-loss\"")), HasSubstr("id=\"plot-steps\""),
                           HasSubstr("id=\"plot-cores\""), HasSubstr("id=\"plot-roofline\"")));
  // A rate that never changes has no plot.
  RunReport constant = SampleTraining("m", 1, 1);
  EXPECT_THAT(ToHtml(constant),
              AllOf(HasSubstr("id=\"plot-loss\""), Not(HasSubstr("id=\"plot-learning-rate\""))));
}

TEST(HtmlReportTest, LoadTestLevelsAreSortedByNumberOfTrainers) {
  const std::string html = ToHtml(SampleLoad());
  EXPECT_THAT(html, AllOf(HasSubstr("<h1>Load test</h1>"), HasSubstr("id=\"plot-cpus\"")));
  // The levels are in the order of their trainers. "levels.2", the third level that ran, has the
  // most trainers.
  EXPECT_LT(html.find("data-key=\"levels.3.trainers\""),
            html.find("data-key=\"levels.2.trainers\""));
  RunReport unknown = SampleLoad();
  for (LevelReport& level : unknown.levels) {
    level.server_cpus_busy = std::numeric_limits<double>::quiet_NaN();
    level.server_resident_bytes.reset();
  }
  EXPECT_THAT(ToHtml(unknown), Not(HasSubstr("id=\"plot-cpus\"")));
}

TEST(HtmlReportTest, ALongRunGivesASmallPageThatSaysWhatIsMerged) {
  const std::string paced = ToHtml(SamplePaced(2048, 1000000));
  EXPECT_LT(paced.size(), kTwoMegabytes);
  EXPECT_THAT(paced, AllOf(HasSubstr("each of 1,024 steps"),
                           HasSubstr("The 64 cores that waited longest for data"),
                           HasSubstr("Each bar stands for 9 neighbouring cores")));
  const std::string training = ToHtml(SampleTraining("m", 10, 100000));
  EXPECT_LT(training.size(), kTwoMegabytes);
  EXPECT_THAT(training, AllOf(HasSubstr("class=\"band s-training\""),
                              HasSubstr("Band: from their smallest to their largest value.")));
}

TEST(HtmlReportTest, EpochsBeforeACheckpointAreInTheTableOnly) {
  RunReport report = SampleTraining("m", 3, 10);
  report.steps = {};
  for (int64_t step = 15; step < 30; ++step) report.steps.Add({.step = step, .loss = 1});
  const std::string html = ToHtml(report);
  EXPECT_THAT(html, AllOf(Not(HasSubstr("Validation after step 10\n")),
                          HasSubstr("Validation after step 20\n"),
                          HasSubstr("Validation after step 30\n")));
  EXPECT_THAT(html, HasSubstr("data-key=\"epochs.0.validation.loss\""));
}

TEST(HtmlReportTest, AnOutlierIsCutOffAndSaidSo) {
  RunReport report = SamplePaced(1, 100);
  report.steps.Add({.step = 100, .compute = absl::Milliseconds(144), .barrier = absl::Seconds(30)});
  EXPECT_THAT(ToHtml(report),
              AllOf(HasSubstr("Columns and lines are cut off at"), HasSubstr("30.1 s")));
}

TEST(HtmlReportTest, NonFiniteLossesNeverAppearAsNanOrInf) {
  RunReport report = SampleTraining("m", 1, 4);
  for (int64_t step = 4; step < 8; ++step) {
    report.steps.Add({.step = step, .loss = std::numeric_limits<double>::quiet_NaN()});
  }
  report.epochs[0].training.loss = std::numeric_limits<double>::infinity();
  const std::string html = ToHtml(report);
  EXPECT_THAT(html, Not(HasSubstr("nan")));
  EXPECT_THAT(html, Not(HasSubstr("inf\"")));
  EXPECT_THAT(html, HasSubstr("value=\"null\">n/a</data>"));
}

TEST(HtmlReportTest, LayersWithoutAPlaceOnTheRooflineAreCounted) {
  EXPECT_THAT(ToHtml(SamplePaced(1, 1)),
              HasSubstr("In the table only, because they compute or move nothing: 1 of 8 layers."));
}

}  // namespace
}  // namespace systole::emulator
