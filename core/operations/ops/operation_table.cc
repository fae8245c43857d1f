#include "core/operations/ops/operation_table.h"

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "core/operations/ops/operation_rows.h"
#include "core/status/check.h"
#include "google/protobuf/text_format.h"

namespace systole {

absl::Span<const OperationRow> Operations() {
#define SYSTOLE_CALL_ROW(NAME) NAME(),
  static const std::vector<OperationRow>* const rows =
      new std::vector<OperationRow>{SYSTOLE_OPERATIONS(SYSTOLE_CALL_ROW)};
#undef SYSTOLE_CALL_ROW
  return *rows;
}

absl::Span<const MixRow> MixOperations() {
  static constexpr MixRow kRows[] = {
      {
          .name = "mixup",
          .guide =
              {
                  .summary = "Blends an example and its labels with the next one of its group.",
                  .example =
                      "mix { group: 8 images: 'image' labels: 'label' mixup { alpha: 0.2 } }",
                  .tensorflow = "keras_cv.layers.MixUp",
                  .torchvision = "MixUp",
                  .dali = "fn.permute_batch",
                  .parity = "different: draws of our own, one for each example, and the partner is "
                            "the next example of the group",
              },
      },
      {
          .name = "cutmix",
          .guide =
              {
                  .summary = "Puts a rectangle of the next image of the group into an image, and "
                             "blends the labels by its area.",
                  .example = "mix { group: 8 images: 'image' labels: 'label' cutmix {} }",
                  .tensorflow = "keras_cv.layers.CutMix",
                  .torchvision = "CutMix",
                  .dali = "fn.multi_paste",
                  .parity = "different: draws of our own, one for each example, and the partner is "
                            "the next example of the group; the rectangle's rule is torchvision's",
              },
      },
  };
  return kRows;
}

const OperationRow* FindOperation(v1::Transform::KindCase kind) {
  for (const OperationRow& row : Operations()) {
    if (row.kind == kind) return &row;
  }
  return nullptr;
}

v1::Transform WithDefaults(const OperationRow& row, v1::Transform transform) {
  if (row.write_defaults != nullptr) row.write_defaults(transform);
  return transform;
}

std::vector<v1::TransformRun> PossibleRuns(const OperationRow& row) {
  v1::Transform transform;
  SYSTOLE_CHECK(
      google::protobuf::TextFormat::ParseFromString(std::string(row.guide.example), &transform));
  transform = WithDefaults(row, std::move(transform));
  const auto create = [&](absl::Span<const int64_t> stored_shape) {
    return row.create(
        {.transform = transform, .draws = Draws(row.draws, 0, ""), .stored_shape = stored_shape});
  };
  // decode_raw needs a shape, and the other decoders refuse one. The shape does not change the ways
  // in which an operation can run.
  auto operation = create({});
  if (!operation.ok()) operation = create({1, 1, 3});
  SYSTOLE_CHECK(operation.ok());
  std::vector<v1::TransformRun> runs;
  if (!(*operation)->Parts().empty()) runs.push_back(v1::FUSED);
  runs.push_back((*operation)->by_row() != ByRow::kNo ? v1::BY_ROW : v1::ALONE);
  return runs;
}

std::string OperationName(v1::Transform::KindCase kind) {
  return v1::Transform::descriptor()->FindFieldByNumber(static_cast<int>(kind))->name();
}

std::string OperationNames() {
  return absl::StrJoin(Operations(), ", ", [](std::string* out, const OperationRow& row) {
    out->append(OperationName(row.kind));
  });
}

}  // namespace systole
