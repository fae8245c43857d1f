#include "client/emulator/report/plot.h"

#include <limits>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace systole::emulator {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// The plot's frame reaches from x = 34.4 to 434.4, and from y = 14 (its top) to 234.
Plot MakePlot() {
  return Plot({.id = "p",
               .title = "A <title>",
               .description = "All \"there\" is",
               .x_label = "Step",
               .width = 450.4},
              Axis::LinearExact(0, 4, Unit::kCount), Axis::LinearExact(0, 10, Unit::kCount));
}

TEST(PlotTest, LinesRunThroughTheirPoints) {
  Plot plot = MakePlot();
  plot.Line("loss", {{0, 0}, {2, 5}, {4, 10}});
  EXPECT_THAT(plot.ToSvg(),
              HasSubstr("<path class=\"line s-loss\" d=\"M34.4,234L234.4,124L434.4,14\"/>"));
}

TEST(PlotTest, LinesAreInterruptedWhereThereIsNoNumber) {
  Plot plot = MakePlot();
  plot.Line("loss", {{0, 0}, {1, 5}, {1.5, kNan}, {2, 5}, {3, kNan}, {3, 5}, {4, 5}});
  const std::string svg = plot.ToSvg();
  EXPECT_THAT(svg, HasSubstr("d=\"M34.4,234L134.4,124M334.4,124L434.4,124\""));
  EXPECT_THAT(svg, HasSubstr("<path class=\"dot s-loss\" transform=\"translate(234.4,124)\""));
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
}

TEST(PlotTest, BandsAreClosedOnEachSideOfAGap) {
  Plot plot = MakePlot();
  plot.Band("loss", {{0, 0}, {1, 0}, {2, kNan}, {3, 0}, {4, 0}},
            {{0, 10}, {1, 10}, {2, kNan}, {3, 10}, {4, 10}});
  EXPECT_THAT(plot.ToSvg(), HasSubstr("d=\"M34.4,14L134.4,14L134.4,234L34.4,234Z"
                                      "M334.4,14L434.4,14L434.4,234L334.4,234Z\""));
}

TEST(PlotTest, BarsStandOnTheirBottomAndEmptyOnesAreLeftOut) {
  Plot plot = MakePlot();
  plot.Bar("stall", 1, 2, 5, 10);
  plot.Bar("barrier", 1, 2, 10, 10);
  const std::string svg = plot.ToSvg();
  EXPECT_THAT(svg, HasSubstr("<rect class=\"bar s-stall\" x=\"134.4\" y=\"14.00\" width=\"100.00\" "
                             "height=\"110.00\"/>"));
  EXPECT_THAT(svg, Not(HasSubstr("s-barrier")));
}

TEST(PlotTest, SvgHasATitleAndDescriptionForScreenReaders) {
  EXPECT_THAT(MakePlot().ToSvg(),
              AllOf(HasSubstr("role=\"img\" aria-labelledby=\"p-title p-desc\""),
                    HasSubstr("<title id=\"p-title\">A &lt;title&gt;</title>"),
                    HasSubstr("<desc id=\"p-desc\">All &quot;there&quot; is</desc>")));
}

TEST(PlotTest, TipsAndNotesAreEscaped) {
  Plot plot = MakePlot();
  plot.Tip(0, 1, "a \"b\"\n<c>");
  plot.TipAt({2, 5}, "<d>");
  plot.TipAt({2, kNan}, "lost");
  plot.Note({4, 10}, "<peak>");
  plot.Rule({0, 5}, {4, 5});
  EXPECT_THAT(
      plot.ToSvg(),
      AllOf(HasSubstr("data-tip=\"a &quot;b&quot;\n&lt;c&gt;\""),
            HasSubstr("data-tip=\"&lt;d&gt;\""), HasSubstr(">&lt;peak&gt;</text>"),
            HasSubstr("<path class=\"rule\" d=\"M34.4,124L434.4,124\"/>"), Not(HasSubstr("lost"))));
}

TEST(PlotTest, AxesAreLabelled) {
  EXPECT_THAT(MakePlot().ToSvg(),
              AllOf(HasSubstr("class=\"x-label\" x=\"234.4\" y=\"272\">Step</text>"),
                    HasSubstr("class=\"x-tick\" x=\"434.4\" y=\"252\">4</text>"),
                    HasSubstr("class=\"y-tick\" x=\"26.4\" y=\"14\" dy=\".32em\">10</text>")));
}

// A plot is drawn twice: wide, and narrow for a phone.
TEST(PlotTest, NarrowPlotHasTheSameMarksAndFewerTickLabels) {
  Plot plot({.id = "p", .title = "t", .description = "d", .x_label = "Step", .width = 1136},
            Axis::LinearExact(0, 16000, Unit::kCount, 16), Axis::LinearExact(0, 10, Unit::kCount));
  plot.Bar("stall", 0, 4000, 0, 10);
  const std::string svg = plot.ToSvg();
  const std::string narrow = svg.substr(svg.find("<svg class=\"at-narrow\" id=\"p-narrow\""));
  EXPECT_THAT(svg, HasSubstr("<svg class=\"at-wide\" id=\"p\" viewBox=\"0 0 1136 280\""));
  EXPECT_THAT(narrow, AllOf(HasSubstr("viewBox=\"0 0 352 280\""), HasSubstr("bar s-stall"),
                            HasSubstr(">0</text>"), Not(HasSubstr(">1,000</text>")),
                            HasSubstr(">5,000</text>")));
  EXPECT_THAT(svg, HasSubstr(">1,000</text>"));
}

TEST(ShapePathTest, ShapesRepeatAfterFour) {
  EXPECT_STRNE(ShapePath(0), ShapePath(1));
  EXPECT_STRNE(ShapePath(2), ShapePath(3));
  EXPECT_STREQ(ShapePath(4), ShapePath(0));
}

}  // namespace
}  // namespace systole::emulator
