// Prints a step for `systole feed`: digests or the values of one output, a line per core or
// example.
//
// Thread-compatible.
#ifndef SYSTOLE_CLIENT_CLI_COMMANDS_STEP_PRINTER_H_
#define SYSTOLE_CLIENT_CLI_COMMANDS_STEP_PRINTER_H_

#include <ostream>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/step/step.h"
#include "core/batch/slice_layout.h"

namespace systole {

enum class StepPrinting {
  kNothing,
  kDigest,          // `step core hex`
  kExampleDigests,  // `step core slot hex`
  kValues,          // `step core v v ..`: the examples of one output; `-` stands for each example
                    // with `valid` = 0, whose values mean nothing.
};

class StepPrinter {
 public:
  // `output` is used by kValues only.
  //   InvalidArgument  the layout has no such output. The message names its outputs.
  static absl::StatusOr<StepPrinter> Create(StepPrinting printing, absl::string_view output,
                                            const SliceLayout& layout);

  // Prints lines by core, then by slot. The caller passes steps in order.
  void Print(const Step& step, std::ostream& out) const;

 private:
  StepPrinter(StepPrinting printing, int output) : printing_(printing), output_(output) {}
  void PrintValues(const Step& step, int core, std::ostream& out) const;

  StepPrinting printing_;
  int output_;
};

// The element of `dtype` at `bytes`, as the shortest text that reads back as the same value.
std::string ElementText(DType dtype, const uint8_t* bytes);

}  // namespace systole

#endif  // SYSTOLE_CLIENT_CLI_COMMANDS_STEP_PRINTER_H_
