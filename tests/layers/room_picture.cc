#include "tests/layers/room_picture.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"

namespace systole::layers {
namespace {

// In pixels.
constexpr int kBoxWidth = 144;
constexpr int kBoxHeight = 26;
constexpr int kGap = 6;
constexpr int kMargin = 34;

// The rooms below a folder of the top level.
struct Band {
  absl::string_view folder;
  int boxes_a_line;
  absl::string_view colour;
};
constexpr Band kBands[] = {{"proto", 1, "#f3d9a4"},
                           {"core", 5, "#b9d7ea"},
                           {"client", 3, "#c5e3bf"},
                           {"server", 2, "#e9c3c3"}};

int BandOf(absl::string_view folder) {
  for (int band = 0; band < static_cast<int>(std::size(kBands)); ++band) {
    const absl::string_view top = kBands[band].folder;
    if (folder == top || absl::StartsWith(folder, absl::StrCat(top, "/"))) return band;
  }
  return 0;
}

// The text in a room's box: the room's folder without the folder of its band.
std::string Label(const Room& room, const Band& band) {
  const absl::string_view folder = room.folder;
  return std::string(folder == band.folder ? folder : folder.substr(band.folder.size() + 1));
}

std::string Text(int x, int y, absl::string_view anchor, int size, absl::string_view text) {
  return absl::StrCat("<text x=\"", x, "\" y=\"", y, "\" text-anchor=\"", anchor, "\" font-size=\"",
                      size, "\">", text, "</text>\n");
}

}  // namespace

std::string RoomPicture(const LayerRules& rules) {
  // The rooms by level and band.
  std::map<int, std::map<int, std::vector<const Room*>>, std::greater<>> rows;
  for (const Room& room : rules.rooms) rows[room.level][BandOf(room.folder)].push_back(&room);

  std::string boxes;
  int y = kMargin;
  int width = 0;
  for (auto& [level, bands] : rows) {
    int lines = 1;
    int left = kMargin;
    for (int band = 0; band < static_cast<int>(std::size(kBands)); ++band) {
      const int per_line = kBands[band].boxes_a_line;
      std::vector<const Room*>& rooms = bands[band];
      std::sort(rooms.begin(), rooms.end(),
                [](const Room* a, const Room* b) { return a->folder < b->folder; });
      for (int i = 0; i < static_cast<int>(rooms.size()); ++i) {
        const Room& room = *rooms[static_cast<size_t>(i)];
        const int x = left + i % per_line * (kBoxWidth + kGap);
        const int top = y + i / per_line * (kBoxHeight + kGap);
        absl::StrAppend(
            &boxes, "<g><title>", room.folder, " includes ",
            room.may_include.empty() ? "no other room" : absl::StrJoin(room.may_include, ", "),
            "</title><rect x=\"", x, "\" y=\"", top, "\" width=\"", kBoxWidth, "\" height=\"",
            kBoxHeight, "\" rx=\"4\" fill=\"", kBands[band].colour, "\"/>\n",
            Text(x + kBoxWidth / 2, top + 17, "middle", 12, Label(room, kBands[band])), "</g>\n");
        lines = std::max(lines, i / per_line + 1);
      }
      left += per_line * (kBoxWidth + kGap) + 2 * kGap;
    }
    width = left;
    const int height = lines * (kBoxHeight + kGap);
    absl::StrAppend(&boxes, Text(kMargin - 8, y + 17, "end", 11, absl::StrCat(level)));
    y += height + kGap;
    absl::StrAppend(&boxes, "<line x1=\"8\" y1=\"", y - kGap, "\" x2=\"", width, "\" y2=\"",
                    y - kGap, "\" stroke=\"#dddddd\"/>\n");
  }
  std::string headings;
  int left = kMargin;
  for (const Band& band : kBands) {
    const int band_width = band.boxes_a_line * (kBoxWidth + kGap);
    absl::StrAppend(&headings, Text(left + band_width / 2, 20, "middle", 15, band.folder));
    left += band_width + 2 * kGap;
  }
  return absl::StrCat(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 ", width, " ", y + 14,
      "\" font-family=\"sans-serif\">\n<rect width=\"", width, "\" height=\"", y + 14,
      "\" fill=\"white\"/>\n", headings, boxes,
      Text(width / 2, y + 6, "middle", 11,
           "A room includes only rooms of lower rows. The numbers are the levels of "
           "tests/layers/layer_rules.cc."),
      "</svg>\n");
}

}  // namespace systole::layers
