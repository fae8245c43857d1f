// A real browser that opens a page without a screen: Chromium, headless. Each call is a process of
// its own with a fresh profile in a temporary folder; it needs neither a display nor /dev/shm, and
// runs as root.
//
// Thread-safe: no state.
#ifndef SYSTOLE_TESTS_CLIENT_EMULATOR_REPORT_BROWSER_H_
#define SYSTOLE_TESTS_CLIENT_EMULATOR_REPORT_BROWSER_H_

#include <cstdint>
#include <string>
#include <vector>

namespace systole {

enum class ColorScheme { kLight, kDark };

struct Rgb {
  int r = 0, g = 0, b = 0;
};

struct Picture {
  int width = 0, height = 0;
  std::vector<uint8_t> pixels;  // [height, width, 3]

  Rgb At(int x, int y) const;
};

// What the browser made of a page.
struct OpenedPage {
  std::string error;    // Of the browser itself; if there is one, all else is empty.
  std::string dom;      // After its scripts have run, as HTML.
  std::string console;  // Lines that the page wrote to the console; errors are written there too.
  Picture picture;
};

// In a window of `width` x `height` CSS pixels; the picture has `pixel_ratio` times as many pixels
// each way.
OpenedPage OpenPage(const std::string& html, ColorScheme scheme, int width, int height,
                    int pixel_ratio);

struct MeasuredPage {
  OpenedPage page;
  std::string measured;  // What a script found out, as HTML.
};

// Opens `html` in a frame of `width` pixels, as on a phone's screen: Chromium has no window below
// 500. When the page and its pictures are loaded `script` runs; what it returns is `measured`.
MeasuredPage OpenInFrame(const std::string& html, const std::string& script, ColorScheme scheme,
                         int width, int height);

}  // namespace systole

#endif  // SYSTOLE_TESTS_CLIENT_EMULATOR_REPORT_BROWSER_H_
