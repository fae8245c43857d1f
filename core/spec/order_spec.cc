#include "core/spec/order_spec.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/numeric/int128.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/order/feed_position.h"
#include "core/order/mixture.h"
#include "core/order/selection.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

using Selects = google::protobuf::RepeatedPtrField<v1::Select>;

// The `select` of the feed or of one of its members.
struct SelectOf {
  const Selects& selects;
  std::string prefix;  // What messages put before "select": "mixture[0]." or "".
  int member;          // Like WhereStep::member.
};

// Applies `steps` to the records from which the `select` chooses. Without steps, returns all of
// these records.
using MakeSelection =
    absl::FunctionRef<absl::StatusOr<Selection>(absl::Span<const SelectionStep> steps)>;

absl::Status Prefixed(const std::string& prefix, const absl::Status& error) {
  return absl::Status(error.code(), absl::StrCat(prefix, error.message()));
}

// The steps of `select`. A step of policy OFF is left out.
absl::StatusOr<std::vector<SelectionStep>> StepsOf(const SelectOf& of, MakeSelection make,
                                                   FindList find) {
  std::vector<SelectionStep> steps;
  for (int i = 0; i < of.selects.size(); ++i) {
    const v1::Select& select = of.selects[i];
    switch (select.step_case()) {
      case v1::Select::kSkip:
        steps.emplace_back(SkipRecords{select.skip()});
        break;
      case v1::Select::kTake:
        steps.emplace_back(TakeRecords{select.take()});
        break;
      case v1::Select::kShard:
        steps.emplace_back(ShardRecords{select.shard().count(), select.shard().index()});
        break;
      case v1::Select::kInterleave: {
        const v1::Interleave& interleave = select.interleave();
        steps.emplace_back(
            InterleaveFiles{interleave.cycle_length(),
                            interleave.block_length() == 0 ? 1 : interleave.block_length()});
        break;
      }
      case v1::Select::kAutoShard: {
        const v1::AutoShard& part = select.auto_shard();
        if (part.policy() == v1::AutoShard::DATA) {
          steps.emplace_back(ShardRecords{part.count(), part.index()});
        } else if (part.policy() != v1::AutoShard::OFF) {
          steps.emplace_back(ShardFiles{part.count(), part.index()});
        }
        break;
      }
      case v1::Select::kWhere: {
        const absl::StatusOr<Selection> before = make(steps);
        if (!before.ok()) return Prefixed(of.prefix, before.status());
        ListedRecords listed;
        SYSTOLE_ASSIGN_OR_RETURN(listed.list,
                                 find({.where = select.where(),
                                       .field = absl::StrCat(of.prefix, "select[", i, "].where"),
                                       .member = of.member,
                                       .step = i,
                                       .before = *before}));
        steps.emplace_back(std::move(listed));
        break;
      }
      case v1::Select::STEP_NOT_SET:
        return absl::InvalidArgumentError(
            absl::StrCat(of.prefix, "select[", i,
                         "] names no step; want skip, take, shard, where, interleave or "
                         "auto_shard"));
    }
  }
  return steps;
}

// Whether the step depends on how many records each file has.
bool NeedsShards(const v1::Select& select) {
  const v1::AutoShard::Policy policy = select.auto_shard().policy();
  return select.has_interleave() ||
         (select.has_auto_shard() && policy != v1::AutoShard::OFF && policy != v1::AutoShard::DATA);
}

bool NeedShards(const Selects& selects) {
  return std::any_of(selects.begin(), selects.end(), NeedsShards);
}

// The records of one dataset that `select` leaves. Null if it leaves all of them.
absl::StatusOr<std::shared_ptr<const Selection>> SelectionOf(
    const SelectOf& of, const DatasetRecords& dataset, FindList find,
    NoRecords no_records = NoRecords::kRefused) {
  absl::Span<const int64_t> per_shard = dataset.per_shard;
  if (!NeedShards(of.selects)) per_shard = {&dataset.num_records, 1};
  const auto make = [&](absl::Span<const SelectionStep> steps) {
    return Selection::Create(per_shard, steps, no_records);
  };
  SYSTOLE_ASSIGN_OR_RETURN(const std::vector<SelectionStep> steps, StepsOf(of, make, find));
  if (steps.empty()) return nullptr;
  absl::StatusOr<Selection> selection = make(steps);
  if (!selection.ok()) return Prefixed(of.prefix, selection.status());
  return std::make_shared<const Selection>(*std::move(selection));
}

std::string MemberField(const v1::FeedSpec& spec, int member) {
  return absl::StrCat(spec.mixture().empty() ? "concatenation[" : "mixture[", member, "]");
}

// The records that each member contributes.
absl::StatusOr<std::vector<SelectedRecords>> RecordsOfMembers(
    const v1::FeedSpec& spec, absl::Span<const DatasetRecords> datasets, FindList find) {
  std::vector<SelectedRecords> records;
  int64_t begin = 0;
  const NoRecords no_records = spec.mixture().empty() ? NoRecords::kAllowed : NoRecords::kRefused;
  for (int i = 0; i < MembersOf(spec).size(); ++i) {
    const DatasetRecords& dataset = datasets[static_cast<size_t>(i)];
    SYSTOLE_ASSIGN_OR_RETURN(
        std::shared_ptr<const Selection> selection,
        SelectionOf(
            {.selects = MembersOf(spec)[i].select(), .prefix = SelectPrefix(spec, i), .member = i},
            dataset, find, no_records));
    records.push_back(
        {.begin = begin, .num_records = dataset.num_records, .selection = std::move(selection)});
    begin += dataset.num_records;
  }
  return records;
}

// Changes the weights of `mixture`, which is the mixture of `order`, as the spec says.
absl::Status ChangeWeights(const v1::FeedSpec& spec, OrderSpec order, Mixture& mixture) {
  // `steps` is an order without these changes. It is used only to count the positions before a
  // step. The weights do not change these counts.
  order.mixture = std::make_shared<const Mixture>(mixture);
  SYSTOLE_ASSIGN_OR_RETURN(const Order steps, Order::Create(order));
  for (int i = 0; i < spec.weights_size(); ++i) {
    const v1::Weights& change = spec.weights(i);
    const bool by_example = change.from_example() != 0;
    if (by_example && change.from_step() != 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "weights[", i, "] has from_step ", change.from_step(), " and from_example ",
          change.from_example(), ", want one of them: a change begins at a step or at an example"));
    }
    ChangePlace place = {.by_example = by_example,
                         .number = by_example ? change.from_example() : change.from_step()};
    const int64_t number = std::max(place.number, int64_t{0});
    place.turn = by_example ? absl::uint128(static_cast<uint64_t>(number))
                            : TurnsBefore(steps, PositionBefore(steps, number));
    SYSTOLE_RETURN_IF_ERROR(mixture.ChangeWeights(place, change.weights()));
  }
  return absl::OkStatus();
}

absl::Status SetMixture(const v1::FeedSpec& spec, std::vector<SelectedRecords> records,
                        OrderSpec& order) {
  if (!spec.select().empty()) {
    return absl::InvalidArgumentError(
        "select must not be set beside mixture; set it in each member: mixture[0].select");
  }
  std::vector<MixtureMember> members;
  for (size_t i = 0; i < records.size(); ++i) {
    members.push_back(
        {.weight = spec.mixture(static_cast<int>(i)).weight(), .records = std::move(records[i])});
  }
  SYSTOLE_ASSIGN_OR_RETURN(Mixture mixture, Mixture::Create(std::move(members)));
  order.num_records = mixture.num_records();
  if (!spec.weights().empty()) SYSTOLE_RETURN_IF_ERROR(ChangeWeights(spec, order, mixture));
  order.mixture = std::make_shared<const Mixture>(std::move(mixture));
  return absl::OkStatus();
}

absl::Status SetConcatenation(const v1::FeedSpec& spec, absl::Span<const DatasetRecords> datasets,
                              const std::vector<SelectedRecords>& records, FindList find,
                              OrderSpec& order) {
  const SelectOf of = {.selects = spec.select(), .prefix = "", .member = kOwnSelect};
  const bool whole = std::all_of(records.begin(), records.end(), [](const SelectedRecords& one) {
    return one.selection == nullptr;
  });
  if (!whole) {
    const auto make = [&records](absl::Span<const SelectionStep> steps) {
      return Selection::Concatenate(records, steps);
    };
    SYSTOLE_ASSIGN_OR_RETURN(const std::vector<SelectionStep> steps, StepsOf(of, make, find));
    SYSTOLE_ASSIGN_OR_RETURN(Selection selection, make(steps));
    order.selection = std::make_shared<const Selection>(std::move(selection));
  } else {
    // The feed's own `select` chooses among the records of all members, as if the members were one
    // dataset.
    std::vector<int64_t> per_shard;
    DatasetRecords all;
    for (const DatasetRecords& dataset : datasets) {
      all.num_records += dataset.num_records;
      per_shard.insert(per_shard.end(), dataset.per_shard.begin(), dataset.per_shard.end());
    }
    all.per_shard = per_shard;
    SYSTOLE_ASSIGN_OR_RETURN(order.selection, SelectionOf(of, all, find));
    order.num_records = all.num_records;
  }
  if (order.selection != nullptr) order.num_records = order.selection->num_records();
  return absl::OkStatus();
}

// The checks of CheckMembers() for a zip.
absl::Status CheckZip(const v1::FeedSpec& spec) {
  const auto refuse = [](const auto&... text) {
    return absl::InvalidArgumentError(absl::StrCat(text...));
  };
  if (spec.zip_size() < 2 || spec.zip_size() > kMaxZipMembers) {
    return refuse("zip has ", spec.zip_size(), " members, want 2 to ", kMaxZipMembers);
  }
  for (int i = 0; i < spec.zip_size(); ++i) {
    const v1::Member& member = spec.zip(i);
    if (member.dataset().empty()) return refuse("zip[", i, "].dataset names no dataset");
    if (member.weight() != 0) {
      return refuse("zip[", i, "].weight is ", member.weight(),
                    ", want none: only members of a mixture have a weight");
    }
    if (!member.select().empty()) {
      return refuse("zip[", i, "].select is set, but a zip joins record i of all its members; ",
                    "set select of the spec, which selects joined records");
    }
    if (member.prefix().size() > kMaxPrefixBytes) {
      return refuse("zip[", i, "].prefix has ", member.prefix().size(), " bytes, want at most ",
                    kMaxPrefixBytes);
    }
  }
  for (int i = 0; i < spec.select_size(); ++i) {
    if (spec.select(i).has_interleave()) {
      return refuse("select[", i, "].interleave takes turns among files, but the members of a zip ",
                    "have different files; leave it out, or use shuffle");
    }
    if (NeedsShards(spec.select(i))) {
      return refuse("select[", i, "].auto_shard takes whole files, but the members of a zip have ",
                    "different files; want policy: DATA, which takes records");
    }
  }
  return absl::OkStatus();
}

}  // namespace

const google::protobuf::RepeatedPtrField<v1::Member>& MembersOf(const v1::FeedSpec& spec) {
  return spec.mixture().empty() ? spec.concatenation() : spec.mixture();
}

absl::Status CheckMembers(const v1::FeedSpec& spec) {
  const int ways = (spec.dataset().empty() ? 0 : 1) + (spec.mixture().empty() ? 0 : 1) +
                   (spec.concatenation().empty() ? 0 : 1) + (spec.zip().empty() ? 0 : 1);
  if (ways != 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the spec has ", ways, " of dataset, mixture, concatenation and zip, want exactly one"));
  }
  if (!spec.zip().empty()) return CheckZip(spec);
  const auto& members = MembersOf(spec);
  if (members.size() > kMaxMembers) {
    return absl::InvalidArgumentError(
        absl::StrCat(spec.mixture().empty() ? "concatenation" : "mixture", " has ", members.size(),
                     " members, want at most ", kMaxMembers));
  }
  for (int i = 0; i < members.size(); ++i) {
    if (members[i].dataset().empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat(MemberField(spec, i), ".dataset names no dataset"));
    }
    if (spec.mixture().empty() && members[i].weight() != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(MemberField(spec, i), ".weight is ", members[i].weight(),
                       ", want none: only members of a mixture have a weight"));
    }
    if (!members[i].prefix().empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          MemberField(spec, i), ".prefix is set, want none: only members of a zip have a prefix"));
    }
  }
  return absl::OkStatus();
}

std::string SelectPrefix(const v1::FeedSpec& spec, int member) {
  return member == kOwnSelect ? "" : absl::StrCat(MemberField(spec, member), ".");
}

std::string DatasetNames(const v1::FeedSpec& spec) {
  return absl::StrJoin(DatasetsOf(spec), spec.zip().empty() ? " + " : " & ");
}

std::vector<std::string> DatasetsOf(const v1::FeedSpec& spec) {
  const auto& members = spec.zip().empty() ? MembersOf(spec) : spec.zip();
  if (members.empty()) return {spec.dataset()};
  std::vector<std::string> names;
  for (const v1::Member& member : members) names.push_back(member.dataset());
  return names;
}

int NumCoresOf(const v1::FeedSpec& spec) { return spec.num_cores() == 0 ? 1 : spec.num_cores(); }

bool SelectsByShards(const v1::FeedSpec& spec, int member) {
  const auto& members = MembersOf(spec);
  if (!members.empty() && NeedShards(members[member].select())) return true;
  return NeedShards(spec.select());
}

absl::StatusOr<std::shared_ptr<const RecordList>> NoLists(const WhereStep& step) {
  return absl::InvalidArgumentError(
      absl::StrCat(step.field, " cannot be evaluated here, because no record is at hand"));
}

absl::StatusOr<OrderSpec> OrderSpecOf(const v1::FeedSpec& spec,
                                      absl::Span<const DatasetRecords> datasets, FindList find) {
  SYSTOLE_RETURN_IF_ERROR(CheckMembers(spec));
  if (!spec.weights().empty() && spec.mixture().empty()) {
    return absl::InvalidArgumentError(
        "weights is set, but the spec has no mixture; want a mixture with members, or no weights");
  }
  ShuffleMode mode = ShuffleMode::kNone;
  if (spec.shuffle().mode() == v1::Shuffle::GLOBAL) mode = ShuffleMode::kGlobal;
  if (spec.shuffle().mode() == v1::Shuffle::WINDOW) mode = ShuffleMode::kWindow;
  OrderSpec order = {.seed = spec.seed(),
                     .mode = mode,
                     .block_records = spec.shuffle().block_records(),
                     .window_records = spec.shuffle().window_records(),
                     .global_batch = spec.global_batch(),
                     .tail = spec.tail() == v1::PAD ? Tail::kPad : Tail::kDrop,
                     .epochs = spec.epochs(),
                     .num_cores = NumCoresOf(spec),
                     .split = spec.split() == v1::FILL ? SplitRule::kFill : SplitRule::kBalanced};
  if (MembersOf(spec).empty()) {
    SYSTOLE_ASSIGN_OR_RETURN(
        order.selection, SelectionOf({.selects = spec.select(), .prefix = "", .member = kOwnSelect},
                                     datasets[0], find));
    order.num_records =
        order.selection == nullptr ? datasets[0].num_records : order.selection->num_records();
    return order;
  }
  SYSTOLE_ASSIGN_OR_RETURN(std::vector<SelectedRecords> records,
                           RecordsOfMembers(spec, datasets, find));
  SYSTOLE_RETURN_IF_ERROR(spec.mixture().empty()
                              ? SetConcatenation(spec, datasets, records, find, order)
                              : SetMixture(spec, std::move(records), order));
  return order;
}

void WriteChangesBySteps(const Order& order, v1::FeedSpec& spec) {
  if (order.spec().mixture == nullptr) return;
  const int64_t records = order.spec().num_records;
  for (v1::Weights& change : *spec.mutable_weights()) {
    const int64_t example = change.from_example();
    if (example <= 0) continue;
    const absl::StatusOr<ResumedStep> step =
        StepFrom(order, {.epoch = example / records, .examples = example % records});
    if (!step.ok()) continue;
    const absl::uint128 begin = TurnsBefore(order, PositionBefore(order, step->step));
    if (begin != static_cast<uint64_t>(example)) continue;
    change.set_from_step(step->step);
    change.clear_from_example();
  }
}

}  // namespace systole
