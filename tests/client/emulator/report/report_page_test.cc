// Opens the report page in a real browser. The page's numbers must be those of the JSON, and its
// plots must be drawn.
#include <cmath>
#include <cstdlib>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "client/emulator/report/html_report.h"
#include "client/emulator/report/run_report.h"
#include "core/text/markup_text.h"
#include "gmock/gmock.h"
#include "google/protobuf/struct.pb.h"
#include "google/protobuf/util/json_util.h"
#include "gtest/gtest.h"
#include "tests/client/emulator/report/browser.h"
#include "tests/client/emulator/report/sample_reports.h"

namespace systole::emulator {
namespace {

using google::protobuf::Struct;
using google::protobuf::Value;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::IsSupersetOf;
using testing::UnorderedElementsAreArray;

constexpr int kWidth = 1280, kHeight = 3400, kPixelRatio = 2;

OpenedPage Open(const std::string& html, ColorScheme scheme) {
  return OpenPage(html, scheme, kWidth, kHeight, kPixelRatio);
}

Struct ParseJson(const std::string& text) {
  Struct json;
  const auto status = google::protobuf::util::JsonStringToMessage(text, &json);
  EXPECT_TRUE(status.ok()) << text.substr(0, 200);
  return json;
}

// The text between the first `begin` and the `end` after it.
std::string Between(const std::string& text, const std::string& begin, const std::string& end) {
  const size_t from = text.find(begin);
  if (from == std::string::npos) return "";
  const size_t at = from + begin.size();
  return text.substr(at, text.find(end, at) - at);
}

// The value at a path such as "epochs.0.training.loss"; null if there is none.
const Value* Find(const Struct& json, const std::string& path) {
  const Struct* object = &json;
  const Value* value = nullptr;
  for (const absl::string_view part : absl::StrSplit(path, '.')) {
    int index;
    if (value != nullptr && value->has_list_value()) {
      if (!absl::SimpleAtoi(part, &index) || index >= value->list_value().values_size()) {
        return nullptr;
      }
      value = &value->list_value().values(index);
    } else {
      if (value != nullptr) object = &value->struct_value();
      const auto found = object->fields().find(std::string(part));
      if (found == object->fields().end()) return nullptr;
      value = &found->second;
    }
  }
  return value;
}

// A number on the page: <data data-key="KEY" value="VALUE">TEXT</data>.
struct ShownNumber {
  std::string key, value, text;
};

std::vector<ShownNumber> NumbersIn(const std::string& dom) {
  std::vector<ShownNumber> numbers;
  const std::string opening = "<data data-key=\"";
  for (size_t at = dom.find(opening); at != std::string::npos; at = dom.find(opening, at + 1)) {
    const std::string element = dom.substr(at, dom.find("</data>", at) - at);
    numbers.push_back({Between(element, opening, "\""), Between(element, "value=\"", "\""),
                       element.substr(element.find('>') + 1)});
  }
  return numbers;
}

// The number in a text: 0.0123 for "12.3 ms". The tolerance is half of the last digit: 0.00005.
struct ReadNumber {
  double value = NAN;
  double tolerance = 0;
};

ReadNumber ReadAloud(const std::string& text) {
  const std::map<std::string, double> units = {
      {"", 1},        {"s", 1},      {"ms", 1e-3},     {"µs", 1e-6},      {"ns", 1e-9},
      {"%", 0.01},    {"B", 1},      {"kB", 1e3},      {"MB", 1e6},       {"GB", 1e9},
      {"TB", 1e12},   {"GB/s", 1e9}, {"MB/s", 1e6},    {"FLOP", 1},       {"MFLOP", 1e6},
      {"GFLOP", 1e9}, {"FLOP/s", 1}, {"GFLOP/s", 1e9}, {"TFLOP/s", 1e12}, {"FLOP/B", 1}};
  const std::vector<std::string> parts = absl::StrSplit(text, ' ');
  const auto unit = units.find(parts.size() > 1 ? parts[1] : "");
  if (unit == units.end()) return {};
  const std::string digits = absl::StrReplaceAll(parts[0], {{",", ""}});
  ReadNumber number;
  if (!absl::SimpleAtod(digits, &number.value)) return {};
  double last_digit = 1;
  for (size_t i = digits.find('.'); i != std::string::npos && i + 1 < digits.size(); ++i) {
    last_digit /= 10;
  }
  number.value *= unit->second;
  number.tolerance = 0.5001 * last_digit * unit->second;
  return number;
}

// Expects that each number on the page equals the JSON's, and that no top-level number is missing.
void ExpectNumbersOfJson(const std::string& dom, const Struct& json) {
  std::set<std::string> keys;
  for (const ShownNumber& shown : NumbersIn(dom)) {
    SCOPED_TRACE(absl::StrCat(shown.key, " is shown as '", shown.text, "'"));
    keys.insert(shown.key);
    const Value* value = Find(json, shown.key);
    ASSERT_NE(value, nullptr);
    ASSERT_TRUE(value->has_number_value());
    EXPECT_EQ(std::strtod(shown.value.c_str(), nullptr), value->number_value());
    const ReadNumber read = ReadAloud(shown.text);
    EXPECT_NEAR(read.value, value->number_value(), read.tolerance);
  }
  std::vector<std::string> wanted;
  for (const auto& [key, value] : json.fields()) {
    if (value.has_number_value()) wanted.push_back(key);
  }
  EXPECT_THAT(wanted, testing::Not(IsEmpty()));
  EXPECT_THAT(keys, IsSupersetOf(wanted));
}

// A script that is appended to a page. For a few places of every line, bar and dot of every plot,
// it writes a line of text "PLOT SERIES R G B X Y". The picture must have the colour R G B at X Y.
constexpr char kProbe[] = R"js(<script>
const lines = [];
for (const plot of document.querySelectorAll('.plot svg')) {
  if (plot.getClientRects().length === 0) continue;  // Hidden: each plot comes wide and narrow.
  for (const mark of plot.querySelectorAll('.line, .bar, .dot')) {
    const is_line = mark.classList.contains('line');
    const style = getComputedStyle(mark), box = mark.getBoundingClientRect();
    if (mark.classList.contains('bar') && (box.width < 3 || box.height < 3)) continue;
    const color = (is_line ? style.stroke : style.fill).match(/\d+/g).slice(0, 3);
    const series = [...mark.classList].find(name => name.startsWith('s-'));
    const places = [];
    if (is_line) {
      for (let i = 1; i < 20; ++i) {
        const at = mark.getPointAtLength(i / 20 * mark.getTotalLength());
        places.push(at.matrixTransform(mark.getScreenCTM()));
      }
    } else {
      places.push({x: box.x + box.width / 2, y: box.y + box.height / 2});
    }
    for (const at of places) lines.push([plot.id, series, ...color, at.x, at.y].join(' '));
  }
}
const out = document.createElement('pre');
out.id = 'probe';
out.textContent = lines.join('\n') + '\n';
document.body.append(out);
</script>)js";

struct InkSpot {
  std::string plot_and_series;
  Rgb color;
  double x = 0, y = 0;  // CSS pixels from the page's top left corner.
};

std::vector<InkSpot> InkSpotsIn(const std::string& dom) {
  std::vector<InkSpot> spots;
  std::istringstream lines(Between(dom, "<pre id=\"probe\">", "</pre>"));
  std::string plot, series;
  InkSpot spot;
  while (lines >> plot >> series >> spot.color.r >> spot.color.g >> spot.color.b >> spot.x >>
         spot.y) {
    spot.plot_and_series = plot + " " + series;
    spots.push_back(spot);
  }
  return spots;
}

bool IsNear(const Rgb& a, const Rgb& b) {
  // JPEG halves the resolution of colour, so the colours of neighbouring pixels mix a little.
  constexpr int kTolerance = 48;
  return std::abs(a.r - b.r) < kTolerance && std::abs(a.g - b.g) < kTolerance &&
         std::abs(a.b - b.b) < kTolerance;
}

// Whether some pixel has the spot's colour and is at most one CSS pixel away, in each direction.
bool HasInk(const Picture& picture, const InkSpot& spot) {
  const int x = static_cast<int>(spot.x * kPixelRatio), y = static_cast<int>(spot.y * kPixelRatio);
  for (int dy = -kPixelRatio; dy <= kPixelRatio; ++dy) {
    for (int dx = -kPixelRatio; dx <= kPixelRatio; ++dx) {
      if (x + dx < 0 || y + dy < 0 || x + dx >= picture.width || y + dy >= picture.height) continue;
      if (IsNear(picture.At(x + dx, y + dy), spot.color)) return true;
    }
  }
  return false;
}

double MeanBrightness(const Picture& picture) {
  double sum = 0;
  for (const uint8_t value : picture.pixels) sum += value;
  return sum / static_cast<double>(picture.pixels.size());
}

// For each "PLOT SERIES", the share of its spots where the picture has the spot's colour.
std::map<std::string, double> InkShares(const Picture& picture, const std::vector<InkSpot>& spots) {
  std::map<std::string, std::pair<int, int>> counts;
  for (const InkSpot& spot : spots) {
    auto& [inked, all] = counts[spot.plot_and_series];
    inked += HasInk(picture, spot) ? 1 : 0;
    ++all;
  }
  std::map<std::string, double> shares;
  for (const auto& [name, count] : counts) {
    shares[name] = static_cast<double>(count.first) / count.second;
  }
  return shares;
}

// Expects that the page has exactly the series `plots_and_series`, and that all of them are drawn.
void ExpectInk(const OpenedPage& page, const std::vector<std::string>& plots_and_series) {
  std::vector<std::string> drawn;
  for (const auto& [name, share] : InkShares(page.picture, InkSpotsIn(page.dom))) {
    drawn.push_back(name);
    // Not 1, because where two marks cross, the upper mark hides the lower mark.
    EXPECT_GE(share, 0.8) << name;
  }
  EXPECT_THAT(drawn, UnorderedElementsAreArray(plots_and_series));
}

void ExpectScheme(const Picture& picture, ColorScheme scheme) {
  ASSERT_EQ(picture.width, kWidth * kPixelRatio);
  const double brightness = MeanBrightness(picture);
  if (scheme == ColorScheme::kDark) {
    EXPECT_LT(brightness, 70);
    EXPECT_GT(brightness, 5);  // The page must not be all black.
  } else {
    EXPECT_GT(brightness, 200);
    EXPECT_LT(brightness, 250);  // The page must not be all white.
  }
}

// Expects that the JSON inside the page is what `--json` prints, and that the page shows the
// numbers of this JSON.
void ExpectJsonOf(const RunReport& report, const std::string& dom) {
  const Struct embedded =
      ParseJson(Between(dom, "<script type=\"application/json\" id=\"report\">", "</script>"));
  const Struct printed = ParseJson(ToJson(report));
  EXPECT_EQ(embedded.DebugString(), printed.DebugString());
  ExpectNumbersOfJson(dom, printed);
}

// Opens the report's page. Expects no errors, and checks numbers, colour scheme and plots.
void ExpectGoodPage(const RunReport& report, ColorScheme scheme,
                    const std::vector<std::string>& plots_and_series) {
  const OpenedPage page = Open(
      absl::StrReplaceAll(ToHtml(report), {{"</body>", absl::StrCat(kProbe, "</body>")}}), scheme);
  ASSERT_EQ(page.error, "");
  EXPECT_EQ(page.console, "");
  ExpectJsonOf(report, page.dom);
  ExpectScheme(page.picture, scheme);
  ExpectInk(page, plots_and_series);
}

const std::vector<std::string> kTrainingMarks = {
    "plot-loss s-training",       "plot-loss s-validation",    "plot-accuracy s-training",
    "plot-accuracy s-validation", "plot-learning-rate s-rate", "plot-steps s-compute",
    "plot-steps s-stall",         "plot-cores s-stall"};

const std::vector<std::string> kPacedMarks = {
    "plot-steps s-compute",   "plot-steps s-stall",     "plot-steps s-barrier",
    "plot-cores s-stall",     "plot-cores s-barrier",   "plot-roofline s-roof",
    "plot-roofline s-matrix", "plot-roofline s-memory", "plot-roofline s-vector"};

const std::vector<std::string> kLoadMarks = {
    "plot-waits s-p50",    "plot-waits s-p90",     "plot-waits s-p99", "plot-waits s-max",
    "plot-rates s-wanted", "plot-rates s-arrived", "plot-cpus s-cpus"};

TEST(ReportPageTest, TrainingPageShowsTheJsonNumbersAndDrawsEveryPlot) {
  ExpectGoodPage(SampleTraining("flowers-cnn", 3, 40), ColorScheme::kLight, kTrainingMarks);
}

TEST(ReportPageTest, TrainingPageShowsNumbersAndPlotsInDarkMode) {
  ExpectGoodPage(SampleTraining("flowers-cnn", 3, 40), ColorScheme::kDark, kTrainingMarks);
}

TEST(ReportPageTest, PacedRunPageShowsTheJsonNumbersAndDrawsEveryPlot) {
  ExpectGoodPage(SamplePaced(8, 120), ColorScheme::kLight, kPacedMarks);
}

TEST(ReportPageTest, PacedRunPageShowsNumbersAndPlotsInDarkMode) {
  ExpectGoodPage(SamplePaced(8, 120), ColorScheme::kDark, kPacedMarks);
}

TEST(ReportPageTest, LoadTestPageShowsTheJsonNumbersAndDrawsEveryPlot) {
  for (const ColorScheme scheme : {ColorScheme::kLight, ColorScheme::kDark}) {
    ExpectGoodPage(SampleLoad(), scheme, kLoadMarks);
  }
}

TEST(ReportPageTest, HostileNamesStayText) {
  const RunReport report = SampleTraining(
      "</script><script>console.error('out')</script><img src=x onerror=console.error(1)>\"'&amp;",
      1, 4);
  const OpenedPage page = Open(ToHtml(report), ColorScheme::kLight);
  ASSERT_EQ(page.error, "");
  EXPECT_EQ(page.console, "");
  EXPECT_EQ(Between(page.dom, "<h1>", "</h1>"),
            "&lt;/script&gt;&lt;script&gt;console.error('out')&lt;/script&gt;"
            "&lt;img src=x onerror=console.error(1)&gt;\"'&amp;amp;");
  ExpectJsonOf(report, page.dom);
}

// ---- Widths ----

// A script that returns the window's and the page's width, the number of plots, the smallest text
// size in the plots, and the contrast of the verdict's colours. Then come the plots that reach
// beyond the window, and the texts that reach beyond their figure.
constexpr char kMeasure[] = R"js(
const cut = [];
let smallest = 99, plots = 0;
for (const plot of document.querySelectorAll('.plot svg')) {
  if (plot.getClientRects().length === 0) continue;
  ++plots;
  const frame = plot.getBoundingClientRect(), card = plot.closest('figure').getBoundingClientRect();
  if (frame.left < 0 || frame.right > innerWidth) cut.push(plot.id);
  for (const text of plot.querySelectorAll('text')) {
    const box = text.getBoundingClientRect();
    if (box.left < card.left || box.right > card.right) cut.push(text.textContent);
    smallest = Math.min(smallest, parseFloat(getComputedStyle(text).fontSize) * frame.width /
                                      plot.viewBox.baseVal.width);
  }
}
const light = color => {
  const [r, g, b] = color.match(/\d+/g).map(
      v => v / 255 <= .04045 ? v / 255 / 12.92 : ((v / 255 + .055) / 1.055) ** 2.4);
  return .2126 * r + .7152 * g + .0722 * b;
};
const style = getComputedStyle(document.querySelector('.verdict'));
const lights = [light(style.color), light(style.backgroundColor)].sort((a, b) => b - a);
return [innerWidth, document.documentElement.scrollWidth, plots, smallest,
     (lights[0] + .05) / (lights[1] + .05), 'cut:' + cut.join('|')].join(' ');
)js";

struct Measured {
  double window = 0, page = 0, plots = 0, smallest_text = 0, contrast = 0;
  std::string cut;
};

std::vector<Measured> Measure(const std::vector<Frame>& frames, ColorScheme scheme) {
  const MeasuredFrames opened = OpenInFrames(frames, kMeasure, scheme, kHeight);
  EXPECT_EQ(opened.error, "");
  EXPECT_EQ(opened.console, "");
  std::vector<Measured> all;
  for (const std::string& line : opened.measured) {
    Measured& measured = all.emplace_back();
    std::istringstream text(line);
    text >> measured.window >> measured.page >> measured.plots >> measured.smallest_text >>
        measured.contrast;
    std::getline(text, measured.cut);
  }
  return all;
}

// Adds a long address and a long note, which have no place for a line break.
RunReport WithLongNames(RunReport report) {
  report.facts.push_back({"long", "Servers", std::string(300, 'a')});
  report.notes.push_back(std::string(300, 'n'));
  return report;
}

TEST(ReportPageTest, APageFitsEveryWidthAndCutsNoPlot) {
  std::vector<Frame> frames;
  std::vector<RunMode> modes;
  for (const RunReport& report :
       {WithLongNames(SamplePaced(8, 120)), WithLongNames(SampleTraining("flowers", 3, 40)),
        WithLongNames(SampleLoad())}) {
    for (const int width : {400, 800, 1400}) {
      frames.push_back({.html = ToHtml(report), .width = width});
      modes.push_back(report.mode);
    }
  }
  for (const ColorScheme scheme : {ColorScheme::kLight, ColorScheme::kDark}) {
    const std::vector<Measured> all = Measure(frames, scheme);
    for (size_t i = 0; i < frames.size(); ++i) {
      SCOPED_TRACE(absl::StrCat(RunModeName(modes[i]), " at ", frames[i].width));
      EXPECT_EQ(all[i].window, frames[i].width);
      EXPECT_LE(all[i].page, frames[i].width);
      EXPECT_EQ(all[i].cut, " cut:");
      EXPECT_EQ(all[i].plots, modes[i] == RunMode::kFunctional ? 5 : 3);
      EXPECT_GE(all[i].smallest_text, 9);
      EXPECT_GE(all[i].contrast, 4.5);  // The least contrast that WCAG AA allows.
    }
  }
}

TEST(ReportPageTest, VerdictOfEveryGradeMatchesTheJsonWithEnoughContrast) {
  RunReport report = SamplePaced(8, 20);
  std::vector<Frame> frames;
  std::vector<std::string> verdicts;
  for (const Verdict::Grade grade : {Verdict::Grade::kNeutral, Verdict::Grade::kGood,
                                     Verdict::Grade::kFair, Verdict::Grade::kBad}) {
    report.verdict = {.text = "input-bound: <36 %> of the time", .grade = grade};
    frames.push_back({.html = ToHtml(report), .width = 400});
    verdicts.push_back(
        EscapeMarkup(ParseJson(ToJson(report)).fields().at("verdict").string_value()));
  }
  for (const ColorScheme scheme : {ColorScheme::kLight, ColorScheme::kDark}) {
    for (const Measured& measured : Measure(frames, scheme)) EXPECT_GE(measured.contrast, 4.5);
    const MeasuredFrames shown =
        OpenInFrames(frames, "return document.querySelector('span[data-key=verdict]').textContent;",
                     scheme, kHeight);
    ASSERT_EQ(shown.error, "");
    EXPECT_EQ(shown.measured, verdicts);
  }
}

// Checks that APageFitsEveryWidthAndCutsNoPlot can fail.
TEST(ReportPageTest, MeasureDetectsTooWidePagesAndCutLabels) {
  const std::string html = absl::StrReplaceAll(
      ToHtml(SamplePaced(8, 20)),
      {{"</style>",
        "h1 { width: 700px; } #plot-steps-narrow .y-tick { font-size: 60px; }</style>"}});
  const Measured measured = Measure({{html, 400}}, ColorScheme::kLight).at(0);
  EXPECT_EQ(measured.window, 400);
  EXPECT_GE(measured.page, 700);
  EXPECT_THAT(measured.cut, testing::HasSubstr("ms"));
}

// Checks that the tests of numbers and ink can fail.
TEST(ReportPageTest, ChecksDetectScriptErrorsAndFadedMarks) {
  const std::string html = absl::StrReplaceAll(
      ToHtml(SampleTraining("m", 1, 40)),
      {{"</style>", "#plot-steps { opacity: .3; }</style>"},
       {"</body>", absl::StrCat("<script>nothing.at.all()</script>", kProbe, "</body>")}});
  const OpenedPage page = Open(html, ColorScheme::kLight);
  ASSERT_EQ(page.error, "");
  EXPECT_THAT(page.console, HasSubstr("nothing is not defined"));
  std::map<std::string, double> shares = InkShares(page.picture, InkSpotsIn(page.dom));
  EXPECT_EQ(shares["plot-steps s-compute"], 0);
  EXPECT_EQ(shares["plot-cores s-stall"], 1);
}

}  // namespace
}  // namespace systole::emulator
