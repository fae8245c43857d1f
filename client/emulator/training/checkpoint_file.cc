#include "client/emulator/training/checkpoint_file.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "client/emulator/message_file/message_file.h"
#include "core/status/status_macros.h"
#include "systole/v1/checkpoint.pb.h"

namespace systole::emulator {
namespace {

constexpr FileFormat kFormat = {.name = "systole checkpoint", .noun = "checkpoint", .version = 1};

// A message has at most this many elements of a tensor.
constexpr int64_t kPieceElements = int64_t{1} << 18;
constexpr int kMaxRank = 8;

// Values are written in the machine's byte order. The file's order is little-endian.
static_assert(std::endian::native == std::endian::little);

absl::Status Inconsistent(absl::string_view what) {
  return absl::DataLossError(
      absl::StrCat("the checkpoint is inconsistent: ", what, " is impossible"));
}

// ---- The report so far ----

void ToMessage(const Score& score, v1::CheckpointScore& message) {
  message.set_examples(score.examples);
  message.set_loss(score.loss);
  message.set_accuracy(score.accuracy);
}

Score FromMessage(const v1::CheckpointScore& message) {
  return {.examples = message.examples(), .loss = message.loss(), .accuracy = message.accuracy()};
}

void ToMessage(const EpochReport& epoch, v1::CheckpointEpoch& message) {
  message.set_steps(epoch.steps);
  ToMessage(epoch.training, *message.mutable_training());
  if (epoch.validation.has_value()) ToMessage(*epoch.validation, *message.mutable_validation());
  message.set_duration_ns(absl::ToInt64Nanoseconds(epoch.duration));
  message.set_compute_ns(absl::ToInt64Nanoseconds(epoch.compute));
  message.set_bytes_received(epoch.bytes_received);
  for (const absl::Duration stall : epoch.infeed_stall) {
    message.add_infeed_stall_ns(absl::ToInt64Nanoseconds(stall));
  }
}

absl::StatusOr<EpochReport> FromMessage(const v1::CheckpointEpoch& message) {
  EpochReport epoch = {.steps = message.steps(),
                       .training = FromMessage(message.training()),
                       .duration = absl::Nanoseconds(message.duration_ns()),
                       .compute = absl::Nanoseconds(message.compute_ns()),
                       .bytes_received = message.bytes_received()};
  if (message.has_validation()) epoch.validation = FromMessage(message.validation());
  if (message.duration_ns() < 0) return Inconsistent("an epoch's duration_ns");
  if (message.compute_ns() < 0) return Inconsistent("an epoch's compute_ns");
  for (const int64_t ns : message.infeed_stall_ns()) {
    if (ns < 0) return Inconsistent("an epoch's infeed_stall_ns");
    epoch.infeed_stall.push_back(absl::Nanoseconds(ns));
  }
  return epoch;
}

// ---- The run, and where it stands ----

// Whether the number of steps in the ended epochs is `steps_per_epoch` times the number of these
// epochs. This holds for every run whose global batch has not changed.
bool HasOneBatch(const v1::Checkpoint& message) {
  const int64_t ended = message.steps() - message.current_epoch().steps();
  return ended % message.steps_per_epoch() == 0 &&
         ended / message.steps_per_epoch() == message.num_epochs();
}

v1::Checkpoint ToMessage(const Checkpoint& checkpoint) {
  v1::Checkpoint message;
  message.set_model(checkpoint.model);
  message.set_model_fingerprint(checkpoint.model_fingerprint);
  message.set_seed(checkpoint.seed);
  message.set_numerics(std::string(NumericsName(checkpoint.numerics)));
  message.set_global_batch(checkpoint.global_batch);
  message.set_steps_per_epoch(checkpoint.steps_per_epoch);
  message.set_feed_token(checkpoint.feed_token);
  message.set_steps(checkpoint.trainer.steps);
  const LoopState& loop = checkpoint.loop;
  message.set_num_epochs(static_cast<int64_t>(loop.epochs.size()));
  ToMessage(loop.current, *message.mutable_current_epoch());
  message.set_current_examples(loop.sums.examples);
  message.set_current_correct(loop.sums.correct);
  message.set_current_loss_sum(loop.sums.loss);
  message.set_training_ns(absl::ToInt64Nanoseconds(loop.training_time));
  message.set_first_step_wait_ns(absl::ToInt64Nanoseconds(loop.first_step_wait));
  message.set_num_tensors(static_cast<int64_t>(checkpoint.trainer.tensors.size()));
  // step_in_epoch is set only if a reader cannot compute it from the other fields.
  if (!HasOneBatch(message) || loop.step_in_epoch != loop.current.steps) {
    message.set_step_in_epoch(loop.step_in_epoch);
  }
  return message;
}

absl::Status CheckPosition(const v1::Checkpoint& message) {
  const int64_t per_epoch = message.steps_per_epoch(), steps = message.steps();
  const int64_t current = message.current_epoch().steps();
  const int64_t next = message.has_step_in_epoch() ? message.step_in_epoch() : current;
  if (message.global_batch() < 1) return Inconsistent("global_batch");
  if (per_epoch < 1) return Inconsistent("steps_per_epoch");
  if (steps < 0) return Inconsistent("steps");
  if (current < 0 || current > steps) return Inconsistent("current_epoch.steps");
  if (next < 0 || next > per_epoch) {
    return Inconsistent(message.has_step_in_epoch() ? "step_in_epoch" : "current_epoch.steps");
  }
  if (message.num_epochs() < 0 || (!message.has_step_in_epoch() && !HasOneBatch(message))) {
    return Inconsistent("num_epochs");
  }
  if (message.training_ns() < 0) return Inconsistent("training_ns");
  if (message.first_step_wait_ns() < 0) return Inconsistent("first_step_wait_ns");
  if (message.num_tensors() < 0) return Inconsistent("num_tensors");
  return absl::OkStatus();
}

// Reads everything except the tensors and the ended epochs.
absl::StatusOr<Checkpoint> FromMessage(const v1::Checkpoint& message) {
  SYSTOLE_RETURN_IF_ERROR(CheckPosition(message));
  const absl::StatusOr<Numerics> numerics = ParseNumerics(message.numerics());
  if (!numerics.ok()) return Inconsistent("numerics");
  Checkpoint checkpoint = {.model = message.model(),
                           .model_fingerprint = message.model_fingerprint(),
                           .seed = message.seed(),
                           .numerics = *numerics,
                           .global_batch = message.global_batch(),
                           .steps_per_epoch = message.steps_per_epoch(),
                           .feed_token = message.feed_token()};
  checkpoint.trainer.steps = message.steps();
  LoopState& loop = checkpoint.loop;
  SYSTOLE_ASSIGN_OR_RETURN(loop.current, FromMessage(message.current_epoch()));
  loop.sums = {.examples = message.current_examples(),
               .correct = message.current_correct(),
               .loss = message.current_loss_sum()};
  loop.step_in_epoch = message.has_step_in_epoch() ? message.step_in_epoch() : loop.current.steps;
  loop.training_time = absl::Nanoseconds(message.training_ns());
  loop.first_step_wait = absl::Nanoseconds(message.first_step_wait_ns());
  return checkpoint;
}

// ---- Tensors ----

absl::Status WriteTensor(const StateTensor& tensor, MessageFileWriter& file) {
  const auto size = static_cast<int64_t>(tensor.values.size());
  v1::CheckpointTensor message;
  message.set_name(tensor.name);
  message.set_dtype(v1::FLOAT32);
  for (const int64_t dimension : tensor.shape) message.add_shape(dimension);
  for (int64_t begin = 0; begin < size; begin += kPieceElements) {
    message.set_first_element(begin);
    message.set_data(tensor.values.data() + begin,
                     static_cast<size_t>(std::min(size - begin, kPieceElements)) * sizeof(float));
    SYSTOLE_RETURN_IF_ERROR(file.Write(message));
  }
  return absl::OkStatus();
}

// The number of elements. 0 if the shape is invalid or has more than `most` elements.
int64_t ElementsOf(const v1::CheckpointTensor& message, int64_t most) {
  if (message.shape_size() < 1 || message.shape_size() > kMaxRank) return 0;
  int64_t elements = 1;
  for (const int64_t dimension : message.shape()) {
    if (dimension < 1 || dimension > most / elements) return 0;
    elements *= dimension;
  }
  return elements;
}

// Reads the next tensor. `most_elements`: the file is too small for a tensor with more elements.
absl::StatusOr<StateTensor> ReadTensor(int64_t most_elements, MessageFileReader& file) {
  v1::CheckpointTensor message;
  SYSTOLE_RETURN_IF_ERROR(file.Next("a tensor", message));
  const int64_t elements = ElementsOf(message, most_elements);
  if (elements == 0) {
    return Inconsistent(
        absl::StrCat("the shape of tensor '", absl::CEscape(message.name().substr(0, 40)), "'"));
  }
  StateTensor tensor = {.name = message.name(),
                        .shape = {message.shape().begin(), message.shape().end()}};
  for (int64_t begin = 0; begin < elements; begin += kPieceElements) {
    if (begin > 0) SYSTOLE_RETURN_IF_ERROR(file.Next("the rest of a tensor", message));
    const auto bytes =
        static_cast<size_t>(std::min(elements - begin, kPieceElements)) * sizeof(float);
    if (message.name() != tensor.name || message.dtype() != v1::FLOAT32 ||
        !std::equal(tensor.shape.begin(), tensor.shape.end(), message.shape().begin(),
                    message.shape().end()) ||
        message.first_element() != begin || message.data().size() != bytes) {
      return Inconsistent(absl::StrCat("the piece at element ", begin, " of tensor '",
                                       absl::CEscape(tensor.name.substr(0, 40)), "'"));
    }
    // Memory is allocated only after the first piece was read and had the size that the shape
    // demands.
    if (begin == 0) tensor.values.resize(static_cast<size_t>(elements));
    std::memcpy(tensor.values.data() + begin, message.data().data(), bytes);
  }
  return tensor;
}

}  // namespace

absl::Status WriteCheckpoint(const Checkpoint& checkpoint, absl::string_view systole_version,
                             std::unique_ptr<ByteSink> sink) {
  SYSTOLE_ASSIGN_OR_RETURN(MessageFileWriter file,
                           MessageFileWriter::Create(std::move(sink), kFormat, systole_version));
  SYSTOLE_RETURN_IF_ERROR(file.Write(ToMessage(checkpoint)));
  for (const EpochReport& epoch : checkpoint.loop.epochs) {
    v1::CheckpointEpoch message;
    ToMessage(epoch, message);
    SYSTOLE_RETURN_IF_ERROR(file.Write(message));
  }
  for (const StateTensor& tensor : checkpoint.trainer.tensors) {
    SYSTOLE_RETURN_IF_ERROR(WriteTensor(tensor, file));
  }
  return file.Close();
}

absl::StatusOr<Checkpoint> ReadCheckpoint(const ByteSource& source) {
  SYSTOLE_ASSIGN_OR_RETURN(MessageFileReader file, MessageFileReader::Open(source, kFormat));
  v1::Checkpoint message;
  SYSTOLE_RETURN_IF_ERROR(file.Next("the run", message));
  SYSTOLE_ASSIGN_OR_RETURN(Checkpoint checkpoint, FromMessage(message));
  for (int64_t i = 0; i < message.num_epochs(); ++i) {
    v1::CheckpointEpoch epoch;
    SYSTOLE_RETURN_IF_ERROR(file.Next("an epoch", epoch));
    SYSTOLE_ASSIGN_OR_RETURN(EpochReport report, FromMessage(epoch));
    checkpoint.loop.epochs.push_back(std::move(report));
  }
  SYSTOLE_ASSIGN_OR_RETURN(const uint64_t bytes, source.Size());
  for (int64_t i = 0; i < message.num_tensors(); ++i) {
    SYSTOLE_ASSIGN_OR_RETURN(StateTensor tensor,
                             ReadTensor(static_cast<int64_t>(bytes / sizeof(float)), file));
    checkpoint.trainer.tensors.push_back(std::move(tensor));
  }
  SYSTOLE_RETURN_IF_ERROR(file.ExpectEnd());
  return checkpoint;
}

}  // namespace systole::emulator
