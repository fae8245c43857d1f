#include "client/emulator/timing/arrivals_file.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "client/emulator/message_file/message_file.h"
#include "core/status/status_macros.h"
#include "systole/v1/arrivals.pb.h"

namespace systole::emulator {
namespace {

constexpr FileFormat kFormat = {
    .name = "systole arrivals", .noun = "recording of arrivals", .version = 1};

// The most times in one message.
constexpr int64_t kTimesInAMessage = 65536;

// DType's numbers are also those of the wire and of files.
static_assert(static_cast<int>(v1::UINT8) == static_cast<int>(DType::kUint8));
static_assert(static_cast<int>(v1::BFLOAT16) == static_cast<int>(DType::kBfloat16));
static_assert(static_cast<int>(v1::FLOAT16) == static_cast<int>(DType::kFloat16));

v1::Arrivals ToMessage(const Arrivals& arrivals) {
  v1::Arrivals message;
  message.set_recorded_by(arrivals.recorded_by == RecordedBy::kDrain ? v1::Arrivals::DRAIN
                                                                     : v1::Arrivals::PACED);
  for (const ArrivalTensor& tensor : arrivals.tensors) {
    v1::ArrivalTensor& added = *message.add_tensors();
    added.set_name(tensor.name);
    added.set_dtype(static_cast<v1::DataType>(tensor.dtype));
    for (const int64_t dimension : tensor.shape) added.add_shape(dimension);
    added.set_batch_axis(tensor.batch_axis);
  }
  v1::FeedOrigin& origin = *message.mutable_origin();
  origin.set_dataset(arrivals.origin.dataset);
  origin.set_spec(arrivals.origin.spec);
  origin.set_spec_fingerprint(arrivals.origin.spec_fingerprint);
  origin.set_servers(arrivals.origin.servers);
  origin.set_content_version(arrivals.origin.content_version);
  origin.set_date(arrivals.origin.date);
  message.set_first_step(arrivals.first_step);
  message.set_num_cores(arrivals.num_cores);
  message.set_steps(arrivals.steps());
  return message;
}

// Reads everything but the times.
absl::StatusOr<Arrivals> FromMessage(const v1::Arrivals& message) {
  const v1::FeedOrigin& origin = message.origin();
  Arrivals arrivals = {.origin = {.dataset = origin.dataset(),
                                  .spec = origin.spec(),
                                  .spec_fingerprint = origin.spec_fingerprint(),
                                  .servers = origin.servers(),
                                  .content_version = origin.content_version(),
                                  .date = origin.date()},
                       .first_step = message.first_step(),
                       .num_cores = message.num_cores()};
  switch (message.recorded_by()) {
    case v1::Arrivals::DRAIN:
      arrivals.recorded_by = RecordedBy::kDrain;
      break;
    case v1::Arrivals::PACED:
      arrivals.recorded_by = RecordedBy::kPaced;
      break;
    default:
      return absl::InvalidArgumentError(absl::StrCat(
          "recorded_by is ", static_cast<int>(message.recorded_by()), ", want DRAIN or PACED"));
  }
  for (const v1::ArrivalTensor& tensor : message.tensors()) {
    if (tensor.dtype() < v1::UINT8 || tensor.dtype() > v1::FLOAT16) {
      return absl::InvalidArgumentError(
          absl::StrCat("tensor '", absl::CEscape(tensor.name().substr(0, 40)), "': dtype is ",
                       static_cast<int>(tensor.dtype()), ", want UINT8 to FLOAT16"));
    }
    arrivals.tensors.push_back({.name = tensor.name(),
                                .dtype = static_cast<DType>(tensor.dtype()),
                                .batch_axis = tensor.batch_axis(),
                                .shape = {tensor.shape().begin(), tensor.shape().end()}});
  }
  SYSTOLE_RETURN_IF_ERROR(CheckArrivals(arrivals));
  if (message.steps() < 0 || message.steps() > kMaxArrivalTimes / message.num_cores()) {
    return absl::InvalidArgumentError(absl::StrCat("steps is ", message.steps(), " of ",
                                                   message.num_cores(), " cores, want at most ",
                                                   kMaxArrivalTimes, " times in all"));
  }
  return arrivals;
}

}  // namespace

absl::Status WriteArrivals(const Arrivals& arrivals, absl::string_view systole_version,
                           std::unique_ptr<ByteSink> sink) {
  SYSTOLE_RETURN_IF_ERROR(CheckArrivals(arrivals));
  SYSTOLE_ASSIGN_OR_RETURN(MessageFileWriter file,
                           MessageFileWriter::Create(std::move(sink), kFormat, systole_version));
  SYSTOLE_RETURN_IF_ERROR(file.Write(ToMessage(arrivals)));
  v1::ArrivalTimes times;
  const auto total = static_cast<int64_t>(arrivals.ns.size());
  for (int64_t begin = 0; begin < total; begin += kTimesInAMessage) {
    const auto first = arrivals.ns.begin() + begin;
    times.mutable_ns()->Assign(first, first + std::min(total - begin, kTimesInAMessage));
    SYSTOLE_RETURN_IF_ERROR(file.Write(times));
  }
  return file.Close();
}

absl::StatusOr<Arrivals> ReadArrivals(const ByteSource& source) {
  SYSTOLE_ASSIGN_OR_RETURN(MessageFileReader file, MessageFileReader::Open(source, kFormat));
  v1::Arrivals message;
  SYSTOLE_RETURN_IF_ERROR(file.Next("what was recorded", message));
  SYSTOLE_ASSIGN_OR_RETURN(Arrivals arrivals, FromMessage(message));
  const int64_t total = message.steps() * message.num_cores();
  v1::ArrivalTimes times;
  for (int64_t begin = 0; begin < total; begin += kTimesInAMessage) {
    SYSTOLE_RETURN_IF_ERROR(file.Next("the times", times));
    const int64_t want = std::min(total - begin, kTimesInAMessage);
    if (times.ns_size() != want) {
      return absl::DataLossError(
          absl::StrCat("a record of ", times.ns_size(), " times, want ", want));
    }
    arrivals.ns.insert(arrivals.ns.end(), times.ns().begin(), times.ns().end());
  }
  SYSTOLE_RETURN_IF_ERROR(file.ExpectEnd());
  SYSTOLE_RETURN_IF_ERROR(CheckArrivals(arrivals));
  return arrivals;
}

}  // namespace systole::emulator
