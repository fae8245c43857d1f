#include "core/metrics/exposition.h"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/metrics/exposition_parser.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::HasSubstr;

constexpr double kBounds[] = {0, 1024, 4294967296.0};

TEST(ExpositionTest, EachKindIsWrittenAsPrometheusReadsIt) {
  Histogram sizes(kBounds);
  for (const double size : {0.0, 1.0, 2000.0, 1e12}) sizes.Add(size);
  const std::string text =
      ExpositionOf({{.name = "a_total",
                     .kind = MetricKind::kCounter,
                     .help = "How often.",
                     .samples = {{.labels = {{"why", "x"}, {"how", "y"}}, .value = 3}}},
                    {.name = "b_bytes", .help = "How much.", .samples = {{.value = 0.5}}},
                    {.name = "nothing", .help = "No series yet."},
                    {.name = "c_bytes",
                     .kind = MetricKind::kHistogram,
                     .help = "How large.",
                     .samples = {{.labels = {{"why", "x"}}, .histogram = sizes.Read()}}}});
  EXPECT_EQ(text,
            "# HELP a_total How often.\n"
            "# TYPE a_total counter\n"
            "a_total{why=\"x\",how=\"y\"} 3\n"
            "# HELP b_bytes How much.\n"
            "# TYPE b_bytes gauge\n"
            "b_bytes 0.5\n"
            "# HELP c_bytes How large.\n"
            "# TYPE c_bytes histogram\n"
            "c_bytes_bucket{why=\"x\",le=\"0\"} 1\n"
            "c_bytes_bucket{why=\"x\",le=\"1024\"} 2\n"
            "c_bytes_bucket{why=\"x\",le=\"4294967296\"} 3\n"
            "c_bytes_bucket{why=\"x\",le=\"+Inf\"} 4\n"
            "c_bytes_sum{why=\"x\"} 1000000002001\n"
            "c_bytes_count{why=\"x\"} 4\n");
  EXPECT_THAT(ParseExposition(text), IsOk());
}

TEST(ExpositionTest, LargeCountersKeepTheirDigits) {
  EXPECT_THAT(ExpositionOf({{.name = "a_bytes_total",
                             .kind = MetricKind::kCounter,
                             .help = "Bytes.",
                             .samples = {{.value = 9007199254740991.0}}}}),
              HasSubstr("a_bytes_total 9007199254740991\n"));
}

TEST(ExpositionTest, TextsAreEscapedAndNumbersAreInPrometheusFormat) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(ExpositionOf({{.name = "a",
                           .help = "A \\ and\na \"line\".",
                           .samples = {{.labels = {{"x", "\\ \n \""}}, .value = kInfinity},
                                       {.labels = {{"x", "2"}}, .value = -kInfinity},
                                       {.labels = {{"x", "3"}}, .value = std::nan("")},
                                       {.labels = {{"x", "4"}}, .value = 0.1},
                                       {.labels = {{"x", "5"}}, .value = 5e-5},
                                       {.labels = {{"x", "6"}}, .value = -1e300}}}}),
            "# HELP a A \\\\ and\\na \"line\".\n"
            "# TYPE a gauge\n"
            "a{x=\"\\\\ \\n \\\"\"} +Inf\n"
            "a{x=\"2\"} -Inf\n"
            "a{x=\"3\"} NaN\n"
            "a{x=\"4\"} 0.1\n"
            "a{x=\"5\"} 5e-05\n"
            "a{x=\"6\"} -1e+300\n");
}

// Only tests use this parser. So only this test can show that the parser finds errors.
TEST(ExpositionParserTest, MalformedExpositionsAreRefused) {
  const std::string head = "# HELP a_total A.\n# TYPE a_total counter\n";
  EXPECT_THAT(ParseExposition(head + "a_total 1\n"), IsOk());
  const std::string histogram = "# HELP h H.\n# TYPE h histogram\n";
  EXPECT_THAT(ParseExposition(histogram + "h_count 2\nh_sum 3\nh_bucket{le=\"1\"} 1\n"
                                          "h_bucket{le=\"+Inf\"} 2\n"),
              IsOk());
  for (const std::string& bad :
       {head + "a_total 1", head + "a_total 1\n\n", head + "a_total -1\n", head + "a_total NaN\n",
        head + "a_total 1\na_total 2\n", head + "b_total 1\n", head + "a_total{x=\"\n\"} 1\n",
        head + "a_total{x=1} 1\n", head + head, head + "a_total  1\n",
        std::string("# HELP a A.\n# TYPE a counter\na 1\n"),
        std::string("# HELP a_total A.\n# TYPE a_total gauge\na_total 1\n"), std::string("a 1\n"),
        std::string("# HELP a A.\na 1\n"), histogram + "h_count 1\nh_sum 3\nh_bucket{le=\"1\"} 1\n",
        histogram + "h_count 1\nh_sum 3\nh_bucket{le=\"1\"} 1\nh_bucket{le=\"+Inf\"} 2\n",
        histogram + "h_count 1\nh_sum 3\nh_bucket{le=\"1\"} 2\nh_bucket{le=\"+Inf\"} 1\n",
        histogram + "h_count 1\nh_sum 3\nh_bucket{le=\"2\"} 1\nh_bucket{le=\"1\"} 1\n"
                    "h_bucket{le=\"+Inf\"} 1\n"}) {
    EXPECT_FALSE(ParseExposition(bad).ok()) << bad;
  }
}

}  // namespace
}  // namespace systole
