// `systole gemm`: what one matrix product costs on a systolic array.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "client/cli/commands/commands.h"
#include "client/emulator/array/cycle_model.h"
#include "client/emulator/array/gemm_check.h"
#include "core/json/json_writer.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

using emulator::ArrayShape;
using emulator::GemmCheck;
using emulator::GemmCycles;
using emulator::GemmShape;

// Reads `count` decimal numbers. The cycle model checks their range.
absl::StatusOr<std::vector<int64_t>> ParseNumbers(const std::string& option,
                                                  const std::string& text, char separator,
                                                  size_t count, const std::string& wanted) {
  const std::vector<absl::string_view> parts = absl::StrSplit(text, separator);
  std::vector<int64_t> numbers;
  for (const absl::string_view part : parts) {
    int64_t number;
    if (absl::SimpleAtoi(part, &number)) numbers.push_back(number);
  }
  if (parts.size() != count || numbers.size() != count) {
    return absl::InvalidArgumentError(absl::StrCat(option, " '", text, "': want ", wanted));
  }
  return numbers;
}

const char* Verdict(bool agree) { return agree ? "agree" : "DIFFER"; }

std::string ToText(const GemmCycles& cost, const std::optional<GemmCheck>& check) {
  std::string text = absl::StrFormat("cycles       %d\nfolds        %d\nutilisation  %.2f %%\n",
                                     cost.cycles, cost.folds, 100 * cost.utilisation);
  if (cost.split != emulator::UnitSplit::kNone) {
    absl::StrAppend(&text, "split        ", emulator::UnitSplitName(cost.split), "\n");
  }
  if (check.has_value()) {
    absl::StrAppendFormat(&text,
                          "stepped      cycles %s (%d), values %s (%d of %d differ from the exact "
                          "loop)\n",
                          Verdict(check->cycles_agree()), check->stepped_cycles,
                          Verdict(check->values_agree()), check->differing_values, check->values);
  }
  return text;
}

class GemmCommand final : public Command {
 public:
  std::string name() const override { return "gemm"; }
  std::string summary() const override {
    return "Price one matrix product on a systolic array, in cycles";
  }
  std::string example() const override {
    return "systole gemm --array 32x32 --mkn 256,256,128 --dataflow scalesim-ws --step";
  }

  void Declare(OptionList& options) override {
    options.Required("--array", "RxC", &array_, "Rows and columns of the array, such as 128x128");
    options.Required("--mkn", "M,K,N", &mkn_, "The product [M,K] * [K,N]");
    options.Required("--dataflow", "NAME", &dataflow_,
                     "ws-db (weight-stationary, the next weights load meanwhile, as in a TPU), or "
                     "SCALE-Sim's cycles: scalesim-os, scalesim-ws, scalesim-is");
    options.Optional("--units", "N", &units_,
                     "Matrix units that share the product, by rows or by tiles, whichever takes "
                     "fewer cycles (ws-db)");
    options.Flag(
        "--step", &step_,
        "Also step the arrays, cycle by cycle, through a product of this shape and compare "
        "values and cycles; exit code 5 if they differ");
  }

  absl::Status Run(const Console& console) override {
    SYSTOLE_ASSIGN_OR_RETURN(
        const std::vector<int64_t> rc,
        ParseNumbers("--array", array_, 'x', 2, "ROWSxCOLUMNS, such as 128x128"));
    SYSTOLE_ASSIGN_OR_RETURN(
        const std::vector<int64_t> mkn,
        ParseNumbers("--mkn", mkn_, ',', 3, "three numbers M,K,N, such as 256,256,128"));
    SYSTOLE_ASSIGN_OR_RETURN(const emulator::Dataflow dataflow, emulator::ParseDataflow(dataflow_));
    const ArrayShape array = {rc[0], rc[1]};
    const GemmShape gemm = {mkn[0], mkn[1], mkn[2]};
    SYSTOLE_ASSIGN_OR_RETURN(const GemmCycles cost,
                             emulator::CountCycles(gemm, array, dataflow, units_));
    std::optional<GemmCheck> check;
    if (step_) {
      SYSTOLE_ASSIGN_OR_RETURN(check, emulator::CheckByStepping(gemm, array, dataflow, units_));
    }
    console.out << (console.json ? ToJson(gemm, array, cost, check) + "\n" : ToText(cost, check));
    return check.has_value() ? emulator::AgreementOf(*check) : absl::OkStatus();
  }

 private:
  std::string ToJson(const GemmShape& gemm, const ArrayShape& array, const GemmCycles& cost,
                     const std::optional<GemmCheck>& check) const {
    JsonWriter json;
    json.BeginObject().Field("dataflow", dataflow_);
    json.Field("rows", array.rows).Field("columns", array.columns);
    json.Field("units", units_);
    json.Field("m", gemm.m).Field("k", gemm.k).Field("n", gemm.n);
    json.Field("cycles", cost.cycles).Field("folds", cost.folds);
    json.Field("split", emulator::UnitSplitName(cost.split));
    json.Field("utilisation", cost.utilisation);
    if (check.has_value()) {
      json.Key("stepped").BeginObject().Field("cycles", check->stepped_cycles);
      json.Field("cycles_agree", check->cycles_agree()).Field("values", check->values);
      json.Field("differing_values", check->differing_values);
      json.Field("values_agree", check->values_agree()).EndObject();
    }
    return json.EndObject().text();
  }

  std::string array_;
  std::string mkn_;
  std::string dataflow_;
  int64_t units_ = 1;
  bool step_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeGemmCommand() { return std::make_unique<GemmCommand>(); }

}  // namespace systole
