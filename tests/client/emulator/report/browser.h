// A real browser that opens a page without a screen: headless Chromium. Each call starts a process
// with a fresh profile in a temporary folder. The process needs neither a display nor /dev/shm, and
// can run as root.
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

// How the browser shows a page.
struct OpenedPage {
  std::string error;    // The browser's own error. After an error the other fields are empty.
  std::string dom;      // The page as HTML, after its scripts have run.
  std::string console;  // Lines that the page wrote to the console, errors included.
  Picture picture;
};

// Opens the page in a window of `width` x `height` CSS pixels. The picture has `pixel_ratio` times
// as many pixels in each direction.
OpenedPage OpenPage(const std::string& html, ColorScheme scheme, int width, int height,
                    int pixel_ratio);

// Opens the page at an address in the same way. The browser waits until everything that the page
// loads has arrived.
OpenedPage OpenAddress(const std::string& url, ColorScheme scheme, int width, int height,
                       int pixel_ratio);

struct Frame {
  std::string html;
  int width = 0;
};

struct MeasuredFrames {
  std::string error, console;         // As in OpenedPage.
  std::vector<std::string> measured;  // What the script returned in each frame, as HTML.
};

// Opens each page in a frame that is `width` CSS pixels wide. A frame can be as narrow as a phone's
// screen, whereas Chromium has no window narrower than 500. All frames are in one window, because a
// browser takes seconds to start. When a page and its pictures are loaded, `script` runs in the
// page.
MeasuredFrames OpenInFrames(const std::vector<Frame>& frames, const std::string& script,
                            ColorScheme scheme, int height);

}  // namespace systole

#endif  // SYSTOLE_TESTS_CLIENT_EMULATOR_REPORT_BROWSER_H_
