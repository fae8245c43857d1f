#include "client/python/extension/feed_options.h"

#include <cstdint>
#include <string>
#include <variant>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client/lanes/feed_option_table.h"
#include "nanobind/stl/string.h"

namespace nb = nanobind;

namespace systole::python {
namespace {

// Types gives the Python name of an option's type. ToPython and FromPython convert the option's
// value.
struct Types {
  const FeedOption& option;
  const char* operator()(const bool*) const { return "bool"; }
  const char* operator()(const int64_t*) const { return "int"; }
  const char* operator()(const double*) const { return "float"; }
  const char* operator()(const absl::Duration*) const { return "Duration"; }
  const char* operator()(const std::string*) const {
    return option.value == "FILE" ? "str | os.PathLike[str]" : "str";
  }
};

struct ToPython {
  nb::object operator()(const absl::Duration* field) const {
    return nb::cast(absl::ToDoubleSeconds(*field));
  }
  nb::object operator()(const auto* field) const { return nb::cast(*field); }
};

struct FromPython {
  nb::handle value;
  bool operator()(absl::Duration* field) const {
    double seconds = 0;
    if (!nb::try_cast(value, seconds)) return false;
    *field = absl::Seconds(seconds);
    return true;
  }
  bool operator()(auto* field) const { return nb::try_cast(value, *field); }
};

nb::str Text(absl::string_view text) { return nb::str(text.data(), text.size()); }

nb::list FeedOptions() {
  nb::list rows;
  FeedClientOptions defaults;
  for (const FeedOption& option : FeedOptionTable()) {
    const FeedOption::Field field = option.field(defaults);
    nb::dict row;
    row["name"] = Text(option.name);
    row["type"] = std::visit(Types{option}, field);
    row["default"] = std::visit(ToPython(), field);
    row["help"] = Text(option.help);
    rows.append(row);
  }
  return rows;
}

}  // namespace

void SetFeedOptions(const nb::dict& keywords, FeedClientOptions& options) {
  for (const auto [key, value] : keywords) {
    const std::string name = nb::cast<std::string>(key);
    const FeedOption* row = nullptr;
    for (const FeedOption& option : FeedOptionTable()) {
      if (option.name == name) row = &option;
    }
    if (row == nullptr) nb::raise_type_error("there is no option %s", name.c_str());
    const FeedOption::Field field = row->field(options);
    if (std::visit(FromPython{value}, field)) continue;
    const std::string seen = nb::cast<std::string>(nb::repr(value));
    nb::raise_type_error("%s is %.200s, want %s", name.c_str(), seen.c_str(),
                         std::visit(Types{*row}, field));
  }
}

void DeclareFeedOptions(nb::module_& module) {
  module.def("feed_options", &FeedOptions, "The rows of the table of a feed's options.");
}

}  // namespace systole::python
