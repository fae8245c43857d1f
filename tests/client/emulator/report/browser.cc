#include "tests/client/emulator/report/browser.h"

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/image/jpeg/jpeg_decoder.h"
#include "core/status/check.h"
#include "core/status/status_macros.h"
#include "core/text/markup_text.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/system/process.h"

namespace systole {
namespace {

absl::StatusOr<Picture> DecodePicture(const std::string& jpeg) {
  SYSTOLE_ASSIGN_OR_RETURN(JpegDecoder decoder, JpegDecoder::Create());
  SYSTOLE_ASSIGN_OR_RETURN(const ImageInfo info, decoder.ReadHeader(jpeg));
  Picture picture = {.width = info.width, .height = info.height};
  picture.pixels.resize(static_cast<size_t>(info.width) * info.height * 3);
  SYSTOLE_RETURN_IF_ERROR(
      decoder.Decode({.height = info.height, .width = info.width}, absl::MakeSpan(picture.pixels)));
  return picture;
}

}  // namespace

Rgb Picture::At(int x, int y) const {
  SYSTOLE_CHECK(x >= 0 && x < width && y >= 0 && y < height);
  const uint8_t* pixel = &pixels[(static_cast<size_t>(y) * width + x) * 3];
  return {pixel[0], pixel[1], pixel[2]};
}

OpenedPage OpenPage(const std::string& html, ColorScheme scheme, int width, int height,
                    int pixel_ratio) {
  const TempFolder folder;
  return OpenAddress(absl::StrCat("file://", folder.Write("page.html", html)), scheme, width,
                     height, pixel_ratio);
}

OpenedPage OpenAddress(const std::string& url, ColorScheme scheme, int width, int height,
                       int pixel_ratio) {
  const TempFolder folder;
  const char* path = std::getenv("PATH");
  // The name's ending makes the browser write a JPEG, which this repository can read.
  const std::string picture = folder / "page.jpeg";
  // The browser's environment has only these variables, because the browser must not inherit those
  // of a sanitizer's build. The browser's launcher writes to HOME, so HOME is the temporary folder.
  const Finished finished =
      Process(
          {"/usr/bin/env", "-i", absl::StrCat("PATH=", path == nullptr ? "/usr/bin:/bin" : path),
           absl::StrCat("HOME=", folder.path()), absl::StrCat("TMPDIR=", folder.path()), "chromium",
           "--headless",
           // Chromium refuses to run as root with its sandbox. The page is our own, so no sandbox
           // is needed.
           "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
           "--hide-scrollbars", "--force-color-profile=srgb",
           absl::StrCat("--user-data-dir=", folder / "profile"),
           absl::StrCat("--window-size=", width, ",", height),
           absl::StrCat("--force-device-scale-factor=", pixel_ratio),
           absl::StrCat("--blink-settings=preferredColorScheme=",
                        scheme == ColorScheme::kDark ? 0 : 1),
           "--enable-logging=stderr", "--dump-dom", absl::StrCat("--screenshot=", picture), url})
          .Wait();
  if (finished.exit_code == 127) {
    return {.error =
                "there is no `chromium` on the PATH: install Debian's package chromium "
                "(deploy/install_dependencies.sh --tests installs it)"};
  }
  if (finished.exit_code != 0) {
    return {.error =
                absl::StrCat("chromium ended with code ", finished.exit_code, ":\n", finished.err)};
  }
  absl::StatusOr<Picture> decoded = DecodePicture(ReadWholeFile(picture));
  if (!decoded.ok()) return {.error = decoded.status().ToString()};
  OpenedPage page = {.dom = finished.out, .picture = *std::move(decoded)};
  std::istringstream lines(finished.err);
  for (std::string line; std::getline(lines, line);) {
    // Only the lines of the page's console are kept. The other lines of stderr are the browser's
    // complaints about a machine without a desktop.
    if (absl::StrContains(line, ":CONSOLE")) absl::StrAppend(&page.console, line, "\n");
  }
  return page;
}

MeasuredFrames OpenInFrames(const std::vector<Frame>& frames, const std::string& script,
                            ColorScheme scheme, int height) {
  std::string body;
  int window_width = 500;
  for (size_t i = 0; i < frames.size(); ++i) {
    const std::string measuring = absl::StrReplaceAll(
        frames[i].html, {{"</body>", absl::StrCat("<script>addEventListener('load', () => {"
                                                  "parent.document.getElementById('measured-",
                                                  i, "').textContent = (() => {", script,
                                                  "})(); });</script></body>")}});
    absl::StrAppend(
        &body, "<pre id=\"measured-", i,
        "\" hidden></pre><iframe style=\"border: 0; display: block; width: ", frames[i].width,
        "px; height: ", height, "px\" srcdoc=\"", EscapeMarkup(measuring), "\"></iframe>");
    window_width = std::max(window_width, frames[i].width);
  }
  const OpenedPage page =
      OpenPage(absl::StrCat("<!DOCTYPE html><html style=\"color-scheme: light dark\">"
                            "<meta charset=\"utf-8\"><body style=\"margin: 0\">",
                            body, "</body></html>"),
               scheme, window_width, height, /*pixel_ratio=*/1);
  MeasuredFrames measured = {.error = page.error, .console = page.console};
  for (size_t i = 0; i < frames.size(); ++i) {
    const std::string begin = absl::StrCat("<pre id=\"measured-", i, "\" hidden=\"\">");
    const size_t from = page.dom.find(begin);
    measured.measured.emplace_back();
    if (from == std::string::npos) continue;
    const size_t at = from + begin.size();
    measured.measured.back() = page.dom.substr(at, page.dom.find("</pre>", at) - at);
  }
  return measured;
}

}  // namespace systole
