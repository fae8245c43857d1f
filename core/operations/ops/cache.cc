// Asks for what the transforms before it made to be kept. The values pass as they are.
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/operations/ops/operation_rows.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

class CacheOperation final : public Operation {
 public:
  explicit CacheOperation(v1::Cache::Store store) : store_(store) {}

  absl::StatusOr<ValueType> TypeOf(const ValueType& input) const override {
    SYSTOLE_RETURN_IF_ERROR(WantImage(input));
    if (input.element == ElementType::kUint8) return input;
    return absl::InvalidArgumentError(
        absl::StrCat("keeps uint8, not ", ElementTypeName(input.element),
                     "; put it right behind the decode, or behind round_to_uint8"));
  }

  absl::StatusOr<Value> Apply(Value input, const ExampleKey&) const override { return input; }

  std::optional<v1::Cache::Store> Keeps() const override { return store_; }

 private:
  const v1::Cache::Store store_;
};

}  // namespace

OperationRow CacheRow() {
  return {
      .kind = v1::Transform::kCache,
      .guide =
          {
              .summary = "Keeps the images so far, so that they are decoded once.",
              .example = "cache { store: MEMORY }",
              .tensorflow = "tf.data.Dataset.cache",
              .dali = "fn.decoders.image(cache_size)",
              .parity = "exact: it changes no byte; the server's flags bound what is kept",
          },
      .changes_nothing = true,
      .create = [](const OperationArguments& arguments)
          -> absl::StatusOr<std::unique_ptr<const Operation>> {
        const v1::Cache::Store store = arguments.transform.cache().store();
        if (!v1::Cache::Store_IsValid(store)) {
          return absl::InvalidArgumentError(
              absl::StrCat("has store: ", static_cast<int>(store), ", want MEMORY or DISK"));
        }
        return std::make_unique<CacheOperation>(store);
      },
  };
}

}  // namespace systole
