#include "client/emulator/chip/program_text.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace systole::emulator {
namespace {

std::string Milliseconds(double seconds) { return absl::StrFormat("%.3f ms", 1e3 * seconds); }

// A text such as "38.5 MB", in kB, MB or GB.
std::string Bytes(double bytes) {
  if (bytes >= 1e9) return absl::StrFormat("%.2f GB", bytes / 1e9);
  if (bytes >= 1e6) return absl::StrFormat("%.1f MB", bytes / 1e6);
  return absl::StrFormat("%.1f kB", bytes / 1e3);
}

std::string ShapeText(const GemmShape& gemm, int64_t repeats) {
  if (repeats == 0) return "-";
  std::string text = absl::StrCat(gemm.m, " ", gemm.k, " ", gemm.n);
  if (repeats > 1) absl::StrAppend(&text, " x", repeats);
  return text;
}

std::string FactsText(const ChipProgram& program) {
  return absl::StrFormat("%s for %s: %d %s of %d %s, %d examples a core, %s, %s, overlap %g\n\n",
                         program.model, program.slice, program.chips,
                         program.chips == 1 ? "chip" : "chips", program.cores / program.chips,
                         program.cores == program.chips ? "core" : "cores", program.per_core_batch,
                         program.training ? "training" : "inference",
                         DataflowName(program.dataflow), program.overlap);
}

std::string LayersText(const ChipProgram& program) {
  size_t name_width = 5, shape_width = 5;
  for (const LayerCost& layer : program.layers) {
    name_width = std::max(name_width, layer.name.size());
    shape_width = std::max(shape_width, ShapeText(layer.gemm, layer.repeats).size());
  }
  std::string text = absl::StrFormat("%-*s  %-*s  %8s  %10s  %6s  %9s  %9s  %-6s  %s\n", name_width,
                                     "layer", shape_width, "M K N", "tiles", "cycles", "util %",
                                     "memory MB", "ms", "bound", "with");
  for (const LayerCost& layer : program.layers) {
    std::string line = absl::StrFormat(
        "%-*s  %-*s  %8d  %10d  %6.1f  %9.1f  %9.3f  %-6s  %s", name_width, layer.name, shape_width,
        ShapeText(layer.gemm, layer.repeats), layer.tiles, layer.cycles, 100 * layer.utilisation,
        layer.memory_bytes / 1e6, 1e3 * layer.seconds, BoundName(layer.bound),
        absl::StrJoin(layer.fused, " "));
    absl::StripTrailingAsciiWhitespace(&line);
    absl::StrAppend(&text, line, "\n");
  }
  return text;
}

void AppendLine(std::string* text, absl::string_view name, absl::string_view value) {
  absl::StrAppendFormat(text, "%-14s %s\n", name, value);
}

std::string TotalsText(const ChipProgram& program) {
  const StepCost& step = program.step;
  std::string text;
  AppendLine(&text, "matrix",
             absl::StrFormat("%s: %d cycles, %.1f %% of the units' peak %.4g TF/s",
                             Milliseconds(step.matrix_s), step.cycles, 100 * step.utilisation,
                             program.peak_flops / 1e12));
  AppendLine(&text, "memory",
             absl::StrFormat("%s: %s at %.4g GB/s; not the limit above %.0f flops a byte",
                             Milliseconds(step.memory_s), Bytes(step.memory_bytes),
                             program.memory_bytes_per_s / 1e9, program.ridge_flops_per_byte));
  AppendLine(&text, "vector",
             absl::StrFormat("%s, of which matrix and memory do not hide %s",
                             Milliseconds(step.vector_s), Milliseconds(step.vector_excess_s)));
  AppendLine(&text, "gradients",
             absl::StrFormat("%s over the chip's cores, %s over the chips",
                             Milliseconds(step.core_sum_s), Milliseconds(step.all_reduce_s)));
  if (step.norm_all_reduce_s > 0) {
    AppendLine(&text, "batch norm",
               absl::StrFormat("%s for its statistics", Milliseconds(step.norm_all_reduce_s)));
  }
  AppendLine(&text, "step", Milliseconds(step.seconds));
  AppendLine(&text, "examples/s",
             absl::StrFormat("%.1f on %d %s, %.1f a core", program.examples_per_s(), program.cores,
                             program.cores == 1 ? "core" : "cores",
                             program.examples_per_s() / static_cast<double>(program.cores)));
  AppendLine(&text, "feed",
             absl::StrFormat("%s/s wanted (%s), %s/s a core", Bytes(program.feed_bytes_per_s()),
                             DTypeName(program.infeed.dtype),
                             Bytes(program.infeed.useful_bytes / step.seconds)));
  AppendLine(&text, "infeed",
             absl::StrFormat("%s: %s a core, %s as %s%s", Milliseconds(program.infeed.seconds),
                             Bytes(program.infeed.useful_bytes), Bytes(program.infeed.padded_bytes),
                             InfeedLayoutName(program.infeed.layout),
                             program.infeed.seconds > step.seconds
                                 ? absl::StrFormat(": LONGER THAN THE STEP, no feed gives the chip "
                                                   "more than %.1f examples/s",
                                                   static_cast<double>(program.global_batch()) /
                                                       program.infeed.seconds)
                                 : ""));
  AppendLine(&text, "memory needed",
             absl::StrFormat("about %s of %s a core%s", Bytes(program.needed_memory_bytes),
                             Bytes(program.memory_bytes),
                             program.needed_memory_bytes > program.memory_bytes
                                 ? ": TOO MUCH, take a smaller batch"
                                 : ""));
  return text;
}

std::string PublishedText(const std::vector<Comparison>& published) {
  std::string text = absl::StrFormat("%-22s  %10s  %10s  %7s  %s\n", "published examples/s",
                                     "measured", "here", "misfit", "source");
  for (const Comparison& c : published) {
    absl::StrAppendFormat(&text, "%-22s  %10.0f  %10.0f  %+6.1f%%  %s\n",
                          absl::StrCat(c.slice, ", ", c.per_core_batch, " a core"),
                          c.published_examples_per_s, c.emulated_examples_per_s, 100 * c.misfit(),
                          c.source);
  }
  return text;
}

void WriteGemm(const GemmShape& gemm, int64_t repeats, JsonWriter& json) {
  json.Field("m", gemm.m).Field("k", gemm.k).Field("n", gemm.n).Field("repeats", repeats);
}

void WriteLayer(const LayerCost& layer, JsonWriter& json) {
  json.BeginObject().Field("name", layer.name).Field("kind", layer.kind);
  json.Key("fused").BeginArray();
  for (const std::string& name : layer.fused) json.String(name);
  json.EndArray();
  WriteGemm(layer.gemm, layer.repeats, json);
  json.Field("tiles", layer.tiles).Field("cycles", layer.cycles);
  json.Field("utilisation", layer.utilisation).Field("flops", layer.flops);
  json.Field("memory_bytes", layer.memory_bytes).Field("matrix_s", layer.matrix_s);
  json.Field("memory_s", layer.memory_s).Field("vector_s", layer.vector_s);
  json.Field("seconds", layer.seconds).Field("bound", BoundName(layer.bound));
  json.Field("flops_per_byte", layer.flops_per_byte());
  json.Field("flops_per_s", layer.flops_per_s()).EndObject();
}

void WriteStep(const StepCost& step, JsonWriter& json) {
  json.BeginObject().Field("tiles", step.tiles).Field("cycles", step.cycles);
  json.Field("utilisation", step.utilisation).Field("flops", step.flops);
  json.Field("memory_bytes", step.memory_bytes).Field("matrix_s", step.matrix_s);
  json.Field("memory_s", step.memory_s).Field("vector_s", step.vector_s);
  json.Field("vector_excess_s", step.vector_excess_s).Field("compute_s", step.compute_s);
  json.Field("core_sum_s", step.core_sum_s).Field("all_reduce_s", step.all_reduce_s);
  json.Field("norm_all_reduce_s", step.norm_all_reduce_s);
  json.Field("seconds", step.seconds).EndObject();
}

void WriteOperation(const Op& op, const ChipProgram& program, JsonWriter& json) {
  json.BeginObject().Field("kind", OpKindName(op.kind)).Field("name", op.name);
  if (op.layer >= 0) json.Field("row", program.layers[static_cast<size_t>(op.layer)].name);
  if (op.kind == OpKind::kGemm) {
    WriteGemm(op.gemm, op.repeats, json);
    json.Field("tiles", op.tiles).Field("cycles", op.cycles).Field("macs", op.macs);
  }
  json.Field("bytes", op.bytes).Field("matrix_s", op.matrix_s).Field("memory_s", op.memory_s);
  json.Field("vector_s", op.vector_s).Field("transfer_s", op.transfer_s).EndObject();
}

void WriteComparison(const Comparison& comparison, JsonWriter& json) {
  json.BeginObject().Field("slice", comparison.slice);
  json.Field("per_core_batch", comparison.per_core_batch).Field("source", comparison.source);
  json.Field("published_examples_per_s", comparison.published_examples_per_s);
  json.Field("emulated_examples_per_s", comparison.emulated_examples_per_s);
  json.Field("misfit", comparison.misfit()).EndObject();
}

}  // namespace

std::string ProgramTable(const ChipProgram& program, const std::vector<Comparison>& published) {
  std::string text =
      absl::StrCat(FactsText(program), LayersText(program), "\n", TotalsText(program));
  if (!published.empty()) absl::StrAppend(&text, "\n", PublishedText(published));
  return text;
}

std::string ProgramListing(const ChipProgram& program) {
  std::string text;
  size_t width = 0;
  for (const Op& op : program.ops) width = std::max(width, op.name.size());
  for (size_t i = 0; i < program.ops.size(); ++i) {
    const Op& op = program.ops[i];
    absl::StrAppendFormat(&text, "%5d  %-10s  %-*s  %10s  %s", i, OpKindName(op.kind), width,
                          op.name, Bytes(op.bytes),
                          Milliseconds(op.matrix_s + op.memory_s + op.transfer_s));
    if (op.kind == OpKind::kGemm) {
      absl::StrAppendFormat(&text, "  [%s] in %d tiles, %d cycles", ShapeText(op.gemm, op.repeats),
                            op.tiles, op.cycles);
    }
    absl::StrAppend(&text, "\n");
  }
  return text;
}

void WriteProgram(const ChipProgram& program, const std::vector<Comparison>& published,
                  bool with_operations, JsonWriter& json) {
  json.BeginObject().Field("model", program.model).Field("chip", program.chip);
  json.Field("slice", program.slice).Field("chips", program.chips).Field("cores", program.cores);
  json.Field("per_core_batch", program.per_core_batch).Field("training", program.training);
  json.Field("dataflow", DataflowName(program.dataflow)).Field("overlap", program.overlap);
  json.Field("core_peak_flops", program.peak_flops);
  json.Field("core_memory_bytes_per_s", program.memory_bytes_per_s);
  json.Field("ridge_flops_per_byte", program.ridge_flops_per_byte);
  json.Key("layers").BeginArray();
  for (const LayerCost& layer : program.layers) WriteLayer(layer, json);
  json.EndArray().Key("step");
  WriteStep(program.step, json);
  json.Field("examples_per_s", program.examples_per_s());
  json.Field("feed_bytes_per_s", program.feed_bytes_per_s());
  json.Key("infeed").BeginObject();
  json.Field("layout", InfeedLayoutName(program.infeed.layout));
  json.Field("dtype", DTypeName(program.infeed.dtype));
  json.Field("core_useful_bytes", program.infeed.useful_bytes);
  json.Field("core_padded_bytes", program.infeed.padded_bytes);
  json.Field("seconds", program.infeed.seconds).EndObject();
  json.Field("core_needed_memory_bytes", program.needed_memory_bytes);
  json.Field("core_memory_bytes", program.memory_bytes);
  json.Key("published").BeginArray();
  for (const Comparison& comparison : published) WriteComparison(comparison, json);
  json.EndArray();
  if (with_operations) {
    json.Key("operations").BeginArray();
    for (const Op& op : program.ops) WriteOperation(op, program, json);
    json.EndArray();
  }
  json.EndObject();
}

}  // namespace systole::emulator
