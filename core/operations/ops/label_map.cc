// Looks up each int64 value in a table, as tf.lookup.StaticHashTable does.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/interrupt/interrupt.h"
#include "core/operations/ops/operation_rows.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

constexpr int kMaxKeys = 65536;

// Each key, with the value that replaces it.
using Entries = std::vector<std::pair<int64_t, int64_t>>;

// The entries of `map`, sorted by key. REQUIRES: as many keys as values.
Entries EntriesOf(const v1::LabelMap& map) {
  Entries entries;
  for (int i = 0; i < map.keys_size(); ++i) entries.emplace_back(map.keys(i), map.values(i));
  std::sort(entries.begin(), entries.end());
  return entries;
}

class LabelMap final : public Operation {
 public:
  LabelMap(Entries entries, std::optional<int64_t> otherwise)
      : entries_(std::move(entries)), otherwise_(otherwise) {}

  absl::StatusOr<ValueType> TypeOf(const ValueType& input) const override {
    SYSTOLE_RETURN_IF_ERROR(WantInt64(input));
    return input;
  }

  absl::StatusOr<Value> Apply(Value input, const ExampleKey&) const override {
    std::optional<int64_t> unknown;
    InParts(input.int64s.size(), [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end && !unknown.has_value(); ++i) {
        int64_t& x = input.int64s[i];
        const auto found =
            std::lower_bound(entries_.begin(), entries_.end(), x,
                             [](const auto& entry, int64_t key) { return entry.first < key; });
        if (found != entries_.end() && found->first == x) {
          x = found->second;
        } else if (otherwise_.has_value()) {
          x = *otherwise_;
        } else {
          unknown = x;
        }
      }
    });
    if (!unknown.has_value()) return input;
    return absl::DataLossError(absl::StrCat("label_map has no key ", *unknown,
                                            "; add it, or set default_value for all other values"));
  }

 private:
  Entries entries_;
  std::optional<int64_t> otherwise_;
};

}  // namespace

OperationRow LabelMapRow() {
  return {
      .kind = v1::Transform::kLabelMap,
      .guide =
          {
              .summary = "Replaces each label by the value that a table gives for it.",
              .example = "label_map { keys: [3, 7] values: [0, 1] default_value: -1 }",
              .tensorflow = "tf.lookup.StaticHashTable",
              .torchvision = "target_transform",
              .dali = "fn.lookup_table",
              .parity = "exact",
          },
      .create = [](const OperationArguments& arguments)
          -> absl::StatusOr<std::unique_ptr<const Operation>> {
        const v1::LabelMap& map = arguments.transform.label_map();
        if (map.keys_size() != map.values_size() || map.keys_size() < 1 ||
            map.keys_size() > kMaxKeys) {
          return absl::InvalidArgumentError(absl::StrCat("has ", map.keys_size(), " keys and ",
                                                         map.values_size(), " values, want 1 to ",
                                                         kMaxKeys, " keys and as many values"));
        }
        Entries entries = EntriesOf(map);
        const auto twice = std::adjacent_find(
            entries.begin(), entries.end(),
            [](const auto& one, const auto& other) { return one.first == other.first; });
        if (twice != entries.end()) {
          return absl::InvalidArgumentError(
              absl::StrCat("has the key ", twice->first, " twice, want each once"));
        }
        return std::make_unique<LabelMap>(
            std::move(entries),
            map.has_default_value() ? std::optional(map.default_value()) : std::nullopt);
      },
      .write_defaults =
          [](v1::Transform& transform) {
            // Two specs that differ only in the order of the keys have the same canonical form.
            v1::LabelMap& map = *transform.mutable_label_map();
            if (map.keys_size() != map.values_size()) return;
            const Entries entries = EntriesOf(map);
            for (int i = 0; i < map.keys_size(); ++i) {
              map.set_keys(i, entries[static_cast<size_t>(i)].first);
              map.set_values(i, entries[static_cast<size_t>(i)].second);
            }
          },
  };
}

}  // namespace systole
