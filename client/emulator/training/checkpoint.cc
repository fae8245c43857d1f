#include "client/emulator/training/checkpoint.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/checksum/xxh3.h"
#include "core/status/status_macros.h"

namespace systole::emulator {
namespace {

constexpr absl::string_view kMagic = "SYSTCKPT";
constexpr uint64_t kVersion = 1;
constexpr size_t kHeaderBytes = 8 + 8 + 8, kChecksumBytes = 8;

// The machine's own order of bytes is the file's.
static_assert(std::endian::native == std::endian::little);

class Writer {
 public:
  template <typename T>
  void Number(absl::string_view /*field*/, const T& value) {
    static_assert(sizeof(T) == 8);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(T));
  }
  void Text(absl::string_view field, const std::string& text) {
    Number(field, uint64_t{text.size()});
    bytes_ += text;
  }
  void Floats(absl::string_view field, const std::vector<float>& values) {
    Number(field, uint64_t{values.size()});
    bytes_.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  }
  // How many elements follow, which the caller then writes one by one, each in `least_bytes` bytes
  // or more.
  template <typename T>
  void Count(absl::string_view field, const std::vector<T>& values, size_t /*least_bytes*/) {
    Number(field, uint64_t{values.size()});
  }
  void Time(absl::string_view field, absl::Duration time) {
    Number(field, absl::ToInt64Nanoseconds(time));
  }
  void Name(absl::string_view field, Numerics numerics) {
    Text(field, std::string(NumericsName(numerics)));
  }
  template <typename T>
  void Presence(absl::string_view field, const std::optional<T>& value) {
    Number(field, uint64_t{value.has_value()});
  }

  std::string Finish() && {
    std::string out(kMagic);
    const uint64_t numbers[] = {kVersion, kHeaderBytes + bytes_.size() + kChecksumBytes};
    out.append(reinterpret_cast<const char*>(numbers), sizeof(numbers));
    out += bytes_;
    const uint64_t checksum = Xxh3(out);
    out.append(reinterpret_cast<const char*>(&checksum), sizeof(checksum));
    return out;
  }

 private:
  std::string bytes_;
};

// The first field that is not there in full, or out of range, sticks; what follows stays empty.
class Reader {
 public:
  explicit Reader(absl::string_view bytes) : bytes_(bytes) {}

  template <typename T>
  void Number(absl::string_view field, T& value) {
    static_assert(sizeof(T) == 8);
    const absl::string_view taken = Take(field, 1, sizeof(T));
    if (!taken.empty()) std::memcpy(&value, taken.data(), sizeof(T));
  }
  void Text(absl::string_view field, std::string& text) {
    text = std::string(Take(field, Length(field), 1));
  }
  void Floats(absl::string_view field, std::vector<float>& values) {
    const absl::string_view taken = Take(field, Length(field), sizeof(float));
    values.resize(taken.size() / sizeof(float));
    if (!taken.empty()) std::memcpy(values.data(), taken.data(), taken.size());
  }
  template <typename T>
  void Count(absl::string_view field, std::vector<T>& values, size_t least_bytes) {
    const uint64_t count = Length(field);
    if (count > bytes_.size() / least_bytes) return Fail(field);
    values.resize(count);
  }
  void Time(absl::string_view field, absl::Duration& time) {
    int64_t nanoseconds = 0;
    Number(field, nanoseconds);
    if (nanoseconds < 0) Fail(field);
    time = absl::Nanoseconds(nanoseconds);
  }
  void Name(absl::string_view field, Numerics& numerics) {
    std::string name;
    Text(field, name);
    const absl::StatusOr<Numerics> parsed = ParseNumerics(name);
    if (!parsed.ok()) return Fail(field);
    numerics = *parsed;
  }
  template <typename T>
  void Presence(absl::string_view field, std::optional<T>& value) {
    const uint64_t present = Length(field);
    if (present > 1) return Fail(field);
    if (present == 1) value.emplace();
  }

  void Require(bool holds, absl::string_view field) {
    if (!holds) Fail(field);
  }
  // DataLoss naming the first bad field, or that there is more than the fields.
  absl::Status Finish() const {
    if (!bad_field_.empty()) {
      return absl::DataLossError(
          absl::StrCat("no consistent checkpoint: ", bad_field_, " cannot be"));
    }
    if (bytes_.empty()) return absl::OkStatus();
    return absl::DataLossError(
        absl::StrCat("no consistent checkpoint: ", bytes_.size(), " bytes follow its last field"));
  }

 private:
  void Fail(absl::string_view field) {
    if (bad_field_.empty()) bad_field_ = std::string(field);
    bytes_ = {};
  }
  uint64_t Length(absl::string_view field) {
    uint64_t length = 0;
    Number(field, length);
    return length;
  }
  // The next `count` elements' bytes; none if there are fewer.
  absl::string_view Take(absl::string_view field, uint64_t count, size_t element_bytes) {
    if (count > bytes_.size() / element_bytes) {
      Fail(field);
      return {};
    }
    const absl::string_view taken = bytes_.substr(0, count * element_bytes);
    bytes_.remove_prefix(taken.size());
    return taken;
  }

  absl::string_view bytes_;
  std::string bad_field_;
};

// ---- The fields, in order: once for both directions. Archive is Writer or Reader. ----

template <typename Archive, typename Value>
void VisitScore(Archive& archive, Value& score) {
  archive.Number("a score's examples", score.examples);
  archive.Number("a score's loss", score.loss);
  archive.Number("a score's accuracy", score.accuracy);
}

template <typename Archive, typename Value>
void VisitEpoch(Archive& archive, Value& epoch) {
  archive.Number("an epoch's steps", epoch.steps);
  VisitScore(archive, epoch.training);
  archive.Presence("an epoch's validation", epoch.validation);
  if (epoch.validation.has_value()) VisitScore(archive, *epoch.validation);
  archive.Time("an epoch's duration", epoch.duration);
  archive.Time("an epoch's compute time", epoch.compute);
  archive.Number("an epoch's bytes", epoch.bytes_received);
  archive.Count("the cores of an epoch", epoch.infeed_stall, 8);
  for (auto& stall : epoch.infeed_stall) archive.Time("an infeed stall", stall);
}

template <typename Archive, typename Value>
void Visit(Archive& archive, Value& checkpoint) {
  archive.Text("the model's name", checkpoint.model);
  archive.Number("the model's fingerprint", checkpoint.model_fingerprint);
  archive.Number("the seed", checkpoint.seed);
  archive.Name("the numerics", checkpoint.numerics);
  archive.Number("the global batch", checkpoint.global_batch);
  archive.Number("the steps per epoch", checkpoint.steps_per_epoch);
  archive.Text("the feed's token", checkpoint.feed_token);

  auto& trainer = checkpoint.trainer;
  archive.Number("the number of steps", trainer.steps);
  archive.Floats("the parameters", trainer.parameters);
  archive.Floats("the running statistics", trainer.statistics);
  archive.Count("the optimizer's arrays", trainer.optimizer_state, 8);
  for (auto& state : trainer.optimizer_state) archive.Floats("an optimizer's array", state);

  auto& loop = checkpoint.loop;
  archive.Count("the epochs", loop.epochs, 9 * 8);
  for (auto& epoch : loop.epochs) VisitEpoch(archive, epoch);
  VisitEpoch(archive, loop.current);
  archive.Number("the epoch's examples", loop.sums.examples);
  archive.Number("the epoch's correct examples", loop.sums.correct);
  archive.Number("the epoch's loss", loop.sums.loss);
  archive.Time("the training time", loop.training_time);
  archive.Time("the wait for the first step", loop.first_step_wait);
}

void CheckPosition(const Checkpoint& checkpoint, Reader& reader) {
  const int64_t per_epoch = checkpoint.steps_per_epoch, steps = checkpoint.trainer.steps;
  const int64_t current = checkpoint.loop.current.steps;
  reader.Require(checkpoint.global_batch > 0, "the global batch");
  reader.Require(per_epoch > 0, "the steps per epoch");
  reader.Require(steps >= 0, "the number of steps");
  reader.Require(current >= 0 && current <= per_epoch && current <= steps, "the epoch's steps");
  if (per_epoch <= 0 || current < 0 || current > steps) return;
  const auto ended = static_cast<int64_t>(checkpoint.loop.epochs.size());
  reader.Require((steps - current) % per_epoch == 0 && (steps - current) / per_epoch == ended,
                 "the number of epochs");
}

uint64_t U64At(absl::string_view bytes, size_t at) {
  uint64_t value;
  std::memcpy(&value, bytes.data() + at, sizeof(value));
  return value;
}

absl::Status Differs(absl::string_view what, absl::string_view saved, absl::string_view given,
                     absl::string_view remedy) {
  return absl::InvalidArgumentError(absl::StrCat("the checkpoint was saved with ", what, " ", saved,
                                                 ", this run has ", given, "; ", remedy));
}

}  // namespace

Checkpoint TakeCheckpoint(Trainer& trainer, const LoopState& loop, int64_t steps_per_epoch,
                          const std::string& feed_token) {
  const TrainerOptions& options = trainer.options();
  return {.model = trainer.model().name,
          .model_fingerprint = trainer.model().fingerprint,
          .seed = options.seed,
          .numerics = options.numerics,
          .global_batch = options.num_cores * options.per_core_batch,
          .steps_per_epoch = steps_per_epoch,
          .feed_token = feed_token,
          .trainer = trainer.State(),
          .loop = loop};
}

absl::Status RestoreTrainer(const Checkpoint& checkpoint, Trainer& trainer) {
  const TrainerOptions& options = trainer.options();
  if (checkpoint.model_fingerprint != trainer.model().fingerprint) {
    return Differs("model", absl::StrCat("'", checkpoint.model, "'"),
                   absl::StrCat("'", trainer.model().name, "', whose text is not the same"),
                   "give the model as it was, or start anew");
  }
  if (checkpoint.seed != options.seed) {
    return Differs("seed", absl::StrCat(checkpoint.seed), absl::StrCat(options.seed),
                   absl::StrCat("give --seed ", checkpoint.seed));
  }
  if (checkpoint.numerics != options.numerics) {
    return Differs("numerics", NumericsName(checkpoint.numerics), NumericsName(options.numerics),
                   absl::StrCat("give --numerics ", NumericsName(checkpoint.numerics)));
  }
  const int64_t global_batch = options.num_cores * options.per_core_batch;
  if (checkpoint.global_batch != global_batch) {
    return Differs("global batch", absl::StrCat(checkpoint.global_batch),
                   absl::StrCat(global_batch), "set the spec's global_batch back");
  }
  return trainer.Restore(checkpoint.trainer);
}

std::string EncodeCheckpoint(const Checkpoint& checkpoint) {
  Writer writer;
  Visit(writer, checkpoint);
  return std::move(writer).Finish();
}

absl::StatusOr<Checkpoint> DecodeCheckpoint(absl::string_view bytes) {
  if (bytes.substr(0, kMagic.size()) != kMagic) {
    return absl::InvalidArgumentError(
        absl::StrCat("no checkpoint: it does not begin with ", kMagic));
  }
  if (bytes.size() < kHeaderBytes + kChecksumBytes) {
    return absl::DataLossError(absl::StrCat("cut short: it has only ", bytes.size(), " bytes"));
  }
  if (const uint64_t version = U64At(bytes, 8); version != kVersion) {
    return absl::InvalidArgumentError(absl::StrCat("a checkpoint of format ", version, ", want ",
                                                   kVersion,
                                                   "; resume with the release that saved it"));
  }
  if (const uint64_t size = U64At(bytes, 16); size != bytes.size()) {
    return absl::DataLossError(
        absl::StrCat(bytes.size(), " bytes, want ", size, ": it was cut short or added to"));
  }
  const absl::string_view content = bytes.substr(0, bytes.size() - kChecksumBytes);
  if (U64At(bytes, content.size()) != Xxh3(content)) {
    return absl::DataLossError("damaged: its checksum does not fit its bytes");
  }
  Reader reader(content.substr(kHeaderBytes));
  Checkpoint checkpoint;
  Visit(reader, checkpoint);
  CheckPosition(checkpoint, reader);
  SYSTOLE_RETURN_IF_ERROR(reader.Finish());
  return checkpoint;
}

}  // namespace systole::emulator
