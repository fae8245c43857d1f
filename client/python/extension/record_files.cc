#include "client/python/extension/record_files.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "client/python/extension/buffer_view.h"
#include "client/python/extension/compression_name.h"
#include "client/python/extension/raise.h"
#include "client/python/extension/without_gil.h"
#include "core/compression/compression.h"
#include "core/example/example_builder.h"
#include "core/example/feature_view.h"
#include "core/memory/aligned_buffer.h"
#include "core/memory/little_endian.h"
#include "core/status/status_macros.h"
#include "core/storage/stores/list_shards.h"
#include "core/text/foreign_text.h"
#include "nanobind/stl/optional.h"
#include "nanobind/stl/string.h"
#include "nanobind/stl/vector.h"

namespace nb = nanobind;

namespace systole::python {
namespace {

// About how many bytes are read at a time.
constexpr int64_t kBlockBytes = int64_t{4} << 20;
constexpr int64_t kMostBlockRecords = 1024;

// A feature to write. If `list` is set, it has the values. Otherwise `values` has them: a single
// value if the kind is kBytes, or else the memory of all numbers.
struct Written {
  absl::string_view name;
  FeatureKind kind = FeatureKind::kBytes;
  std::optional<std::vector<absl::string_view>> list = {};
  absl::string_view values = {};
};

absl::string_view BytesIn(nb::handle object) {
  const nb::bytes bytes = nb::cast<nb::bytes>(object);  // The caller keeps the object alive.
  return {bytes.c_str(), bytes.size()};
}

FeatureKind KindNamed(const std::string& name) {
  for (const FeatureKind kind : {FeatureKind::kBytes, FeatureKind::kFloat, FeatureKind::kInt64}) {
    if (FeatureKindName(kind) == name) return kind;
  }
  RaiseIfError(absl::InternalError(absl::StrCat("there is no kind '", name, "'")));
  return FeatureKind::kMissing;
}

template <typename Number>
std::vector<Number> NumbersIn(absl::string_view values) {
  std::vector<Number> numbers(values.size() / sizeof(Number));
  // memcpy must not get the null pointer of an empty vector.
  if (!numbers.empty()) std::memcpy(numbers.data(), values.data(), values.size());
  return numbers;
}

void AddTo(ExampleBuilder& builder, const Written& feature) {
  if (feature.list.has_value()) {
    builder.AddBytes(feature.name, *feature.list);
  } else if (feature.kind == FeatureKind::kBytes) {
    builder.AddBytes(feature.name, feature.values);
  } else if (feature.kind == FeatureKind::kFloat) {
    builder.AddFloats(feature.name, NumbersIn<float>(feature.values));
  } else {
    builder.AddInt64s(feature.name, NumbersIn<int64_t>(feature.values));
  }
}

// The serialized example of these features. To save time, the values of the largest feature are
// copied only once.
std::string RecordOf(const std::vector<Written>& features) {
  const Written* largest = nullptr;
  for (const Written& feature : features) {
    const bool lies_as_it_is =
        !feature.list.has_value() && !feature.values.empty() && feature.kind != FeatureKind::kInt64;
    if (lies_as_it_is && (largest == nullptr || feature.values.size() > largest->values.size())) {
      largest = &feature;
    }
  }
  ExampleBuilder builder;
  for (const Written& feature : features) {
    if (&feature != largest) AddTo(builder, feature);
  }
  if (largest == nullptr) return builder.Serialize();
  const RecordAround around =
      builder.SerializeAround(largest->name, largest->values.size(), largest->kind);
  return absl::StrCat(around.before, largest->values, around.after);
}

template <typename Number>
nb::object NumbersOf(const FeatureView& feature,
                     absl::Status (FeatureView::*copy)(absl::Span<Number> out) const) {
  const auto count = static_cast<size_t>(feature.count());
  const nb::object array = nb::steal(
      PyByteArray_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(count * sizeof(Number))));
  if (!array.is_valid()) throw nb::python_error();
  // Python's allocator aligns the bytes well enough for numbers of any type.
  auto* const numbers = reinterpret_cast<Number*>(PyByteArray_AsString(array.ptr()));
  RaiseIfError((feature.*copy)(absl::MakeSpan(numbers, count)));
  return array;
}

nb::object ValuesOf(const FeatureView& feature) {
  if (feature.kind() == FeatureKind::kMissing) return nb::none();
  if (feature.kind() == FeatureKind::kInt64) return NumbersOf(feature, &FeatureView::CopyInt64s);
  if (feature.kind() == FeatureKind::kFloat) return NumbersOf(feature, &FeatureView::CopyFloats);
  std::vector<absl::string_view> values(static_cast<size_t>(feature.count()));
  RaiseIfError(feature.GetBytes(absl::MakeSpan(values)));
  nb::list list;
  for (const absl::string_view value : values) list.append(nb::bytes(value.data(), value.size()));
  return list;
}

nb::object NameOf(const FeatureView& feature) {
  // A feature's name may be any bytes, also bytes that are no UTF-8.
  PyObject* const name = PyUnicode_DecodeUTF8(
      feature.name().data(), static_cast<Py_ssize_t>(feature.name().size()), "surrogateescape");
  if (name == nullptr) throw nb::python_error();
  return nb::steal(name);
}

}  // namespace

ExampleWriter::ExampleWriter(const std::string& prefix, int64_t shards,
                             const std::string& compression, int threads)
    : process_(getpid()) {
  const ShardSetOptions options = {
      .shards = shards, .compression = CompressionToWrite(compression), .threads = threads};
  writer_ = ValueOrRaise(Interruptibly([&] { return ShardSetWriter::Create(prefix, options); }));
}

ExampleWriter::~ExampleWriter() {
  if (getpid() != process_) {
    (void)writer_.release();
  } else if (writer_ != nullptr) {
    Abandon();
  }
}

ShardSetWriter& ExampleWriter::Writer() {
  if (getpid() != process_ || writer_ == nullptr) {
    RaiseIfError(
        absl::FailedPreconditionError("this writer has ended, or belongs to another process"));
  }
  return *writer_;
}

void ExampleWriter::Add(const nb::list& features) {
  ShardSetWriter& writer = Writer();
  std::string record;
  {
    std::vector<BufferView> buffers;
    std::vector<Written> written;
    for (const nb::handle item : features) {
      const nb::tuple parts = nb::cast<nb::tuple>(item);
      Written& feature = written.emplace_back();
      feature.name = BytesIn(parts[0]);
      feature.kind = KindNamed(nb::cast<std::string>(parts[1]));
      if (nb::isinstance<nb::list>(parts[2])) {
        feature.list.emplace();
        for (const nb::handle value : nb::cast<nb::list>(parts[2])) {
          feature.list->push_back(BytesIn(value));
        }
      } else {
        feature.values = buffers.emplace_back(parts[2], PyBUF_SIMPLE).bytes();
      }
    }
    record = RecordOf(written);
  }
  if (record.size() > static_cast<size_t>(kDefaultMaxRecordBytes)) {
    RaiseIfError(absl::InvalidArgumentError(
        absl::StrCat("example ", writer.records(), " has ", record.size(), " bytes; want at most ",
                     kDefaultMaxRecordBytes, ", the largest record that a feed reads")));
  }
  RaiseIfError(writer.Add(std::move(record)));
  if (writer.WaitForRoom(absl::ZeroDuration())) return;
  while (!WithoutGil([&] { return writer.WaitForRoom(kWaitAtMost); })) {
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }
}

nb::tuple ExampleWriter::Finish() {
  ShardSetWriter& writer = Writer();
  absl::StatusOr<WrittenSet> written = Interruptibly([&] { return writer.Finish(); });
  WithoutGil([&] {
    writer_.reset();
    return true;
  });
  const WrittenSet set = ValueOrRaise(std::move(written));
  nb::list shards;
  for (const ShardCount& shard : set.shards) {
    shards.append(nb::make_tuple(shard.path, shard.records, shard.bytes));
  }
  return nb::make_tuple(shards, set.manifest_path);
}

void ExampleWriter::Abandon() {
  if (getpid() != process_) return;
  WithoutGil([&] {
    writer_.reset();
    return true;
  });
}

RecordWalk::RecordWalk(std::vector<std::string> patterns, const std::string& compression,
                       std::string index_dir) {
  options_.index_dir = std::move(index_dir);
  options_.compression = CompressionToRead(compression);
  options_.chunks = std::make_shared<ChunkCache>();
  shards_ = ValueOrRaise(Interruptibly([&]() -> absl::StatusOr<std::vector<NamedShard>> {
    SYSTOLE_ASSIGN_OR_RETURN(std::vector<std::string> names, ListShards(patterns));
    return GroupShards(std::move(names));
  }));
}

std::vector<int64_t> RecordWalk::NextRecords() const {
  std::vector<int64_t> records;
  int64_t bytes = 0;
  for (int64_t record = next_record_; record < shard_->num_records(); ++record) {
    bytes += static_cast<int64_t>(std::min<uint64_t>(shard_->span(record).size, kBlockBytes));
    if (!records.empty() &&
        (bytes > kBlockBytes || static_cast<int64_t>(records.size()) >= kMostBlockRecords)) {
      break;
    }
    records.push_back(record);
  }
  return records;
}

absl::Status RecordWalk::ReadBlock() {
  payloads_.clear();
  while (shard_ == nullptr || next_record_ >= shard_->num_records()) {
    if (opened_ == shards_.size()) return absl::OkStatus();
    SYSTOLE_ASSIGN_OR_RETURN(shard_, OpenShard(std::move(shards_[opened_++]), options_));
    SYSTOLE_RETURN_IF_ERROR(shard_->CheckHoldsRecords());
    next_record_ = 0;
  }
  first_of_block_ = next_record_;
  const std::vector<int64_t> records = NextRecords();
  AlignedBuffer scratch;
  const absl::Status read =
      shard_->ReadRecords(records, RecordBytes::kCopied, kBlockBytes, scratch,
                          [&](size_t, const absl::StatusOr<absl::string_view>& payload) {
                            if (!payload.ok()) return payload.status();
                            payloads_.emplace_back(*payload);
                            return absl::OkStatus();
                          });
  next_record_ += static_cast<int64_t>(payloads_.size());
  return read;
}

std::optional<nb::list> RecordWalk::NextBlock() {
  RaiseIfError(failed_);
  failed_ = Interruptibly([&] { return ReadBlock(); });
  if (payloads_.empty()) {
    RaiseIfError(failed_);
    return std::nullopt;
  }
  if (absl::IsCancelled(failed_)) RaiseIfError(failed_);
  nb::list block;
  for (const std::string& payload : payloads_) {
    block.append(Features(payload, first_of_block_ + static_cast<int64_t>(nb::len(block))));
  }
  return block;
}

nb::list RecordWalk::Features(const std::string& payload, int64_t record) const {
  std::vector<FeatureView> features;
  MadeText made;
  const absl::Status decoded = shard_->examples().Decode(
      payload, made, [&](const FeatureView& feature) { features.push_back(feature); });
  if (!decoded.ok()) {
    RaiseIfError(absl::Status(decoded.code(),
                              absl::StrCat("shard \"", ForeignName(shard_->base_name()), "\", ",
                                           shard_->PlaceOf(record), ": ", decoded.message())));
  }
  nb::list list;
  for (const FeatureView& feature : features) {
    list.append(nb::make_tuple(NameOf(feature), std::string(FeatureKindName(feature.kind())),
                               ValuesOf(feature)));
  }
  return list;
}

void DeclareRecordFiles(nb::module_& module) {
  nb::class_<ExampleWriter>(module, "ExampleWriter", "Writes examples into a set of shards.")
      .def(nb::init<const std::string&, int64_t, const std::string&, int>(), nb::arg("prefix"),
           nb::arg("shards"), nb::arg("compression"), nb::arg("threads"))
      .def("add", &ExampleWriter::Add, nb::arg("features"))
      .def("finish", &ExampleWriter::Finish)
      .def("abandon", &ExampleWriter::Abandon);
  nb::class_<RecordWalk>(module, "RecordWalk", "Reads the records of shards, in order.")
      .def(nb::init<std::vector<std::string>, const std::string&, std::string>(),
           nb::arg("patterns"), nb::arg("compression"), nb::arg("index_dir"))
      .def("next_block", &RecordWalk::NextBlock);
}

}  // namespace systole::python
