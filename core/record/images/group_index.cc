#include "core/record/images/group_index.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "core/status/status_macros.h"
#include "core/storage/byte_sink.h"
#include "core/storage/byte_source.h"
#include "core/storage/store.h"
#include "core/storage/stores/store_table.h"
#include "core/storage/stores/stored_file.h"
#include "core/text/foreign_text.h"

namespace systole {
namespace {

// A line of an index usually has fewer bytes than this, not counting the file's name.
constexpr uint64_t kUsualLineBytes = 128;
// The first line of an index has fewer bytes than this.
constexpr uint64_t kMostHeadBytes = 64;

// The files in the class folders of a local folder. When a name is looked up, its class folder is
// listed. Only the list of the last class folder is kept.
class ListedFolder {
 public:
  explicit ListedFolder(const std::string& folder) : folder_(folder) {}

  // Whether `name`, such as "rose/1.jpg", may exist. True if its class folder cannot be listed.
  bool MayHave(absl::string_view name) {
    const size_t slash = name.rfind('/');
    const absl::string_view class_folder = name.substr(0, slash + 1);
    if (class_folder != class_folder_) List(class_folder);
    return !is_known_ || std::binary_search(files_.begin(), files_.end(), name.substr(slash + 1));
  }

 private:
  void List(absl::string_view class_folder) {
    class_folder_ = std::string(class_folder);
    files_.clear();
    const std::string path = absl::StrCat(folder_, class_folder);
    const absl::StatusOr<const Store*> store = StoreOf(path);
    const absl::StatusOr<std::vector<std::string>> names =
        store.ok() ? (*store)->ListFolder(path) : store.status();
    is_known_ = names.ok() || absl::IsNotFound(names.status());
    if (!names.ok()) return;
    for (const std::string& each : *names) files_.emplace_back(BaseName(each));
    std::sort(files_.begin(), files_.end());
  }

  const std::string& folder_;
  std::string class_folder_;
  bool is_known_ = false;
  std::vector<std::string> files_;  // Base names, sorted.
};

}  // namespace

GroupIndex::GroupIndex(const ImageGroup& group, std::string path)
    : group_(group), path_(std::move(path)), places_(group.images.size(), kNoLine) {}

std::string GroupIndex::NameOf(size_t i) const {
  const GroupedImage& image = group_.images[i];
  return ImageNameInGroup(group_.classes[image.class_index], image.name);
}

uint64_t GroupIndex::MostBytes() const {
  if (!IsOnServer(path_)) return kMaxImageIndexBytes;
  uint64_t bytes = kMostFarIndexBytes;
  for (const GroupedImage& image : group_.images) {
    bytes += 4 * (kUsualLineBytes + image.name.size());
  }
  return std::min(bytes, kMaxImageIndexBytes);
}

void GroupIndex::ForEachLine(LineCallback see) const {
  size_t i = 0;
  std::string name = places_.empty() ? "" : NameOf(0);
  for (absl::string_view lines = absl::string_view(text_).substr(first_line_); !lines.empty();) {
    const auto place = static_cast<uint64_t>(lines.data() - text_.data());
    const ImageIndexLine line = TakeImageIndexLine(lines);
    while (i < places_.size() && ImageNameIsBefore(name, line.name)) {
      if (++i < places_.size()) name = NameOf(i);
    }
    see(place, line, i < places_.size() && name == line.name ? i : places_.size());
  }
}

absl::Status GroupIndex::Read() {
  SYSTOLE_ASSIGN_OR_RETURN(text_, GetStored(path_, MostBytes()));
  const absl::StatusOr<absl::string_view> lines = CheckImageIndex(text_);
  if (!lines.ok()) {
    text_ = std::string();
    return lines.status();
  }
  first_line_ = text_.size() - lines->size();
  ForEachLine([this](uint64_t place, const ImageIndexLine& /*line*/, size_t image) {
    if (image < places_.size()) places_[image] = place;
  });
  return absl::OkStatus();
}

std::optional<ImageIndexLine> GroupIndex::Line(size_t i) const {
  if (places_[i] == kNoLine) return std::nullopt;
  absl::string_view lines = absl::string_view(text_).substr(places_[i]);
  return TakeImageIndexLine(lines);
}

absl::string_view GroupIndex::TextAt(uint64_t place) const {
  const absl::string_view lines = absl::string_view(text_).substr(place);
  absl::string_view rest = lines;
  TakeImageIndexLine(rest);
  return lines.substr(0, lines.size() - rest.size());
}

std::vector<uint64_t> GroupIndex::OtherLines() const {
  std::vector<uint64_t> others;
  const bool is_local = SchemeOf(group_.folder).empty();
  ListedFolder listed(group_.folder);
  ForEachLine([&](uint64_t place, const ImageIndexLine& line, size_t image) {
    if (image < places_.size() || (is_local && !listed.MayHave(line.name))) return;
    others.push_back(place);
  });
  if (!is_local && others.size() > std::max(kMostOtherFarLines, 2 * places_.size())) others.clear();
  return others;
}

absl::Status GroupIndex::Write(absl::Span<const std::string> lines) const {
  SYSTOLE_ASSIGN_OR_RETURN(const std::unique_ptr<ByteSink> sink, CreateStored(path_));
  std::vector<uint64_t> others = OtherLines();
  const auto each = [&](absl::FunctionRef<void(absl::string_view)> take) {
    auto other = others.begin();
    for (size_t i = 0; i < lines.size(); ++i) {
      const bool was_read = places_[i] != kNoLine;
      if (lines[i].empty() && !was_read) continue;
      for (; other != others.end(); ++other) {
        absl::string_view rest = TextAt(*other);
        if (!ImageNameIsBefore(TakeImageIndexLine(rest).name, NameOf(i))) break;
        take(TextAt(*other));
      }
      take(lines[i].empty() ? TextAt(places_[i]) : lines[i]);
    }
    for (; other != others.end(); ++other) take(TextAt(*other));
  };
  const auto fits = [&each] {
    uint64_t files = 0;
    uint64_t bytes = kMostHeadBytes;
    each([&](absl::string_view line) {
      ++files;
      bytes += line.size();
    });
    return files <= kMaxGroupFiles && bytes <= kMaxImageIndexBytes;
  };
  if (!fits()) {
    others.clear();
    if (!fits()) {
      return absl::ResourceExhaustedError(absl::StrCat("\"", ForeignText(ShownName(path_)),
                                                       "\" would have more than ",
                                                       kMaxImageIndexBytes, " bytes"));
    }
  }
  SYSTOLE_RETURN_IF_ERROR(WriteImageIndex(each, *sink));
  return sink->Close();
}

}  // namespace systole
