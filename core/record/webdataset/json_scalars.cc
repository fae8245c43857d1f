#include "core/record/webdataset/json_scalars.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <system_error>
#include <utility>

#include "absl/strings/charconv.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/text/utf8.h"

namespace systole {
namespace {

using ScalarVisitor = absl::FunctionRef<void(absl::string_view name, JsonScalar value)>;

void AppendUtf8(uint32_t code_point, std::string& out) {
  const auto tail = [&out](uint32_t bits) {
    out.push_back(static_cast<char>(0x80 | (bits & 0x3f)));
  };
  if (code_point < 0x80) {
    out.push_back(static_cast<char>(code_point));
  } else if (code_point < 0x800) {
    out.push_back(static_cast<char>(0xc0 | code_point >> 6));
    tail(code_point);
  } else if (code_point < 0x10000) {
    out.push_back(static_cast<char>(0xe0 | code_point >> 12));
    tail(code_point >> 6);
    tail(code_point);
  } else {
    out.push_back(static_cast<char>(0xf0 | code_point >> 18));
    tail(code_point >> 12);
    tail(code_point >> 6);
    tail(code_point);
  }
}

class Parser {
 public:
  Parser(absl::string_view text, ScalarVisitor visit) : text_(text), visit_(visit) {}

  absl::Status Parse() {
    if (Value(/*depth=*/0, nullptr) && !AtEnd()) Fail("something follows the value");
    if (wrong_ == nullptr) return absl::OkStatus();
    return absl::DataLossError(absl::StrCat(wrong_, " at byte ", at_, " of ", text_.size()));
  }

 private:
  bool Fail(const char* what) {
    if (wrong_ == nullptr) wrong_ = what;
    return false;
  }

  void SkipBlanks() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r')) {
      ++at_;
    }
  }
  bool AtEnd() {
    SkipBlanks();
    return at_ == text_.size();
  }
  // Skips blanks. If `c` follows, takes it and returns true.
  bool Take(char c) {
    SkipBlanks();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool TakeWord(absl::string_view word) {
    if (!absl::StartsWith(text_.substr(at_), word)) return false;
    at_ += word.size();
    return true;
  }

  // Reads a value that is inside `depth` lists and objects. If the value is itself the value of a
  // member of the outermost object, `name` is the member's name. Otherwise `name` is null.
  bool Value(int depth, const std::string* name) {
    SkipBlanks();
    if (at_ == text_.size()) return Fail("the text ends where a value should be");
    const char c = text_[at_];
    if (c == '{' || c == '[') {
      if (depth == kMaxJsonDepth) return Fail("too many lists and objects inside one another");
      ++at_;
      return c == '{' ? Members(depth) : Elements(depth);
    }
    if (c == '"') {
      std::string text;
      return String(text) && Tell(name, std::move(text));
    }
    if (TakeWord("null")) return true;
    if (TakeWord("true")) return Tell(name, int64_t{1});
    if (TakeWord("false")) return Tell(name, int64_t{0});
    if (TakeWord("NaN")) return Tell(name, std::numeric_limits<float>::quiet_NaN());
    if (TakeWord("Infinity")) return Tell(name, std::numeric_limits<float>::infinity());
    if (TakeWord("-Infinity")) return Tell(name, -std::numeric_limits<float>::infinity());
    return Number(name);
  }

  bool Members(int depth) {
    if (Take('}')) return true;
    do {
      SkipBlanks();
      std::string name;
      if (at_ == text_.size() || text_[at_] != '"') return Fail("want a member's name in quotes");
      if (!String(name)) return false;
      if (!Take(':')) return Fail("want ':' after a member's name");
      if (!Value(depth + 1, depth == 0 ? &name : nullptr)) return false;
    } while (Take(','));
    return Take('}') || Fail("want ',' or '}' after a member");
  }

  bool Elements(int depth) {
    if (Take(']')) return true;
    do {
      if (!Value(depth + 1, nullptr)) return false;
    } while (Take(','));
    return Take(']') || Fail("want ',' or ']' after an element");
  }

  bool Tell(const std::string* name, JsonScalar value) {
    if (name == nullptr) return true;
    if (++scalars_ > kMaxJsonScalars) return Fail("too many members");
    visit_(*name, std::move(value));
    return true;
  }

  // Reads the four hex digits after \u.
  bool Hex(uint32_t& code_unit) {
    const absl::string_view digits = text_.substr(at_, 4);
    const char* const end = digits.data() + digits.size();
    const auto [stop, error] = std::from_chars(digits.data(), end, code_unit, 16);
    if (digits.size() < 4 || error != std::errc() || stop != end) {
      return Fail("want 4 hex digits after \\u");
    }
    at_ += 4;
    return true;
  }

  bool Escape(std::string& out) {
    if (at_ == text_.size()) return Fail("the text ends within a string");
    const char c = text_[at_++];
    constexpr absl::string_view kEscapes = "\"\\/bfnrt";
    constexpr absl::string_view kMeant = "\"\\/\b\f\n\r\t";
    if (const size_t place = kEscapes.find(c); place != absl::string_view::npos) {
      out.push_back(kMeant[place]);
      return true;
    }
    if (c != 'u') return Fail("an escape that JSON does not know");
    uint32_t code_point = 0;
    if (!Hex(code_point)) return false;
    if (code_point >= 0xd800 && code_point < 0xe000) {
      uint32_t low = 0;
      if (code_point >= 0xdc00 || !TakeWord("\\u")) return Fail("half a surrogate pair");
      if (!Hex(low)) return false;
      if (low < 0xdc00 || low >= 0xe000) return Fail("half a surrogate pair");
      code_point = 0x10000 + ((code_point - 0xd800) << 10) + (low - 0xdc00);
    }
    AppendUtf8(code_point, out);
    return true;
  }

  bool String(std::string& out) {
    ++at_;  // The quote.
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (static_cast<uint8_t>(c) < ' ') return Fail("a control character within a string");
      ++at_;
      if (c == '"') return true;
      if (c != '\\') {
        out.push_back(c);
      } else if (!Escape(out)) {
        return false;
      }
    }
    return Fail("the text ends within a string");
  }

  size_t Digits() {
    const size_t begin = at_;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') ++at_;
    return at_ - begin;
  }

  bool Number(const std::string* name) {
    const size_t begin = at_;
    (void)TakeWord("-");
    const size_t first = at_;
    const size_t whole = Digits();
    if (whole == 0) return Fail("want a value");
    if (whole > 1 && text_[first] == '0') return Fail("a number that begins with 0");
    bool is_whole = true;
    if (TakeWord(".")) {
      is_whole = false;
      if (Digits() == 0) return Fail("want digits after '.'");
    }
    if (at_ < text_.size() && (text_[at_] == 'e' || text_[at_] == 'E')) {
      is_whole = false;
      ++at_;
      if (!TakeWord("+")) (void)TakeWord("-");
      if (Digits() == 0) return Fail("want digits after 'e'");
    }
    const char* const end = text_.data() + at_;
    if (int64_t value = 0; is_whole) {
      const auto [stop, error] = std::from_chars(text_.data() + begin, end, value);
      if (error == std::errc()) return Tell(name, value);
    }
    double value = 0;
    const absl::from_chars_result parsed = absl::from_chars(text_.data() + begin, end, value);
    if (parsed.ec == std::errc::result_out_of_range && std::fabs(value) < 1) value = 0;
    if (std::fabs(value) > static_cast<double>(std::numeric_limits<float>::max())) {
      return Fail("a number too large for a float");
    }
    return Tell(name, static_cast<float>(value));
  }

  const absl::string_view text_;
  ScalarVisitor visit_;
  size_t at_ = 0;
  int scalars_ = 0;
  const char* wrong_ = nullptr;
};

}  // namespace

absl::Status VisitJsonScalars(absl::string_view text, ScalarVisitor visit) {
  if (!IsUtf8(text)) return absl::DataLossError("it is not UTF-8");
  return Parser(text, visit).Parse();
}

}  // namespace systole
