// The content of the server's page. The model holds the text of each part of the page. Both the
// page's HTML and the events that change the page are made from the model, so they show the same.
//
// Thread-safe: no state.
#ifndef SYSTOLE_SERVER_STATUSZ_PAGE_MODEL_H_
#define SYSTOLE_SERVER_STATUSZ_PAGE_MODEL_H_

#include <cstddef>
#include <string>
#include <vector>

#include "server/statusz/server_view.h"

namespace systole {

// The most streams and datasets that the page lists. Further ones are only counted: thousands
// of rows with each event would cost the server and the browser too much.
inline constexpr size_t kMaxRows = 100;

// A text that an event may change.
struct PageCell {
  std::string text;
  // The series whose value the cell shows, as `/metrics` writes it: `a_total{b="c"}`. Empty: none.
  std::string series = "";
  double value = 0;
};

struct PageTable {
  std::string id;
  std::string title;
  std::string caption;
  std::vector<std::string> headers;
  // The first cell is the row's header.
  std::vector<std::vector<PageCell>> rows;
  // A note about what is left out of the rows, such as "and 12 more". Empty: nothing is left out.
  std::string rest = "";
};

struct PageFact {
  std::string id;
  std::string label;
  PageCell cell;
};

// A plot of one number over the last minutes. The plot is a curve in a box of kPlotWidth x
// kPlotHeight.
inline constexpr int kPlotWidth = 600;
inline constexpr int kPlotHeight = 120;
struct PagePlot {
  std::string id;
  std::string title;
  std::string path;   // For the `d` of an SVG path. Empty: nothing is known yet.
  std::string most;   // The value at the upper edge.
  std::string words;  // What the curve shows, in words.
};

struct PageModel {
  std::string name;
  std::string state;  // "serving", "draining".
  std::vector<PageFact> facts;
  std::vector<PagePlot> plots;
  std::vector<PageTable> tables;
  std::string pictures;  // What the pictures are, or why there are none.
};

PageModel PageModelOf(const ServerView& view);

}  // namespace systole

#endif  // SYSTOLE_SERVER_STATUSZ_PAGE_MODEL_H_
