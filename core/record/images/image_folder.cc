#include "core/record/images/image_folder.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "core/checksum/crc32c.h"
#include "core/checksum/xxh3.h"
#include "core/example/tensorflow_example.h"
#include "core/record/images/class_labels.h"
#include "core/record/source/client_reason.h"
#include "core/record/source/read_scratch.h"
#include "core/status/status_macros.h"
#include "core/storage/byte_source.h"
#include "core/storage/store.h"
#include "core/storage/stores/list_shards.h"
#include "core/storage/stores/store_table.h"
#include "core/storage/stores/stored_file.h"
#include "core/text/foreign_text.h"

namespace systole {
namespace {

// The classes of the group with their labels. If the common folder has a labels.txt, a label is the
// number of the class's line in this file. Otherwise a label is the index of the class in the
// sorted list, and if there is only one class, `note` says so.
absl::StatusOr<std::vector<ImageClass>> LabelledClasses(const ImageGroup& group,
                                                        std::string& note) {
  constexpr absl::string_view kCannot = "labels.txt beside the class folders cannot be read";
  const std::string path = group.Beside(kLabelsFileName);
  const absl::StatusOr<std::string> text = GetStored(path, kMaxLabelsBytes);
  std::vector<ImageClass> classes;
  if (!text.ok()) {
    // A file that may not be read (PermissionDenied) does not count as absent. Otherwise the
    // records would get other labels than those of the file, and so other bytes.
    if (absl::IsPermissionDenied(text.status())) {
      return WithLogAsReason(
          absl::PermissionDeniedError(absl::StrCat(
              text.status().message(), "; this file decides the labels of ", group.classes.size(),
              " classes; make it readable or, if there is no such file, allow the folder to be "
              "listed")),
          kCannot);
    }
    if (!absl::IsNotFound(text.status())) return WithLogAsReason(text.status(), kCannot);
    for (const std::string& name : group.classes) {
      classes.push_back({name, static_cast<int64_t>(classes.size())});
    }
    if (classes.size() == 1) {
      note = absl::StrCat("all images are in the folder \"", ForeignName(classes[0].name),
                          "\", which is their class, and have the label 0; to get more classes, "
                          "use a pattern that matches more class folders, or write ",
                          kLabelsFileName, " beside them");
    }
    return classes;
  }
  SYSTOLE_ASSIGN_OR_RETURN(const std::vector<std::string> labels, ParseLabels(*text));
  std::map<absl::string_view, int64_t> label_of;
  for (const std::string& name : labels) {
    label_of.emplace(name, static_cast<int64_t>(label_of.size()));
  }
  for (const std::string& name : group.classes) {
    const auto found = label_of.find(name);
    if (found == label_of.end()) {
      return absl::InvalidArgumentError(absl::StrCat(
          kLabelsFileName, " beside the class folder \"", ForeignName(name),
          "\" has no line for it; add the line, or remove the file to number the classes that the "
          "pattern matches by their sorted names"));
    }
    classes.push_back({name, found->second});
  }
  return classes;
}

absl::StatusOr<FileGroup> GroupFiles(std::vector<std::string> names) {
  SYSTOLE_ASSIGN_OR_RETURN(ImageGroup group, GroupImages(std::move(names)));
  FileGroup files = {.folder = std::move(group.folder), .files = {}};
  files.files.reserve(group.images.size());
  for (GroupedImage& image : group.images) files.files.push_back(std::move(image.name));
  return files;
}

}  // namespace

const ShardFormat& ImageFormat() {
  static constexpr ShardFormat format = {.name = "images",
                                         .begins = nullptr,
                                         .ending = "",
                                         .open = nullptr,
                                         .is_record = HasImageName,
                                         .index_base = kImageIndexBase,
                                         .group = GroupFiles,
                                         .open_group = ImageFolder::Open};
  return format;
}

std::string ImageFolder::indexed_path() const { return absl::StrCat(path_, "/", kImageIndexBase); }

ImageFolder::ImageFolder(ImageGroup group, std::vector<ImageClass> classes, ReadImages read,
                         int64_t max_record_bytes)
    : path_(absl::StripSuffix(group.folder, "/")),
      classes_(std::move(classes)),
      note_(std::move(read.note)),
      max_record_bytes_(max_record_bytes) {
  std::vector<uint64_t> class_hashes;
  ImageClass longest;  // Has the longest name and the largest label of all classes.
  for (const ImageClass& each : classes_) {
    class_hashes.push_back(Xxh3(absl::StrCat(each.label, " ", each.name)));
    if (each.name.size() > longest.name.size()) longest.name = each.name;
    longest.label = std::max(longest.label, each.label);
  }
  const bool is_on_server = IsOnServer(group.folder);
  files_.reserve(group.images.size());
  ends_.reserve(group.images.size());
  Xxh3Hasher content;
  uint64_t end = 0;
  uint64_t least = std::numeric_limits<uint64_t>::max();
  uint64_t most = 0;
  for (size_t i = 0; i < group.images.size(); ++i) {
    const SeenImage& image = read.images[i];
    files_.push_back({.name = std::move(group.images[i].name),
                      .identity_hash = image.identity_hash,
                      .class_index = group.images[i].class_index,
                      .facts = image.facts});
    if (is_on_server) identities_.Add(image.identity);
    const uint64_t bytes = image.facts.bytes;
    if (image.facts.is_damaged()) {
      if (const auto cause = read.causes.find(i); cause != read.causes.end()) {
        damaged_.push_back({.record = static_cast<int64_t>(i),
                            .span = {.offset = end, .size = bytes},
                            .cause = std::move(cause->second)});
      }
      ++num_damaged_;
    }
    content.UpdateU64(bytes);
    content.UpdateU64(image.facts.crc);
    content.UpdateU64(class_hashes[group.images[i].class_index]);
    // A store may claim any size, so the sum of the sizes is kept at or below 2^62. A file that
    // does not fit below 2^62 is too large to be read.
    end += std::min(bytes, (uint64_t{1} << 62) - end);
    ends_.push_back(end);
    least = std::min(least, bytes);
    most = std::max(most, bytes);
  }
  content_hash_ = content.Digest64();
  if (files_.empty()) return;
  if (is_on_server) far_bytes_ = MakeFarBytes();
  // A size above max_record_bytes_ counts as max_record_bytes_, because a file above this limit is
  // not read, and a store may claim any size.
  least = std::min(least, static_cast<uint64_t>(max_record_bytes_));
  most = std::min(most, static_cast<uint64_t>(max_record_bytes_));
  // The bytes around an image are made only when the image is read, so this is an upper bound.
  constexpr int kMostEdge = std::numeric_limits<int>::max();
  most += ImageRecordAround(longest, {.height = kMostEdge, .width = kMostEdge}, most).size();
  payload_bytes_ = {.least = static_cast<int64_t>(least), .most = static_cast<int64_t>(most)};
}

absl::StatusOr<std::unique_ptr<RecordSource>> ImageFolder::Open(FileGroup group,
                                                                const ShardOptions& options) {
  SYSTOLE_ASSIGN_OR_RETURN(ImageGroup images, GroupImages(std::move(group.files)));
  std::string note;
  SYSTOLE_ASSIGN_OR_RETURN(std::vector<ImageClass> classes, LabelledClasses(images, note));
  SYSTOLE_ASSIGN_OR_RETURN(ReadImages read, ReadAllImages(images, options));
  absl::StrAppend(&read.note, read.note.empty() || note.empty() ? "" : "; ", note);
  return std::unique_ptr<RecordSource>(new ImageFolder(std::move(images), std::move(classes),
                                                       std::move(read), options.max_record_bytes));
}

const ExampleFormat& ImageFolder::examples() const { return TensorFlowExample(); }

RecordSpan ImageFolder::span(int64_t record) const {
  const uint64_t begin = record == 0 ? 0 : ends_[static_cast<size_t>(record) - 1];
  return {.offset = begin, .size = ends_[static_cast<size_t>(record)] - begin};
}

void ImageFolder::PrefetchSpan(int64_t record) const {
  __builtin_prefetch(&ends_[static_cast<size_t>(record)]);
  __builtin_prefetch(&file(record));
}

std::string ImageFolder::FileOf(int64_t record) const {
  return ImageNameInGroup(classes_[file(record).class_index].name, file(record).name);
}

std::string ImageFolder::Place(int64_t record) const {
  return absl::StrCat("shard \"", ForeignName(base_name()), "\", ", PlaceOf(record));
}

absl::Status ImageFolder::CheckNumber(int64_t record) const {
  if (record >= 0 && record < num_records()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("shard \"", ForeignName(base_name()), "\" has ",
                                                 num_records(), " images, so there is no record ",
                                                 record));
}

absl::Status ImageFolder::CheckHoldsRecords() const {
  if (num_damaged_ == 0 || num_damaged_ < num_records()) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat("none of the ", num_records(), " image files in \"", ForeignName(base_name()),
                   "\" can be read as a JPEG or PNG; the first, \"", ForeignName(FileOf(0)),
                   "\": ", damaged_.front().cause, "; copy the files again, or name other files"));
}

std::string ImageFolder::CauseOf(int64_t record) const {
  const auto listed =
      std::find_if(damaged_.begin(), damaged_.end(),
                   [record](const DamagedRecord& each) { return each.record == record; });
  return listed == damaged_.end() ? "damaged when the folder was opened" : listed->cause;
}

absl::Status ImageFolder::Changed(int64_t record, absl::string_view how) const {
  return ChangedSinceOpened(file(record).name, how);
}

absl::Status ImageFolder::CheckState(int64_t record, uint64_t bytes,
                                     absl::string_view identity) const {
  if (bytes != file(record).facts.bytes) {
    return Changed(record, absl::StrCat("was resized from ", file(record).facts.bytes, " to ",
                                        bytes, " bytes"));
  }
  if (Xxh3(identity) != file(record).identity_hash) {
    return Changed(record, "was rewritten or replaced");
  }
  return absl::OkStatus();
}

absl::Status ImageFolder::CannotOpen(int64_t record, const absl::Status& error) const {
  if (absl::IsNotFound(error)) return Changed(record, "was removed");
  if (absl::IsInvalidArgument(error))
    return Changed(record, "was replaced by something that is not a file");
  // Clients see this error, so it must not name folders or servers.
  const std::string& name = file(record).name;
  const std::string cause =
      SchemeOf(name).empty()
          ? absl::StrReplaceAll(error.message(),
                                {{name, BaseName(name)}, {ForeignText(name), BaseName(name)}})
          : absl::StrCat("its store answers ", absl::StatusCodeToString(error.code()));
  // PermissionDenied would look like the client's fault, but it is this process that may not read
  // the file.
  const bool is_forbidden = absl::IsPermissionDenied(error) && SchemeOf(name).empty();
  return ReadFailure(absl::Status(is_forbidden ? absl::StatusCode::kNotFound : error.code(),
                                  absl::StrCat(Place(record), " cannot be opened: ", cause)));
}

RecordAround ImageFolder::Around(int64_t record) const {
  const File& wanted = file(record);
  return ImageRecordAround(classes_[wanted.class_index], wanted.facts.size, wanted.facts.bytes);
}

bool ImageFolder::IsTooLarge(int64_t record) const {
  // Subtracts instead of adding: the sum could overflow, because a store may claim any size.
  const auto most = static_cast<uint64_t>(max_record_bytes_);
  const uint64_t bytes = file(record).facts.bytes;
  return bytes > most || Around(record).size() > most - bytes;
}

absl::Status ImageFolder::TooLarge(int64_t record) const {
  return absl::ResourceExhaustedError(
      absl::StrCat(Place(record), " has ", file(record).facts.bytes, " bytes of image and ",
                   Around(record).size(), " bytes around the image; the limit is ",
                   max_record_bytes_, " for both together; make the image smaller"));
}

absl::Status ImageFolder::CheckDamagedFile(int64_t record) const {
  const absl::StatusOr<StoredState> now = StatStored(file(record).name);
  return now.ok() ? CheckState(record, now->size_bytes, now->identity)
                  : CannotOpen(record, now.status());
}

absl::Status ImageFolder::Damaged(int64_t record) const {
  return absl::DataLossError(absl::StrCat(Place(record), ": ", CauseOf(record)));
}

absl::StatusOr<std::unique_ptr<ByteSource>> ImageFolder::OpenFile(int64_t record) const {
  const std::string& name = file(record).name;
  StoredState state = {.size_bytes = file(record).facts.bytes, .identity = {}};
  if (identities_.size() > 0) {
    state.identity = std::string(identities_[static_cast<size_t>(record)]);
  }
  absl::StatusOr<std::unique_ptr<ByteSource>> source =
      state.identity.empty() ? OpenStored(name) : OpenStoredInState(name, state);
  if (!source.ok()) return CannotOpen(record, source.status());
  SYSTOLE_ASSIGN_OR_RETURN(const uint64_t bytes, (*source)->Size());
  SYSTOLE_RETURN_IF_ERROR(CheckState(record, bytes, (*source)->identity()));
  return source;
}

absl::Status ImageFolder::CheckBytes(int64_t record, absl::string_view image) const {
  const ImageFacts& facts = file(record).facts;
  if (image.size() < facts.bytes) {
    return absl::DataLossError(absl::StrCat(Place(record), ": the file ends after ", image.size(),
                                            " of ", facts.bytes, " bytes"));
  }
  const uint32_t crc = Crc32c(image);
  if (crc == facts.crc) return absl::OkStatus();
  return MarkedAsChecksumMismatch(absl::DataLossError(absl::StrCat(
      Place(record), ": ",
      absl::StrFormat("CRC-32C of the file is 0x%08x, it was 0x%08x; if another file of this size "
                      "and time was put there, run `systole index --rebuild`",
                      crc, facts.crc))));
}

absl::StatusOr<absl::Span<char>> ImageFolder::RoomFor(int64_t record, const RecordAround& around,
                                                      AlignedBuffer& scratch) const {
  const uint64_t bytes = file(record).facts.bytes;
  // The image begins on a cache line: see kCopyAlignment.
  const size_t begin = static_cast<size_t>(AlignUp(static_cast<int64_t>(around.before.size())));
  SYSTOLE_RETURN_IF_ERROR(GrowScratch(begin + bytes + around.after.size(), scratch));
  return absl::MakeSpan(reinterpret_cast<char*>(scratch.data()) + begin, bytes);
}

absl::string_view ImageFolder::PutAround(const RecordAround& around, absl::Span<char> image) {
  char* const payload = image.data() - around.before.size();
  std::memcpy(payload, around.before.data(), around.before.size());
  std::memcpy(image.data() + image.size(), around.after.data(), around.after.size());
  return absl::string_view(payload, around.size() + image.size());
}

absl::StatusOr<absl::string_view> ImageFolder::ReadFile(int64_t record, AlignedBuffer& scratch,
                                                        bool& outage) const {
  const absl::StatusOr<std::unique_ptr<ByteSource>> source = OpenFile(record);
  outage = IsOutage(source.status());
  if (!source.ok()) return ReadFailure(source.status());
  const RecordAround around = Around(record);
  SYSTOLE_ASSIGN_OR_RETURN(const absl::Span<char> image, RoomFor(record, around, scratch));
  const absl::StatusOr<size_t> read = (*source)->ReadAt(0, image);
  if (!read.ok()) {
    outage = IsOutage(read.status());
    return ReadFailure(read.status());
  }
  if (absl::Status whole = CheckBytes(record, absl::string_view(image.data(), *read));
      !whole.ok()) {
    // If the bytes differ because the file was changed, the record does not count as damaged.
    absl::Status status = ReadFailure((*source)->CheckUnchanged());
    outage = IsOutage(status);
    return status.ok() ? whole : status;
  }
  return PutAround(around, image);
}

absl::StatusOr<absl::string_view> ImageFolder::ReadOne(int64_t record, AlignedBuffer& scratch,
                                                       bool& outage) const {
  if (file(record).facts.is_damaged()) {
    const absl::Status same = CheckDamagedFile(record);
    outage = IsOutage(same);
    SYSTOLE_RETURN_IF_ERROR(same);
    return Damaged(record);
  }
  if (IsTooLarge(record)) return TooLarge(record);
  return ReadFile(record, scratch, outage);
}

absl::StatusOr<absl::string_view> ImageFolder::ReadRecord(int64_t record,
                                                          AlignedBuffer& scratch) const {
  SYSTOLE_RETURN_IF_ERROR(CheckNumber(record));
  bool outage = false;
  return ReadOne(record, scratch, outage);
}

absl::Status ImageFolder::ReadRecords(absl::Span<const int64_t> records, RecordBytes /*bytes*/,
                                      int64_t /*max_read_bytes*/, AlignedBuffer& scratch,
                                      RecordCallback callback) const {
  for (const int64_t record : records) SYSTOLE_RETURN_IF_ERROR(CheckNumber(record));
  for (size_t place = 0; place < records.size(); ++place) {
    bool outage = false;
    const absl::StatusOr<absl::string_view> payload = ReadOne(records[place], scratch, outage);
    SYSTOLE_RETURN_IF_ERROR(callback(place, payload));
    if (outage) return payload.status();
  }
  return absl::OkStatus();
}

absl::StatusOr<absl::string_view> ImageFolder::TakeFetched(int64_t record, FetchedBytes fetched,
                                                           AlignedBuffer& scratch,
                                                           bool& outage) const {
  if (IsTooLarge(record)) {
    return file(record).facts.is_damaged() ? Damaged(record) : TooLarge(record);
  }
  const absl::StatusOr<absl::string_view> bytes = fetched(*far_bytes(), span(record));
  if (!bytes.ok()) {
    outage = IsOutage(bytes.status());
    return ReadFailure(bytes.status());
  }
  if (file(record).facts.is_damaged()) return Damaged(record);
  SYSTOLE_RETURN_IF_ERROR(CheckBytes(record, *bytes));
  const RecordAround around = Around(record);
  SYSTOLE_ASSIGN_OR_RETURN(const absl::Span<char> image, RoomFor(record, around, scratch));
  std::memcpy(image.data(), bytes->data(), bytes->size());
  return PutAround(around, image);
}

absl::Status ImageFolder::ReadFetched(absl::Span<const int64_t> records, FetchedBytes fetched,
                                      AlignedBuffer& scratch, RecordCallback callback) const {
  for (size_t place = 0; place < records.size(); ++place) {
    SYSTOLE_RETURN_IF_ERROR(CheckNumber(records[place]));
    bool outage = false;
    const absl::StatusOr<absl::string_view> payload =
        TakeFetched(records[place], fetched, scratch, outage);
    SYSTOLE_RETURN_IF_ERROR(callback(place, payload));
    if (outage) return payload.status();
  }
  return absl::OkStatus();
}

}  // namespace systole
