#include "client/emulator/timing/arrivals.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/status/status_macros.h"

namespace systole::emulator {
namespace {

constexpr absl::string_view kMagic = "systole-arrivals 1";
constexpr int64_t kMaxCores = 65536;
constexpr int64_t kMaxTensors = 64;
constexpr size_t kMaxName = 128;
constexpr size_t kMaxTensorLine = 1024;
constexpr int64_t kMaxRank = 8;
constexpr int64_t kMaxTensorBytes = int64_t{1} << 40;
constexpr int64_t kMaxStep = int64_t{1} << 60;
// Three years: sums of times do not overflow.
constexpr int64_t kMaxNs = 100'000'000'000'000'000;

constexpr DType kDTypes[] = {DType::kUint8, DType::kInt32, DType::kInt64, DType::kFloat32,
                             DType::kBfloat16};

absl::string_view RecordedByName(RecordedBy by) {
  return by == RecordedBy::kDrain ? "drain" : "paced";
}

bool IsName(absl::string_view word) {
  return !word.empty() && word.size() <= kMaxName &&
         std::all_of(word.begin(), word.end(), absl::ascii_isgraph);
}

// Takes the text line by line, counting.
class Parser {
 public:
  Parser(absl::string_view text, absl::string_view source) : rest_(text), source_(source) {}

  absl::StatusOr<Arrivals> Parse();

 private:
  absl::Status Wrong(absl::string_view wanted) const {
    return absl::InvalidArgumentError(absl::StrCat(
        source_, ":", line_, ": '", absl::CEscape(words_text_.substr(0, 60)), "', want ", wanted));
  }

  // The next line, in words_text_; an end of the text in mid-line is an error.
  absl::Status NextLine(absl::string_view wanted) {
    ++line_;
    const size_t end = rest_.find('\n');
    if (end == absl::string_view::npos) {
      words_text_ = rest_;
      return absl::InvalidArgumentError(absl::StrCat(source_, ":", line_,
                                                     ": the file ends here, want ", wanted,
                                                     "; it was cut short, record it again"));
    }
    words_text_ = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    return absl::OkStatus();
  }

  // A decimal number from `text`'s front up to a space or the end, which it removes.
  static bool TakeNumber(absl::string_view& text, int64_t most, int64_t& number) {
    const size_t end = std::min(text.find(' '), text.size());
    const absl::string_view word = text.substr(0, end);
    // SimpleAtoi also takes signs and white space.
    if (word.empty() ||
        !std::all_of(word.begin(), word.end(), [](char c) { return c >= '0' && c <= '9'; })) {
      return false;
    }
    text.remove_prefix(end);
    return absl::SimpleAtoi(word, &number) && number <= most;
  }
  static bool TakeSpace(absl::string_view& text) {
    if (text.empty() || text[0] != ' ') return false;
    text.remove_prefix(1);
    return true;
  }

  // A line "<key> <number>".
  absl::StatusOr<int64_t> NumberLine(absl::string_view key, int64_t least, int64_t most);
  absl::Status TensorLine(Arrivals& arrivals) const;
  absl::Status StepLine(Arrivals& arrivals) const;

  absl::string_view rest_;
  const absl::string_view source_;
  absl::string_view words_text_;
  int64_t line_ = 0;
};

absl::StatusOr<int64_t> Parser::NumberLine(absl::string_view key, int64_t least, int64_t most) {
  const std::string wanted = absl::StrCat("'", key, " N', N from ", least, " to ", most);
  absl::string_view text = words_text_;
  int64_t number = 0;
  if (text.substr(0, key.size()) != key) return Wrong(wanted);
  text.remove_prefix(key.size());
  if (!TakeSpace(text) || !TakeNumber(text, most, number) || !text.empty() || number < least) {
    return Wrong(wanted);
  }
  return number;
}

absl::Status Parser::TensorLine(Arrivals& arrivals) const {
  constexpr absl::string_view kWanted =
      "'tensor NAME TYPE AXIS DIMENSION..' of at most 2^40 bytes, all tensors with the same batch "
      "and names of their own";
  if (words_text_.size() > kMaxTensorLine) return Wrong(kWanted);
  const std::vector<absl::string_view> words = absl::StrSplit(words_text_, ' ');
  if (static_cast<int64_t>(words.size()) < 5 || static_cast<int64_t>(words.size()) > 4 + kMaxRank ||
      static_cast<int64_t>(arrivals.tensors.size()) >= kMaxTensors || !IsName(words[1])) {
    return Wrong(kWanted);
  }
  for (const ArrivalTensor& other : arrivals.tensors) {
    if (other.name == words[1]) return Wrong(kWanted);
  }
  const auto* dtype = std::find_if(std::begin(kDTypes), std::end(kDTypes),
                                   [&](DType type) { return DTypeName(type) == words[2]; });
  if (dtype == std::end(kDTypes)) return Wrong(kWanted);
  ArrivalTensor tensor = {.name = std::string(words[1]), .dtype = *dtype};
  int64_t bytes = DTypeBytes(*dtype);
  for (size_t i = 3; i < words.size(); ++i) {
    absl::string_view word = words[i];
    int64_t number = 0;
    if (!TakeNumber(word, kMaxTensorBytes, number)) return Wrong(kWanted);
    if (i == 3) {
      if (number + 4 >= static_cast<int64_t>(words.size())) return Wrong(kWanted);
      tensor.batch_axis = static_cast<int>(number);
      continue;
    }
    if (number < 1 || number > kMaxTensorBytes / bytes) return Wrong(kWanted);
    bytes *= number;
    tensor.shape.push_back(number);
  }
  if (!arrivals.tensors.empty() && tensor.per_core_batch() != arrivals.per_core_batch()) {
    return Wrong(kWanted);
  }
  arrivals.tensors.push_back(std::move(tensor));
  return absl::OkStatus();
}

absl::Status Parser::StepLine(Arrivals& arrivals) const {
  absl::string_view text = words_text_;
  for (int core = 0; core < arrivals.num_cores; ++core) {
    int64_t ns = 0;
    if ((core > 0 && !TakeSpace(text)) || !TakeNumber(text, kMaxNs, ns)) {
      return Wrong(absl::StrCat(arrivals.num_cores, " numbers from 0 to ", kMaxNs));
    }
    const size_t before = arrivals.ns.size() - static_cast<size_t>(arrivals.num_cores);
    if (static_cast<int64_t>(arrivals.ns.size()) >= arrivals.num_cores &&
        ns < arrivals.ns[before]) {
      return Wrong(absl::StrCat("core ", core, "'s time at least ", arrivals.ns[before],
                                ", its step before"));
    }
    arrivals.ns.push_back(ns);
  }
  return text.empty() ? absl::OkStatus() : Wrong(absl::StrCat(arrivals.num_cores, " numbers"));
}

absl::StatusOr<Arrivals> Parser::Parse() {
  const std::string magic = absl::StrCat("'", kMagic, "'");
  Arrivals arrivals;
  SYSTOLE_RETURN_IF_ERROR(NextLine(magic));
  if (words_text_ != kMagic) return Wrong(magic);
  SYSTOLE_RETURN_IF_ERROR(NextLine("'recorded drain|paced'"));
  if (words_text_ == "recorded paced") {
    arrivals.recorded_by = RecordedBy::kPaced;
  } else if (words_text_ != "recorded drain") {
    return Wrong("'recorded drain' or 'recorded paced'");
  }
  SYSTOLE_RETURN_IF_ERROR(NextLine("a tensor"));
  do {
    if (words_text_.substr(0, 7) != "tensor ") {
      return Wrong("'tensor NAME TYPE AXIS DIMENSION..'");
    }
    SYSTOLE_RETURN_IF_ERROR(TensorLine(arrivals));
    SYSTOLE_RETURN_IF_ERROR(NextLine("a tensor or 'first_step N'"));
  } while (words_text_.substr(0, 7) == "tensor ");
  SYSTOLE_ASSIGN_OR_RETURN(arrivals.first_step, NumberLine("first_step", 0, kMaxStep));
  SYSTOLE_RETURN_IF_ERROR(NextLine("'cores N'"));
  SYSTOLE_ASSIGN_OR_RETURN(const int64_t cores, NumberLine("cores", 1, kMaxCores));
  arrivals.num_cores = static_cast<int>(cores);
  SYSTOLE_RETURN_IF_ERROR(NextLine("'steps N'"));
  SYSTOLE_ASSIGN_OR_RETURN(const int64_t steps, NumberLine("steps", 0, kMaxStep));
  // A number takes two bytes at least, so what is there bounds what is reserved.
  if (steps > static_cast<int64_t>(rest_.size()) / (2 * cores)) {
    return Wrong(absl::StrCat("at most the steps that follow, in ", rest_.size(),
                              " bytes; if the file was cut short, record it again"));
  }
  arrivals.ns.reserve(static_cast<size_t>(steps * cores));
  for (int64_t step = 0; step < steps; ++step) {
    SYSTOLE_RETURN_IF_ERROR(NextLine("a line of times for each step"));
    SYSTOLE_RETURN_IF_ERROR(StepLine(arrivals));
  }
  SYSTOLE_RETURN_IF_ERROR(NextLine("'end'"));
  if (words_text_ != "end") return Wrong(absl::StrCat("'end' after ", steps, " steps"));
  if (!rest_.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(source_, ":", line_ + 1, ": ", rest_.size(), " bytes after 'end', want none"));
  }
  return arrivals;
}

}  // namespace

std::vector<int64_t> ArrivalTensor::example() const {
  std::vector<int64_t> sizes = shape;
  sizes.erase(sizes.begin() + batch_axis);
  return sizes;
}

std::string ArrivalsText(const Arrivals& arrivals) {
  std::string text =
      absl::StrCat(kMagic, "\nrecorded ", RecordedByName(arrivals.recorded_by), "\n");
  for (const ArrivalTensor& tensor : arrivals.tensors) {
    absl::StrAppend(&text, "tensor ", tensor.name, " ", DTypeName(tensor.dtype), " ",
                    tensor.batch_axis, " ", absl::StrJoin(tensor.shape, " "), "\n");
  }
  absl::StrAppend(&text, "first_step ", arrivals.first_step, "\ncores ", arrivals.num_cores,
                  "\nsteps ", arrivals.steps(), "\n");
  for (size_t i = 0; i < arrivals.ns.size(); ++i) {
    const bool last = (i + 1) % static_cast<size_t>(arrivals.num_cores) == 0;
    absl::StrAppend(&text, arrivals.ns[i], last ? "\n" : " ");
  }
  absl::StrAppend(&text, "end\n");
  return text;
}

absl::StatusOr<Arrivals> ParseArrivals(absl::string_view text, absl::string_view source) {
  return Parser(text, source).Parse();
}

}  // namespace systole::emulator
