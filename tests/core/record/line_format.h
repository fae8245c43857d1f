// A format for tests. A file is text. Its first line is "lines". Each further line is a record: an
// example with the features `text` (bytes) and `length` (int64).
//
// Thread-safe: no state.
#ifndef SYSTOLE_TESTS_CORE_RECORD_LINE_FORMAT_H_
#define SYSTOLE_TESTS_CORE_RECORD_LINE_FORMAT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "core/example/example_format.h"
#include "core/record/source/shard_format.h"
#include "core/record/source/span_source.h"
#include "core/status/status_macros.h"

namespace systole {

class LineExample final : public ExampleFormat {
 public:
  absl::string_view name() const override { return "line"; }
  absl::Status Decode(absl::string_view record, MadeText&,
                      absl::FunctionRef<void(const FeatureView&)> visit) const override {
    if (record == "bad") return absl::DataLossError("a bad line");
    visit(FeatureView::OfBytes("text", record));
    visit(FeatureView::OfInt64("length", static_cast<int64_t>(record.size())));
    return absl::OkStatus();
  }
};

class LineShard final : public SpanSource {
 public:
  static constexpr absl::string_view kBegin = "lines\n";

  static absl::StatusOr<std::unique_ptr<RecordSource>> Open(ShardFile file,
                                                            const ShardOptions& options) {
    SYSTOLE_ASSIGN_OR_RETURN(const uint64_t size, file.bytes->Size());
    std::string text(size, '\0');
    SYSTOLE_RETURN_IF_ERROR(ReadExactlyAt(*file.bytes, 0, absl::MakeSpan(text)));
    std::vector<uint64_t> ends;
    for (size_t at = text.find('\n', kBegin.size()); at != std::string::npos;
         at = text.find('\n', at + 1)) {
      ends.push_back(at + 1);
    }
    return std::unique_ptr<RecordSource>(
        new LineShard({.bytes = std::move(file.bytes),
                       .size_bytes = size,
                       .file_bytes = file.state.size_bytes,
                       .index = RecordIndex(std::move(ends)),
                       .content_hash = size,
                       .note = {},
                       .max_record_bytes = options.max_record_bytes}));
  }

  const ExampleFormat& examples() const override {
    static const LineExample format;
    return format;
  }

 private:
  explicit LineShard(IndexedFile file) : SpanSource(std::move(file), 1, "lines") {}

  absl::StatusOr<absl::string_view> Check(int64_t record, absl::string_view bytes) const override {
    if (!absl::EndsWith(bytes, "\n")) return Damaged(record, "no line");
    bytes.remove_suffix(1);
    return record == 0 ? bytes.substr(kBegin.size()) : bytes;
  }
  absl::StatusOr<std::string> CauseIfTooLarge(int64_t) const override { return std::string(); }
};

inline constexpr ShardFormat kLineFormat = {
    .name = "lines",
    .begins = [](absl::string_view begin) { return absl::StartsWith(begin, LineShard::kBegin); },
    .ending = ".lines",
    .open = LineShard::Open};

}  // namespace systole

#endif  // SYSTOLE_TESTS_CORE_RECORD_LINE_FORMAT_H_
