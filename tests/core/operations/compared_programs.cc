#include "tests/core/operations/compared_programs.h"

#include "absl/strings/str_cat.h"
#include "core/operations/kept_value.h"
#include "core/operations/program_runner.h"
#include "core/status/check.h"
#include "core/status/status_macros.h"
#include "core/tensor/cast_int64s.h"
#include "tests/core/operations/plain_cast.h"

namespace systole {
namespace {

// Makes an example from `kept`, as a feed does. `kept` is the value of the example after the first
// `steps` steps.
absl::Status RunRest(const RandomProgram& drawn, const std::shared_ptr<const Program>& program,
                     size_t steps, const Value& kept, absl::Span<uint8_t> out) {
  const auto dtype = static_cast<DType>(drawn.output.dtype());
  if (kept.type.element == ElementType::kFloat32) {
    return ProgramRunner::RunFrom(Lower(program, dtype, /*read_soon=*/false), kept, drawn.example,
                                  steps, out);
  }
  const LoweredProgram rest = Lower(std::make_shared<const Program>(program->From(steps)), dtype,
                                    /*read_soon=*/false);
  absl::StatusOr<ProgramRunner> runner = ProgramRunner::Create(rest, nullptr);
  SYSTOLE_CHECK(runner.ok());
  std::vector<uint8_t> pixels;
  const absl::string_view bytes(reinterpret_cast<const char*>(kept.uint8s.data()),
                                kept.uint8s.size());
  return runner->Run(rest, {.bytes = bytes, .shape = kept.type.shape}, drawn.example, pixels, out);
}

// Makes the example from each value that a cache can keep. Returns the first difference from
// `want`, or "". If a value cannot be made, it is skipped, because a feed would not keep it either.
std::string CompareCached(const RandomProgram& drawn, const std::shared_ptr<const Program>& program,
                          absl::Span<const uint8_t> want) {
  const absl::StatusOr<KeptValues> kept =
      KeptValuesOf(drawn.output, *program, static_cast<DType>(drawn.output.dtype()),
                   {.height = 20, .width = 20});
  if (!kept.ok()) return "";
  for (const KeptValue& value : kept->values) {
    if (value.finished) continue;  // A finished value is the whole example.
    Value input;
    input.type = program->input();
    input.bytes = drawn.stored;
    const absl::StatusOr<Value> made = program->Run(input, drawn.example, 0, value.steps);
    if (!made.ok()) continue;
    std::vector<uint8_t> got(want.size(), 0xa5);
    const absl::Status status = RunRest(drawn, program, value.steps, *made, absl::MakeSpan(got));
    const std::string from = absl::StrCat("from the cache, after ", value.steps, " steps: ");
    if (!status.ok()) return absl::StrCat(from, status.ToString());
    if (got != want) return absl::StrCat(from, "other bytes");
  }
  return "";
}

}  // namespace

absl::StatusOr<std::vector<uint8_t>> InterpretDrawn(const RandomProgram& drawn,
                                                    const Program& program) {
  Value input;
  input.type = program.input();
  input.bytes = drawn.stored;
  input.floats = drawn.floats;
  input.int64s = drawn.int64s;
  SYSTOLE_ASSIGN_OR_RETURN(const Value value, program.Interpret(input, drawn.example));
  const auto dtype = static_cast<DType>(drawn.output.dtype());
  std::vector<uint8_t> bytes(
      static_cast<size_t>(program.output().num_elements() * DTypeBytes(dtype)));
  if (value.type.element == ElementType::kInt64) {
    SYSTOLE_RETURN_IF_ERROR(CastInt64s(value.int64s, dtype, absl::MakeSpan(bytes)));
  } else {
    CastPlainly(value, dtype, absl::MakeSpan(bytes));
  }
  return bytes;
}

std::string CompareLowered(const RandomProgram& drawn, std::shared_ptr<const Program> program) {
  const absl::StatusOr<std::vector<uint8_t>> want = InterpretDrawn(drawn, *program);
  const auto dtype = static_cast<DType>(drawn.output.dtype());
  const auto bytes = static_cast<size_t>(program->output().num_elements() * DTypeBytes(dtype));
  const LoweredProgram lowered = Lower(program, dtype, /*read_soon=*/false);
  absl::StatusOr<ProgramRunner> runner = ProgramRunner::Create(lowered, nullptr);
  SYSTOLE_CHECK(runner.ok());
  std::vector<uint8_t> got(bytes, 0xa5);
  std::vector<uint8_t> pixels;
  absl::Status status = runner->Begin(lowered, drawn.stored, drawn.example).status();
  if (status.ok()) {
    status = runner->Run(lowered,
                         {.bytes = drawn.stored, .floats = drawn.floats, .int64s = drawn.int64s},
                         drawn.example, pixels, absl::MakeSpan(got));
  }
  if (status.code() != want.status().code()) {
    return absl::StrCat("lowered: ", status.ToString(),
                        ", interpreted: ", want.status().ToString());
  }
  if (!status.ok()) {
    runner->Drop();
    return "";
  }
  for (size_t i = 0; i < bytes; ++i) {
    if (got[i] != (*want)[i]) {
      return absl::StrCat("byte ", i, " of ", bytes, " is ", int{got[i]}, ", want ",
                          int{(*want)[i]});
    }
  }
  return CompareCached(drawn, program, *want);
}

}  // namespace systole
