#include "core/plan/where_plan.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/dataset/absent_feature.h"
#include "core/interrupt/interrupt.h"
#include "core/order/selection.h"
#include "core/status/status_macros.h"
#include "core/text/did_you_mean.h"
#include "core/text/foreign_text.h"

namespace systole {
namespace {

using Numbers = google::protobuf::RepeatedField<double>;
using Selects = google::protobuf::RepeatedPtrField<v1::Select>;

// How many positions are looked up between two checks for an interruption. Each look-up takes some
// microseconds at most.
constexpr int64_t kPositionsAtOnce = 1 << 12;

absl::Status Refuse(absl::string_view field, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(field, what));
}

// Translates a condition and all conditions within it.
class Translator {
 public:
  absl::StatusOr<Condition> Translate(const v1::Where& where, std::string field, int level) {
    if (level > kMaxWhereLevels) {
      return Refuse(field, absl::StrCat(" is more than ", kMaxWhereLevels, " levels deep"));
    }
    if (++conditions_ > kMaxWhereConditions) {
      return Refuse(field,
                    absl::StrCat(" is one condition too many; want at most ", kMaxWhereConditions));
    }
    Condition condition = {.field = std::move(field)};
    const int ways = (HasTests(where) || !where.feature().empty() ? 1 : 0) +
                     (where.all().empty() ? 0 : 1) + (where.any().empty() ? 0 : 1);
    if (ways != 1) {
      return Refuse(condition.field, ways == 0
                                         ? " has no condition; want tests of a feature, `all` "
                                           "or `any`"
                                         : " has several of: tests of a feature, `all`, `any`; "
                                           "want one of them; to combine several, make each a "
                                           "condition of `all`");
    }
    if (where.all().empty() && where.any().empty()) {
      SYSTOLE_RETURN_IF_ERROR(SetTests(where, condition));
      return condition;
    }
    condition.all = !where.all().empty();
    const auto& parts = condition.all ? where.all() : where.any();
    for (int i = 0; i < parts.size(); ++i) {
      SYSTOLE_ASSIGN_OR_RETURN(
          condition.parts.emplace_back(),
          Translate(parts[i],
                    absl::StrCat(condition.field, condition.all ? ".all[" : ".any[", i, "]"),
                    level + 1));
    }
    return condition;
  }

 private:
  static bool HasTests(const v1::Where& where) {
    return !where.in().empty() || !where.not_in().empty() || where.has_less() ||
           where.has_less_equal() || where.has_greater() || where.has_greater_equal() ||
           where.has_present() || where.has_min_length() || where.has_max_length();
  }

  static absl::Status SetTests(const v1::Where& where, Condition& condition) {
    const std::string& field = condition.field;
    if (where.feature().empty()) return Refuse(field, ".feature names no feature");
    if (where.feature().size() > kMaxColumnNameBytes) {
      return Refuse(field, absl::StrCat(".feature has ", where.feature().size(),
                                        " bytes, want at most ", kMaxColumnNameBytes));
    }
    if (!HasTests(where)) {
      return Refuse(field, absl::StrCat(" does not test feature '", ForeignName(where.feature()),
                                        "'; want in, less, present, min_length or another test"));
    }
    condition.feature = where.feature();
    SYSTOLE_RETURN_IF_ERROR(SetNumbers(where.in(), field, ".in", condition.in));
    SYSTOLE_RETURN_IF_ERROR(SetNumbers(where.not_in(), field, ".not_in", condition.not_in));
    const auto set = [&field](bool has, double number, absl::string_view name,
                              std::optional<double>& to) {
      if (!has) return absl::OkStatus();
      if (number != number) return Refuse(field, absl::StrCat(name, " is not a number"));
      to = number;
      return absl::OkStatus();
    };
    SYSTOLE_RETURN_IF_ERROR(set(where.has_less(), where.less(), ".less", condition.less));
    SYSTOLE_RETURN_IF_ERROR(
        set(where.has_less_equal(), where.less_equal(), ".less_equal", condition.less_equal));
    SYSTOLE_RETURN_IF_ERROR(
        set(where.has_greater(), where.greater(), ".greater", condition.greater));
    SYSTOLE_RETURN_IF_ERROR(set(where.has_greater_equal(), where.greater_equal(), ".greater_equal",
                                condition.greater_equal));
    if (where.has_present()) condition.present = where.present();
    const auto set_length = [&field](bool has, int64_t length, absl::string_view name,
                                     std::optional<int64_t>& to) {
      if (!has) return absl::OkStatus();
      if (length < 0) {
        return Refuse(field, absl::StrCat(name, " is ", length, ", want 0 or more values"));
      }
      to = length;
      return absl::OkStatus();
    };
    SYSTOLE_RETURN_IF_ERROR(set_length(where.has_min_length(), where.min_length(), ".min_length",
                                       condition.min_length));
    return set_length(where.has_max_length(), where.max_length(), ".max_length",
                      condition.max_length);
  }

  static absl::Status SetNumbers(const Numbers& numbers, absl::string_view field,
                                 absl::string_view name, std::vector<double>& to) {
    if (numbers.size() > kMaxWhereValues) {
      return Refuse(field, absl::StrCat(name, " has ", numbers.size(), " values, want at most ",
                                        kMaxWhereValues));
    }
    for (int i = 0; i < numbers.size(); ++i) {
      if (numbers[i] != numbers[i]) {
        return Refuse(field, absl::StrCat(name, "[", i, "] is not a number"));
      }
    }
    to.assign(numbers.begin(), numbers.end());
    return absl::OkStatus();
  }

  int conditions_ = 0;
};

void AppendSelects(const Selects& selects, int count, std::string& key) {
  for (int i = 0; i < count; ++i) {
    const std::string step = selects[i].SerializeAsString();
    absl::StrAppend(&key, step.size(), ":", step);
  }
}

// Returns a text for `step`. Two steps have the same text only if their lists are equal.
std::string KeyOf(const v1::FeedSpec& spec, const Dataset& dataset, const WhereStep& step) {
  const auto& members = MembersOf(spec);
  if (step.member != kOwnSelect) {
    std::string key =
        absl::StrCat(dataset.members()[static_cast<size_t>(step.member)]->number(), ";");
    AppendSelects(members[step.member].select(), step.step + 1, key);
    return key;
  }
  std::string key;
  for (const auto& [member, prefix] : dataset.zipped()) {
    absl::StrAppend(&key, member->number(), ":", prefix.size(), ":", prefix, ";");
  }
  if (members.empty() && key.empty()) absl::StrAppend(&key, dataset.number(), ";");
  for (int i = 0; i < members.size(); ++i) {
    absl::StrAppend(&key, dataset.members()[static_cast<size_t>(i)]->number(), ";");
    AppendSelects(members[i].select(), members[i].select_size(), key);
    absl::StrAppend(&key, ";");
  }
  AppendSelects(spec.select(), step.step + 1, key);
  return key;
}

// A text to add to the error for a missing column. If the first record that can be described lacks
// a feature of the condition, the text suggests a feature with a similar name. "" if there is
// nothing to suggest.
std::string MeantFeature(const Condition& condition, const Dataset& dataset) {
  std::vector<std::string> known;
  for (const FeatureDescription& feature : dataset.features()) known.push_back(feature.name);
  for (const std::string& feature : FeaturesOf(condition)) {
    if (std::find(known.begin(), known.end(), feature) != known.end()) continue;
    if (std::string meant = DidYouMean(feature, known); !meant.empty()) {
      return absl::StrCat("; there may be no feature '", ForeignName(feature), "'", meant);
    }
  }
  return "";
}

// The number of conditions: `where` itself and all conditions within it.
int ConditionsIn(const v1::Where& where) {
  int conditions = 1;
  for (const v1::Where& part : where.all()) conditions += ConditionsIn(part);
  for (const v1::Where& part : where.any()) conditions += ConditionsIn(part);
  return conditions;
}

absl::StatusOr<RecordList> MakeList(const Condition& condition, const Dataset& dataset,
                                    const Selection& before, LookUpMemory& memory) {
  std::set<std::string> found;
  absl::StatusOr<std::vector<uint64_t>> records = [&] {
    const LookUpMemory::Share share = memory.Take();
    return dataset.RecordsThatMeet(condition, share.bytes(), found);
  }();
  if (InterruptRequested()) return InterruptedError();
  if (absl::IsFailedPrecondition(records.status())) {
    return absl::FailedPreconditionError(absl::StrCat(
        condition.field, ": ", records.status().message(), MeantFeature(condition, dataset)));
  }
  SYSTOLE_RETURN_IF_ERROR(records.status());
  // A feature may have columns although no record has the feature.
  for (const std::string& feature : FeaturesOf(condition)) {
    if (!found.contains(feature)) return NoRecordHas(dataset, feature);
  }
  if (before.is_whole()) return RecordList(*std::move(records), dataset.num_records());
  const int64_t positions = before.num_records();
  std::vector<uint64_t> chosen(static_cast<size_t>((positions + 63) / 64));
  SelectionWalk walk;
  for (int64_t i = 0; i < positions; ++i) {
    if (i % kPositionsAtOnce == 0 && InterruptRequested()) return InterruptedError();
    const auto record = static_cast<uint64_t>(before.RecordAt(i, &walk));
    chosen[static_cast<size_t>(i / 64)] |= ((*records)[record / 64] >> (record % 64) & 1)
                                           << (i % 64);
  }
  return RecordList(std::move(chosen), positions);
}

}  // namespace

absl::Status ForEachWhere(const v1::FeedSpec& spec, VisitWhere visit) {
  for (int member = kOwnSelect; member < MembersOf(spec).size(); ++member) {
    const Selects& selects =
        member == kOwnSelect ? spec.select() : MembersOf(spec)[member].select();
    for (int i = 0; i < selects.size(); ++i) {
      if (!selects[i].has_where()) continue;
      SYSTOLE_RETURN_IF_ERROR(
          visit(member, selects[i].where(),
                absl::StrCat(SelectPrefix(spec, member), "select[", i, "].where")));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Condition> ConditionOf(const v1::Where& where, absl::string_view field) {
  return Translator().Translate(where, std::string(field), /*level=*/1);
}

absl::Status CheckWheres(const v1::FeedSpec& spec) {
  int wheres = 0;
  int conditions = 0;
  SYSTOLE_RETURN_IF_ERROR(ForEachWhere(spec, [&](int, const v1::Where& where, const std::string&) {
    ++wheres;
    conditions += ConditionsIn(where);
    return absl::OkStatus();
  }));
  if (wheres > kMaxWheres) {
    return absl::InvalidArgumentError(absl::StrCat("the spec has ", wheres,
                                                   " `where` steps, want at most ", kMaxWheres,
                                                   "; join the conditions of one select by `all`"));
  }
  if (conditions > kMaxWhereConditions) {
    return absl::InvalidArgumentError(absl::StrCat("the `where` steps of the spec have ",
                                                   conditions, " conditions, want at most ",
                                                   kMaxWhereConditions));
  }
  return ForEachWhere(spec, [](int, const v1::Where& where, const std::string& field) {
    return ConditionOf(where, field).status();
  });
}

absl::StatusOr<std::shared_ptr<const RecordList>> ListOf(const v1::FeedSpec& spec,
                                                         const Dataset& dataset,
                                                         const WhereStep& step, RecordLists& lists,
                                                         const std::string& peer) {
  SYSTOLE_ASSIGN_OR_RETURN(const Condition condition, ConditionOf(step.where, step.field));
  const Dataset& of =
      step.member == kOwnSelect ? dataset : *dataset.members()[static_cast<size_t>(step.member)];
  return lists.Find(KeyOf(spec, dataset, step), peer,
                    [&] { return MakeList(condition, of, step.before, lists.memory()); });
}

}  // namespace systole
