// The contact sheet in a real browser: its pictures load, and it fits a phone.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "client/look/contact_sheet.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/emulator/report/browser.h"
#include "tests/client/look/sheet_page.h"
#include "tests/client/look/sheet_steps.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kHeight = 3000;

// A page with long names that have no place for a line break, a wide image, a long list, padding
// and a masked record.
std::string SamplePage(const std::string& name = std::string(100, 'n')) {
  v1::FeedSpec spec = ParseSpec(R"pb(
    epochs: 1
    global_batch: 8
    num_cores: 2
    tail: PAD
    on_corrupt: MASK
    outputs {
      feature: "image"
      transforms { decode_jpeg {} }
      transforms { resize { height: 16 width: 24 } }
      transforms { normalize { mean: 127.5 stddev: 63.75 } }
      dtype: BFLOAT16
      layout: HWCN
    }
    outputs {
      name: "wide"
      feature: "wide"
      transforms { decode_raw {} }
      shape: [ 4, 2000, 1 ]
      dtype: UINT8
    }
    outputs { name: "list" feature: "list" shape: 100 dtype: FLOAT32 }
    outputs { name: "label" feature: "label" dtype: INT64 }
  )pb");
  spec.mutable_outputs(0)->set_name(name);
  spec.set_dataset(name);
  const SheetFeed feed = {
      .tensors = {BlocksTensor(name, DType::kBfloat16, v1::HWCN, 3,
                               [](uint8_t pixel, int64_t) { return (pixel - 127.5) / 63.75; }),
                  {"wide",
                   DType::kUint8,
                   {4, 2000, 1},
                   v1::NHWC,
                   [](int64_t, int64_t, int64_t i) { return static_cast<double>(i % 256); }},
                  {"list",
                   DType::kFloat32,
                   {100},
                   v1::NHWC,
                   [](int64_t, int64_t, int64_t i) { return static_cast<double>(i) / 7; }},
                  LabelTensor()},
      .valid = [](int64_t step, int64_t example) {
        return step == 0 && example < 6 && example != 2;
      }};
  const absl::StatusOr<std::string> page = ContactSheet(spec, MakeSteps(feed, 0, 1),
                                                        {.source = std::string(100, 's'),
                                                         .version = std::string(100, 'v'),
                                                         .explanation = name + ": fused",
                                                         .order = OrderOf(spec, 6)});
  EXPECT_THAT(page, IsOk());
  return page.value_or("");
}

// Returns the window's and the page's width, how many of the pictures are loaded, and which
// elements reach beyond the window. Elements in a box that scrolls do not count.
constexpr char kMeasure[] = R"js(
  const images = [...document.images];
  const wide = [...document.querySelectorAll('body *')].filter(
      element => !element.closest('.scroll, pre') &&
                 (element.getBoundingClientRect().right > innerWidth + .5 ||
                  element.getBoundingClientRect().left < 0));
  return [innerWidth, document.documentElement.scrollWidth,
          images.filter(image => image.naturalWidth > 0 && image.width > 0).length, images.length,
          'wide:' + wide.map(element => element.tagName + '.' + element.className).join(' ')]
      .join(' ');
)js";

// The page allows no scripts. This change allows the test's script.
std::string WithScripts(const std::string& page) {
  return absl::StrReplaceAll(page,
                             {{"img-src data:", "img-src data:; script-src 'unsafe-inline'"}});
}

TEST(ContactSheetPageTest, PicturesLoadAndNothingIsWiderThanTheWindow) {
  const std::string page = WithScripts(SamplePage());
  const std::vector<Frame> frames = {{page, 400}, {page, 800}, {page, 1200}};
  for (const ColorScheme scheme : {ColorScheme::kLight, ColorScheme::kDark}) {
    const MeasuredFrames opened = OpenInFrames(frames, kMeasure, scheme, kHeight);
    ASSERT_EQ(opened.error, "");
    EXPECT_EQ(opened.console, "");
    // Five examples have two pictures each.
    EXPECT_THAT(opened.measured,
                ElementsAre("400 400 10 10 wide:", "800 800 10 10 wide:", "1200 1200 10 10 wide:"));
  }
}

// Checks that the test above can fail.
TEST(ContactSheetPageTest, TheMeasurementDetectsABrokenPictureAndATooWidePage) {
  const std::string page = absl::StrReplaceAll(
      WithScripts(SamplePage()),
      {{"</style>", "h1 { width: 700px; }</style>"}, {"base64,/9j/", "base64,AAAA"}});
  EXPECT_THAT(OpenInFrames({{page, 400}}, kMeasure, ColorScheme::kLight, kHeight).measured,
              ElementsAre(HasSubstr(" 0 10 wide:H1.")));
}

TEST(ContactSheetPageTest, TheBackgroundFollowsTheColorScheme) {
  for (const ColorScheme scheme : {ColorScheme::kLight, ColorScheme::kDark}) {
    const OpenedPage page = OpenPage(SamplePage(), scheme, 1200, kHeight, 1);
    ASSERT_EQ(page.error, "");
    EXPECT_EQ(page.console, "");
    const Rgb corner = page.picture.At(3, 3);
    EXPECT_EQ(corner.r > 200 && corner.g > 200 && corner.b > 200, scheme == ColorScheme::kLight);
    EXPECT_EQ(corner.r < 60 && corner.g < 60 && corner.b < 60, scheme == ColorScheme::kDark);
  }
}

TEST(ContactSheetPageTest, HostileNamesStayText) {
  // The page must be safe even if scripts could run.
  const OpenedPage page =
      OpenPage(WithScripts(SamplePage("</style><script>console.error('out')</script>"
                                      "<img src=x onerror=console.error(1)>\"'&amp;")),
               ColorScheme::kLight, 800, kHeight, 1);
  ASSERT_EQ(page.error, "");
  EXPECT_EQ(page.console, "");
  EXPECT_THAT(page.dom, HasSubstr("\"'&amp;amp;: fused</pre>"));
  EXPECT_THAT(page.dom,
              HasSubstr("<h1>&lt;/style&gt;&lt;script&gt;console.error('out')&lt;/script&gt;"
                        "&lt;img src=x onerror=console.error(1)&gt;\"'&amp;amp;</h1>"));
}

}  // namespace
}  // namespace systole
