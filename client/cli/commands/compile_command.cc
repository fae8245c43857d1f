// `systole compile`: what a training step of a model costs on a chip.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/commands/commands.h"
#include "client/emulator/chip/chip.h"
#include "client/emulator/chip/compiler.h"
#include "client/emulator/chip/program_text.h"
#include "client/emulator/chip/published.h"
#include "client/emulator/model/load_model.h"
#include "core/json/json_writer.h"
#include "core/status/status_macros.h"
#include "core/tensor/dtype.h"

namespace systole {
namespace {

absl::StatusOr<DType> ParseInputDType(const std::string& name) {
  for (const DType dtype : emulator::kInputDTypes) {
    if (name == DTypeName(dtype)) return dtype;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--dtype '", name, "': want ", emulator::InputDTypeNames()));
}

class CompileCommand final : public Command {
 public:
  std::string name() const override { return "compile"; }
  std::string summary() const override {
    return "Lower a model for a chip: cycles, bytes and seconds of a step, layer by layer";
  }
  std::string example() const override {
    return "systole compile --model resnet50 --chip v3 --batch-per-core 128 --slice v3-8";
  }

  void Declare(OptionList& options) override {
    options.Required("--model", "NAME", &model_,
                     "A model that comes with systole, such as resnet50, or a textproto");
    options.Required("--chip", "NAME", &chip_,
                     "A chip that comes with systole (v2, v3, v4, v5e, v5p, v6e), or a textproto");
    options.Required("--batch-per-core", "B", &options_.per_core_batch,
                     "Examples a core takes in a step");
    options.Optional(
        "--slice", "NAME", &options_.slice,
        "The slice, such as v3-8, which sets the number of chips. Default: the chip's first slice");
    options.Optional("--dataflow", "NAME", &dataflow_,
                     "ws-db, or scalesim-os, scalesim-ws, scalesim-is for chips of one matrix unit "
                     "a core");
    options.Optional(
        "--overlap", "X", &options_.overlap,
        "Overlap of matrix time and memory time, as a part of the shorter of the two: 0 (none) to "
        "1 (all of it). Default: the chip's");
    options.Optional(
        "--layout", "NAME", &layout_,
        "Layout of the input in the chip's memory: nhwc, hwcn, nhwc-tiled, hwcn-tiled");
    options.Optional("--dtype", "NAME", &dtype_,
                     "Type of the input: bfloat16, float16, float32, uint8");
    options.Flag("--inference", &inference_, "Count only the forward pass");
    options.Flag("--program", &program_, "Print every operation, too");
  }

  absl::Status Run(const Console& console) override {
    SYSTOLE_ASSIGN_OR_RETURN(options_.dataflow, emulator::ParseDataflow(dataflow_));
    SYSTOLE_ASSIGN_OR_RETURN(options_.layout, emulator::ParseInfeedLayout(layout_));
    SYSTOLE_ASSIGN_OR_RETURN(options_.dtype, ParseInputDType(dtype_));
    if (options_.per_core_batch < 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("--batch-per-core ", options_.per_core_batch, ": want 1 or more"));
    }
    if (options_.overlap.has_value() && !(*options_.overlap >= 0 && *options_.overlap <= 1)) {
      return absl::InvalidArgumentError(
          absl::StrCat("--overlap ", *options_.overlap, ": want 0 to 1"));
    }
    options_.training = !inference_;
    SYSTOLE_ASSIGN_OR_RETURN(const emulator::Model model, emulator::LoadModel(model_));
    SYSTOLE_ASSIGN_OR_RETURN(const v1::Chip chip, emulator::LoadChip(chip_));
    SYSTOLE_ASSIGN_OR_RETURN(const emulator::ChipProgram program,
                             emulator::CompileProgram(model, chip, options_));
    if (options_.slice.empty()) {
      console.err << "no --slice: taking " << program.slice << ", the first of " << chip.name()
                  << "\n";
    }
    std::vector<emulator::Comparison> published;
    if (options_.training) {
      SYSTOLE_ASSIGN_OR_RETURN(published, emulator::CompareWithPublished(model, chip, options_));
    }
    if (console.json) {
      JsonWriter json;
      emulator::WriteProgram(program, published, program_, json);
      console.out << json.text() << "\n";
      return absl::OkStatus();
    }
    if (program_) console.out << emulator::ProgramListing(program) << "\n";
    console.out << emulator::ProgramTable(program, published);
    return absl::OkStatus();
  }

 private:
  std::string model_;
  std::string chip_;
  std::string dataflow_ = "ws-db";
  std::string layout_ = "hwcn-tiled";
  std::string dtype_ = "bfloat16";
  bool inference_ = false;
  bool program_ = false;
  emulator::CompileOptions options_;
};

}  // namespace

std::unique_ptr<Command> MakeCompileCommand() { return std::make_unique<CompileCommand>(); }

}  // namespace systole
