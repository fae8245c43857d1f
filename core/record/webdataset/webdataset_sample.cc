#include "core/record/webdataset/webdataset_sample.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/record/webdataset/json_scalars.h"
#include "core/record/webdataset/sample_name.h"
#include "core/record/webdataset/tar_entry.h"
#include "core/status/status_macros.h"
#include "core/text/foreign_text.h"

namespace systole {
namespace {

using FeatureVisitor = absl::FunctionRef<void(const FeatureView&)>;

constexpr absl::string_view kKeyFeature = "__key__";

// LowerCase() makes no copy of these extensions.
constexpr absl::string_view kUsual[] = {"cls", "jpeg", "jpg", "json", "png", "txt"};

absl::string_view LowerCase(absl::string_view extension, MadeText& made) {
  for (const absl::string_view usual : kUsual) {
    if (extension == usual) return usual;
  }
  return made.Keep(absl::AsciiStrToLower(extension));
}

// The part of an extension that decides how the file is read: "png" of "seg.png".
absl::string_view LastPart(absl::string_view extension) {
  const size_t dot = extension.rfind('.');
  return dot == absl::string_view::npos ? extension : extension.substr(dot + 1);
}

absl::Status Refuse(absl::string_view what) {
  return absl::DataLossError(absl::StrCat("not a WebDataset sample: ", what));
}

// An error about the file KEY.EXTENSION.
absl::Status RefuseFile(absl::string_view key, absl::string_view extension,
                        absl::string_view what) {
  return Refuse(
      absl::StrCat("file \"", ForeignName(absl::StrCat(key, ".", extension)), "\" ", what));
}

// Reads a number as Python's int() does: it may have blanks around it, and a sign.
std::optional<int64_t> WholeNumber(absl::string_view text) {
  text = absl::StripAsciiWhitespace(text);
  if (absl::StartsWith(text, "+") && text.size() > 1 && text[1] != '-') text.remove_prefix(1);
  int64_t number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || stop != text.data() + text.size()) return std::nullopt;
  return number;
}

// `json_left`: how many bytes of JSON the sample may still have.
absl::Status VisitFile(absl::string_view key, absl::string_view extension,
                       absl::string_view content, size_t& json_left, MadeText& made,
                       FeatureVisitor visit) {
  const absl::string_view last = LastPart(extension);
  if (last == "cls") {
    const std::optional<int64_t> number = WholeNumber(content);
    if (!number.has_value()) {
      return RefuseFile(
          key, extension,
          absl::StrCat("holds \"", ForeignName(content.substr(0, 32)), "\", want a whole number"));
    }
    visit(FeatureView::OfInt64(extension, *number));
    return absl::OkStatus();
  }
  visit(FeatureView::OfBytes(extension, content));
  if (last != "json") return absl::OkStatus();
  if (content.size() > json_left) {
    return RefuseFile(
        key, extension,
        absl::StrCat("brings the sample's JSON above ", kMaxSampleJsonBytes, " bytes"));
  }
  json_left -= content.size();
  const absl::Status read =
      VisitJsonScalars(content, [&](absl::string_view member, JsonScalar value) {
        const absl::string_view name = made.Keep(absl::StrCat(extension, "/", member));
        if (auto* const text = std::get_if<std::string>(&value)) {
          visit(FeatureView::OfBytes(name, made.Keep(std::move(*text))));
        } else if (const auto* const number = std::get_if<int64_t>(&value)) {
          visit(FeatureView::OfInt64(name, *number));
        } else {
          visit(FeatureView::OfFloat(name, std::get<float>(value)));
        }
      });
  return read.ok() ? read : RefuseFile(key, extension, absl::StrCat("as JSON: ", read.message()));
}

class Format final : public ExampleFormat {
 public:
  absl::string_view name() const override { return "WebDataset sample"; }

  absl::Status Decode(absl::string_view record, MadeText& made,
                      FeatureVisitor visit) const override {
    const auto look = [record](uint64_t offset, uint64_t) -> absl::StatusOr<const char*> {
      return record.data() + offset;
    };
    std::optional<absl::string_view> key;
    std::vector<absl::string_view> extensions;
    size_t json_left = kMaxSampleJsonBytes;
    for (uint64_t offset = 0; offset < record.size();) {
      SYSTOLE_ASSIGN_OR_RETURN(const TarEntry entry, ReadTarEntry(offset, record.size(), look));
      if (entry.kind == TarEntry::Kind::kDamaged || entry.kind == TarEntry::Kind::kEnd) {
        return Refuse(
            absl::StrCat(entry.cause.empty() ? "it contains a block of zeros" : entry.cause,
                         ", at byte ", offset, " of ", record.size()));
      }
      offset = entry.end;
      const std::optional<SampleName> name =
          entry.kind == TarEntry::Kind::kFile ? SampleNameOf(entry.name) : std::nullopt;
      if (!name.has_value()) continue;
      if (!key.has_value()) {
        key = made.Keep(std::string(name->key));
        visit(FeatureView::OfBytes(kKeyFeature, *key));
        extensions.push_back(kKeyFeature);
      } else if (*key != name->key) {
        return Refuse(absl::StrCat("it has files of \"", ForeignName(*key), "\" and of \"",
                                   ForeignName(name->key), "\""));
      }
      const absl::string_view extension = LowerCase(name->extension, made);
      if (std::find(extensions.begin(), extensions.end(), extension) != extensions.end()) {
        return RefuseFile(*key, extension, "appears twice");
      }
      if (extensions.size() > kMaxSampleFiles) {
        return Refuse(absl::StrCat("it has more than ", kMaxSampleFiles, " files"));
      }
      extensions.push_back(extension);
      SYSTOLE_RETURN_IF_ERROR(VisitFile(*key, extension, record.substr(entry.content, entry.size),
                                        json_left, made, visit));
    }
    return key.has_value() ? absl::OkStatus() : Refuse("it has no file with a key");
  }
};

}  // namespace

const ExampleFormat& WebDatasetSample() {
  static const Format format;
  return format;
}

}  // namespace systole
