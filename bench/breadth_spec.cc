// Prints the spec of a pipeline of breadth_rows.h, for bench/peers: breadth_spec NAME.
#include <cstdio>
#include <string>

#include "bench/breadth_rows.h"
#include "google/protobuf/text_format.h"

int main(int argc, char** argv) {
  const std::string name = argc == 2 ? argv[1] : "";
  for (const systole::bench::BreadthRow& row : systole::bench::BreadthRows()) {
    if (row.name != name) continue;
    std::string text;
    google::protobuf::TextFormat::PrintToString(row.spec, &text);
    std::printf("%s", text.c_str());
    return 0;
  }
  std::fprintf(stderr, "breadth_spec: no pipeline is named '%s'\n", name.c_str());
  return 2;
}
