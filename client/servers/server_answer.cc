#include "client/servers/server_answer.h"

#include <algorithm>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/types/span.h"
#include "core/numeric/normalise.h"
#include "core/numeric/value_table.h"
#include "core/order/core_split.h"
#include "core/order/record_list.h"
#include "core/order/resume_token.h"
#include "core/spec/order_spec.h"
#include "core/spec/where_columns.h"
#include "core/status/status_macros.h"
#include "core/text/foreign_text.h"
#include "google/protobuf/descriptor.h"
#include "proto/framing/layout_description.h"

namespace systole {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

absl::Status Refuse(absl::string_view what) {
  return absl::InternalError(absl::StrCat("the server's answer is impossible: ", what));
}

// Name, type and number of transforms of each tensor that `spec` asks for, in the order of names.
// DATA_TYPE_UNSPECIFIED: only the server knows the type.
std::vector<std::tuple<std::string, v1::DataType, int>> WantedTensors(const v1::FeedSpec& spec) {
  std::vector<std::tuple<std::string, v1::DataType, int>> wanted = {{kValidTensor, v1::UINT8, 0}};
  for (const v1::Output& output : spec.outputs()) {
    wanted.emplace_back(output.name(), output.dtype(), output.transforms_size());
    if (output.has_padded()) wanted.emplace_back(LengthTensor(output.name()), v1::INT32, 0);
  }
  std::sort(wanted.begin(), wanted.end());
  return wanted;
}

absl::Status CheckTensors(const v1::ResolveFeedResponse& answer, const v1::FeedSpec& spec) {
  const auto wanted = WantedTensors(spec);
  if (answer.tensors_size() != static_cast<int>(wanted.size())) {
    return Refuse(absl::StrCat("it describes ", answer.tensors_size(), " tensors, want ",
                               wanted.size(), ", the outputs of the spec and `valid`"));
  }
  for (int i = 0; i < answer.tensors_size(); ++i) {
    const v1::TensorDescription& tensor = answer.tensors(i);
    const auto& [name, dtype, transforms] = wanted[static_cast<size_t>(i)];
    if (tensor.name() != name) {
      return Refuse(
          absl::StrCat("tensor ", i, " is '", ForeignName(tensor.name()), "', want '", name, "'"));
    }
    if (dtype != v1::DATA_TYPE_UNSPECIFIED && tensor.dtype() != dtype) {
      return Refuse(absl::StrCat("tensor '", name, "' has dtype ", static_cast<int>(tensor.dtype()),
                                 ", want ", static_cast<int>(dtype)));
    }
    if (tensor.runs_size() > transforms) {
      return Refuse(absl::StrCat("the answer says how ", tensor.runs_size(),
                                 " transforms of tensor '", name, "' run, but the spec has ",
                                 transforms));
    }
  }
  for (const v1::Output& output : spec.outputs()) {
    const bool wants_tiles = output.layout() == v1::HWCN_TILED;
    for (const v1::TensorDescription& tensor : answer.tensors()) {
      if (tensor.name() != output.name() || wants_tiles != tensor.untiled_shape().empty()) continue;
      return Refuse(
          absl::StrCat("tensor '", output.name(), "' is ", wants_tiles ? "not " : "",
                       "in tiles, but the spec has layout: ", v1::Layout_Name(output.layout())));
    }
  }
  return absl::OkStatus();
}

// Checks that the compact form of `tensor` fits the tensor. REQUIRES: the tensor's shape was
// checked.
absl::Status CheckForm(const v1::TensorDescription& tensor) {
  if (!tensor.has_compact()) return absl::OkStatus();
  const v1::CompactForm& form = tensor.compact();
  const auto refuse = [&tensor](auto... what) {
    return Refuse(absl::StrCat("tensor '", tensor.name(), "' has a compact form ", what...));
  };
  if (tensor.dtype() != v1::FLOAT32 && tensor.dtype() != v1::BFLOAT16 &&
      tensor.dtype() != v1::FLOAT16) {
    return refuse("and dtype ", static_cast<int>(tensor.dtype()), ", want a type of floats");
  }
  if (!tensor.untiled_shape().empty()) return refuse("and is in tiles");
  int64_t rules = form.scale_size();
  if (form.table().empty()) {
    if (rules < 1 || rules > kMaxNormaliseChannels || form.bias_size() != rules) {
      return refuse("of ", rules, " scales and ", form.bias_size(),
                    " biases, want the same number of each, 1 to ", kMaxNormaliseChannels,
                    ", or a table");
    }
  } else {
    if (rules != 0 || form.bias_size() != 0)
      return refuse("of factors and a table, want only one of the two");
    rules = form.table_size() / kTableEntries;
    if (form.table_size() % kTableEntries != 0 || rules > kMaxTableChannels) {
      return refuse("with a table of ", form.table_size(), " entries, want ", kTableEntries,
                    " for each of 1 to ", kMaxTableChannels, " channels");
    }
  }
  const int axis = form.channel_axis();
  if (axis < 0 || axis >= tensor.shape_size()) {
    return refuse("with channel_axis ", axis, ", want 0 to ", tensor.shape_size() - 1);
  }
  if (rules > 1 && (axis == tensor.batch_axis() || tensor.shape(axis) != rules)) {
    return refuse("for ", rules, " channels, but dimension ", axis, " counts ",
                  axis == tensor.batch_axis() ? "examples" : absl::StrCat(tensor.shape(axis)));
  }
  return absl::OkStatus();
}

// `total` minus all `parts`. An error if a part is negative, or larger than what is left.
absl::StatusOr<int64_t> Without(int64_t total, absl::Span<const int64_t> parts,
                                absl::string_view part) {
  for (const int64_t records : parts) {
    if (records < 0 || records > total) {
      return Refuse(absl::StrCat("a ", part, " of ", records, " records is too large or negative"));
    }
    total -= records;
  }
  return total;
}

absl::Status CheckShards(int64_t num_records, absl::Span<const int64_t> records_per_shard) {
  if (num_records < 0) {
    return Refuse(absl::StrCat("num_records is ", num_records, ", want 0 or more"));
  }
  if (records_per_shard.empty()) return absl::OkStatus();
  SYSTOLE_ASSIGN_OR_RETURN(const int64_t left, Without(num_records, records_per_shard, "shard"));
  if (left == 0) return absl::OkStatus();
  return Refuse(absl::StrCat("the shards have ", left, " records fewer than num_records says"));
}

absl::Status CheckRecords(const v1::ResolveFeedResponse& answer, const v1::FeedSpec& spec) {
  SYSTOLE_RETURN_IF_ERROR(CheckShards(answer.num_records(), answer.records_per_shard()));
  if (answer.members_size() != MembersOf(spec).size()) {
    return Refuse(absl::StrCat("it describes ", answer.members_size(), " members, want ",
                               MembersOf(spec).size(), ", those of the spec"));
  }
  if (answer.members().empty()) return absl::OkStatus();
  std::vector<int64_t> sizes;
  for (const v1::MemberRecords& member : answer.members()) {
    SYSTOLE_RETURN_IF_ERROR(CheckShards(member.num_records(), member.records_per_shard()));
    sizes.push_back(member.num_records());
  }
  SYSTOLE_ASSIGN_OR_RETURN(const int64_t left, Without(answer.num_records(), sizes, "member"));
  if (left == 0) return absl::OkStatus();
  return Refuse(absl::StrCat("the members have ", left, " records fewer than num_records says"));
}

absl::Status FitsNoOrder(const absl::Status& why) {
  return Refuse(absl::StrCat("its records fit no order of the spec: ", why.message()));
}

absl::Status CheckSteps(const v1::ResolveFeedResponse& answer, const v1::FeedSpec& spec) {
  SYSTOLE_ASSIGN_OR_RETURN(const Order order, OrderOf(answer, spec));
  const int64_t total = order.total_steps().value_or(0);
  if (answer.total_steps() == total && answer.steps_per_epoch() == order.steps_per_epoch()) {
    return absl::OkStatus();
  }
  return Refuse(absl::StrCat("total_steps is ", answer.total_steps(), " and steps_per_epoch ",
                             answer.steps_per_epoch(), ", but by the spec ", answer.num_records(),
                             " records make ", total, " and ", order.steps_per_epoch()));
}

absl::Status CheckIdentity(const v1::FeedIdentity& identity) {
  const std::string& version = identity.content_version();
  const bool printable =
      std::all_of(version.begin(), version.end(), [](char c) { return c >= ' ' && c <= '~'; });
  if (version.empty() || version.size() > kMaxContentVersionBytes || !printable) {
    return Refuse(absl::StrCat("identity.content_version is '", ForeignName(version),
                               "', want 1 to ", kMaxContentVersionBytes,
                               " printable ASCII characters"));
  }
  return absl::OkStatus();
}

absl::Status CheckCount(const FieldDescriptor& field, double value) {
  // Every comparison with NaN is false, so this condition also refuses NaN.
  if (value >= 0 && value <= static_cast<double>(kMaxCount)) return absl::OkStatus();
  return Refuse(absl::StrCat(field.containing_type()->name(), ".", field.name(), " is ", value,
                             ", want 0 to ", kMaxCount));
}

std::string Describe(const v1::FeedIdentity& identity) {
  return absl::StrFormat("dataset %016x, order %016x, content version '%s'",
                         identity.dataset_fingerprint(), identity.order_fingerprint(),
                         identity.content_version());
}

// Checks that on both servers the same records meet each `where` of the spec.
absl::Status CheckSameLists(const v1::ResolveFeedResponse& answer,
                            const v1::ResolveFeedResponse& first, const v1::FeedSpec& spec) {
  for (int i = 0; i < first.where_hashes_size(); ++i) {
    if (answer.where_hashes(i) == first.where_hashes(i)) continue;
    return absl::FailedPreconditionError(absl::StrFormat(
        "for `where` number %d of the spec, the server finds other records than the server that "
        "answered first: %d of hash %016x, want %d of hash %016x. The columns of the two servers "
        "were made while different records were damaged; make the columns anew for every server: "
        "%s",
        i, answer.where_records(i), answer.where_hashes(i), first.where_records(i),
        first.where_hashes(i), NoteAnewCommand(spec)));
  }
  return absl::OkStatus();
}

// Does for one value what CleanAnswer() does for a message. The value is element `index` of `field`
// if the field is repeated, and otherwise the only value of the field.
absl::Status CleanValue(Message& message, const FieldDescriptor& field, int index) {
  const Reflection& reflection = *message.GetReflection();
  const bool repeated = field.is_repeated();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_STRING: {
      if (field.type() == FieldDescriptor::TYPE_BYTES) return absl::OkStatus();
      const std::string text = repeated ? reflection.GetRepeatedString(message, &field, index)
                                        : reflection.GetString(message, &field);
      std::string clean = ForeignText(text);
      if (clean == text) return absl::OkStatus();
      if (repeated) {
        reflection.SetRepeatedString(&message, &field, index, std::move(clean));
      } else {
        reflection.SetString(&message, &field, std::move(clean));
      }
      return absl::OkStatus();
    }
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return CleanAnswer(repeated ? *reflection.MutableRepeatedMessage(&message, &field, index)
                                  : *reflection.MutableMessage(&message, &field));
    case FieldDescriptor::CPPTYPE_INT32:
      return CheckCount(field, repeated ? reflection.GetRepeatedInt32(message, &field, index)
                                        : reflection.GetInt32(message, &field));
    case FieldDescriptor::CPPTYPE_INT64:
      return CheckCount(
          field, static_cast<double>(repeated ? reflection.GetRepeatedInt64(message, &field, index)
                                              : reflection.GetInt64(message, &field)));
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return CheckCount(field, repeated ? reflection.GetRepeatedDouble(message, &field, index)
                                        : reflection.GetDouble(message, &field));
    default:  // Hashes, booleans, factors that finish tensors: any value is allowed.
      return absl::OkStatus();
  }
}

}  // namespace

absl::Status CheckFeedAnswer(const v1::ResolveFeedResponse& answer, const v1::FeedSpec& spec) {
  SYSTOLE_RETURN_IF_ERROR(CheckTensors(answer, spec));
  const absl::StatusOr<SliceLayout> layout = LayoutOf(answer);
  if (!layout.ok()) return Refuse(layout.status().message());
  for (const v1::TensorDescription& tensor : answer.tensors()) {
    SYSTOLE_RETURN_IF_ERROR(CheckForm(tensor));
  }
  const int num_cores = NumCoresOf(spec);
  if (num_cores <= 0 || spec.global_batch() <= 0 ||
      layout->per_core_batch() != PerCoreBatch(spec.global_batch(), num_cores)) {
    return Refuse(absl::StrCat("it describes ", layout->per_core_batch(),
                               " examples per core, the spec asks for ", spec.global_batch(),
                               " over ", num_cores, " cores"));
  }
  SYSTOLE_RETURN_IF_ERROR(CheckRecords(answer, spec));
  SYSTOLE_RETURN_IF_ERROR(CheckSteps(answer, spec));
  if (answer.bytes_per_step() / num_cores != layout->payload_bytes() ||
      answer.bytes_per_step() % num_cores != 0) {
    return Refuse(absl::StrCat("bytes_per_step is ", answer.bytes_per_step(), ", want ",
                               layout->payload_bytes(), " for each of ", num_cores, " cores"));
  }
  return CheckIdentity(answer.identity());
}

absl::StatusOr<Order> OrderOf(const v1::ResolveFeedResponse& answer, const v1::FeedSpec& spec) {
  std::vector<DatasetRecords> records;
  for (const v1::MemberRecords& member : answer.members()) {
    records.push_back(
        {.num_records = member.num_records(), .per_shard = member.records_per_shard()});
  }
  if (records.empty()) {
    records.push_back(
        {.num_records = answer.num_records(), .per_shard = answer.records_per_shard()});
  }
  if (answer.where_hashes_size() != answer.where_records_size()) {
    return Refuse(absl::StrCat("where_hashes has ", answer.where_hashes_size(), " numbers, want ",
                               answer.where_records_size(), ", one for each of where_records"));
  }
  int lists = 0;
  const auto find =
      [&](const WhereStep& step) -> absl::StatusOr<std::shared_ptr<const RecordList>> {
    const int64_t positions = step.before.num_records();
    const int64_t size = lists < answer.where_records_size() ? answer.where_records(lists) : -1;
    ++lists;
    if (size < 0 || size > positions) {
      return absl::InternalError(absl::StrCat(
          "where_records[", lists - 1, "] is ",
          size < 0 ? "negative or missing" : absl::StrCat(size, ", more than ", positions)));
    }
    return std::make_shared<const RecordList>(
        RecordList::OfUnknown(size, positions, answer.where_hashes(lists - 1)));
  };
  const absl::StatusOr<OrderSpec> order_spec = OrderSpecOf(spec, records, find);
  if (!order_spec.ok()) return FitsNoOrder(order_spec.status());
  if (lists != answer.where_records_size()) {
    return Refuse(absl::StrCat("where_records has ", answer.where_records_size(), " numbers, want ",
                               lists, ", one for each `where` of the spec"));
  }
  absl::StatusOr<Order> order = Order::Create(*order_spec);
  if (!order.ok()) return FitsNoOrder(order.status());
  return order;
}

absl::Status CheckSameFeed(const v1::ResolveFeedResponse& answer,
                           const v1::ResolveFeedResponse& first, const v1::FeedSpec& spec,
                           bool allow_mixed_content) {
  v1::FeedIdentity expected = first.identity();
  if (answer.identity().dataset_fingerprint() == expected.dataset_fingerprint()) {
    SYSTOLE_RETURN_IF_ERROR(CheckSameLists(answer, first, spec));
  }
  if (allow_mixed_content) expected.set_content_version(answer.identity().content_version());
  if (expected.dataset_fingerprint() != answer.identity().dataset_fingerprint() ||
      expected.order_fingerprint() != answer.identity().order_fingerprint() ||
      expected.content_version() != answer.identity().content_version()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the server's data are not those of this feed: ", Describe(answer.identity()), "; want ",
        Describe(expected), ". Give every server the same shards and the same release"));
  }
  SYSTOLE_ASSIGN_OR_RETURN(const SliceLayout seen, LayoutOf(answer));
  SYSTOLE_ASSIGN_OR_RETURN(const SliceLayout wanted, LayoutOf(first));
  if (seen != wanted || answer.total_steps() != first.total_steps()) {
    return absl::FailedPreconditionError(
        "from the same spec, the server makes different tensors, or a different number of steps, "
        "than the server that answered first; run the same release on both");
  }
  for (int i = 0; i < answer.tensors_size(); ++i) {
    // The forms are compared as bytes, because a NaN does not equal itself.
    if (answer.tensors(i).compact().SerializeAsString() ==
        first.tensors(i).compact().SerializeAsString()) {
      continue;
    }
    return absl::FailedPreconditionError(
        absl::StrCat("the server wants tensor '", ForeignName(answer.tensors(i).name()),
                     "' finished in a different way than the server that answered first; run the "
                     "same release on both, or let the servers finish tensors (finish: server)"));
  }
  return absl::OkStatus();
}

absl::Status CleanAnswer(Message& answer) {
  std::vector<const FieldDescriptor*> fields;
  answer.GetReflection()->ListFields(answer, &fields);
  for (const FieldDescriptor* field : fields) {
    const int size = field->is_repeated() ? answer.GetReflection()->FieldSize(answer, field) : 1;
    for (int i = 0; i < size; ++i) SYSTOLE_RETURN_IF_ERROR(CleanValue(answer, *field, i));
  }
  return absl::OkStatus();
}

}  // namespace systole
