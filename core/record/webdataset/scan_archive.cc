#include "core/record/webdataset/scan_archive.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/checksum/crc32c.h"
#include "core/record/source/read_window.h"
#include "core/record/webdataset/sample_name.h"
#include "core/record/webdataset/tar_entry.h"
#include "core/record/webdataset/webdataset_sample.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

// This many bytes are read from storage at a time. A pax header must fit in this size.
constexpr int64_t kReadBytes = 256 << 10;
static_assert(kReadBytes >= kMaxTarMetaBytes);

class Scanner {
 public:
  Scanner(absl::string_view name, ReadWindow window, std::optional<uint64_t> max_samples)
      : name_(name),
        window_(std::move(window)),
        size_(window_.source_bytes()),
        max_samples_(max_samples.value_or(size_)) {}

  absl::StatusOr<ScannedArchive> Scan() {
    uint64_t offset = 0;
    bool ended = size_ == 0;
    const auto look = [this](uint64_t at, uint64_t bytes) { return window_.At(at, bytes); };
    while (offset < size_ && !ended) {
      SYSTOLE_ASSIGN_OR_RETURN(TarEntry entry, ReadTarEntry(offset, size_, look));
      switch (entry.kind) {
        case TarEntry::Kind::kOther:
          break;
        case TarEntry::Kind::kFile:
          SYSTOLE_RETURN_IF_ERROR(Take(entry));
          break;
        case TarEntry::Kind::kEnd: {
          SYSTOLE_ASSIGN_OR_RETURN(ended, AreZeros(entry.end));
          if (!ended) {
            Doubt("a block of zeros, which ends an archive, and more after it");
            entry.is_lost = true;
          }
          break;
        }
        case TarEntry::Kind::kDamaged:
          Doubt(std::move(entry.cause));
          break;
      }
      offset = entry.end;
      if (entry.is_lost) {
        SYSTOLE_ASSIGN_OR_RETURN(offset, FindHeader(offset));
      }
      if (ends_.size() > max_samples_) return TooManyRecords(name_, max_samples_);
    }
    if (!ended) Doubt("cut short: no block of zeros ends the archive; 1 sample or more is lost");
    if (open_.has_value()) {
      if (open_->cause.empty()) open_->cause = doubt_;
      Close();
    } else if (!doubt_.empty()) {  // No file was found.
      Sample all = {.crc = 0, .damaged = true};
      SYSTOLE_RETURN_IF_ERROR(Extend(all.crc, 0, size_));
      Enter(size_, all, doubt_);
    }
    if (ends_.size() > max_samples_) return TooManyRecords(name_, max_samples_);
    return ScannedArchive{.index = damage_.MoveInto(RecordIndex(std::move(ends_))),
                          .samples = std::move(samples_)};
  }

 private:
  // The sample whose files are being read.
  struct Open {
    std::string key;
    Sample sample;
    std::string cause;
    uint64_t end = 0;
    int files = 0;
  };

  // Notes that a file may have been lost between the last file and the next one.
  void Doubt(std::string cause) {
    if (doubt_.empty()) doubt_ = std::move(cause);
  }

  absl::Status Take(const TarEntry& entry) {
    const std::optional<SampleName> name = SampleNameOf(entry.name);
    if (!name.has_value()) return absl::OkStatus();
    if (!doubt_.empty() && open_.has_value() && open_->cause.empty()) open_->cause = doubt_;
    if (!open_.has_value() || open_->key != name->key) {
      if (open_.has_value()) Close();
      open_ = Open{.key = std::string(name->key), .sample = {}, .cause = doubt_, .end = end_};
    }
    doubt_.clear();
    if (++open_->files > kMaxSampleFiles && open_->cause.empty()) {
      open_->cause = absl::StrCat("the sample has more than ", kMaxSampleFiles, " files");
    }
    SYSTOLE_RETURN_IF_ERROR(Extend(open_->sample.crc, open_->end, entry.end));
    open_->end = entry.end;
    return absl::OkStatus();
  }

  // Adds the open sample to the index.
  void Close() {
    open_->sample.damaged = !open_->cause.empty();
    Enter(open_->end, open_->sample, std::move(open_->cause));
    open_.reset();
  }

  void Enter(uint64_t end, Sample sample, std::string cause) {
    if (sample.damaged) {
      damage_.Add(static_cast<int64_t>(ends_.size()), {.offset = end_, .size = end - end_},
                  std::move(cause));
    }
    ends_.push_back(end);
    samples_.push_back(sample);
    end_ = end;
  }

  absl::Status Extend(uint32_t& crc, uint64_t begin, uint64_t end) {
    while (begin < end) {
      SYSTOLE_ASSIGN_OR_RETURN(const absl::string_view piece, window_.Piece(begin, end - begin));
      crc = ExtendCrc32c(crc, piece);
      begin += piece.size();
    }
    return absl::OkStatus();
  }

  absl::StatusOr<bool> AreZeros(uint64_t offset) {
    while (offset < size_) {
      SYSTOLE_ASSIGN_OR_RETURN(const absl::string_view piece,
                               window_.Piece(offset, size_ - offset));
      if (piece.find_first_not_of('\0') != absl::string_view::npos) return false;
      offset += piece.size();
    }
    return true;
  }

  // The first block from `offset` on that is a header; the archive's end if there is none.
  absl::StatusOr<uint64_t> FindHeader(uint64_t offset) {
    for (; offset < size_ && size_ - offset >= kTarBlockBytes; offset += kTarBlockBytes) {
      SYSTOLE_ASSIGN_OR_RETURN(const char* const block, window_.At(offset, kTarBlockBytes));
      if (IsTarHeader(block)) return offset;
    }
    return size_;
  }

  const absl::string_view name_;
  ReadWindow window_;
  const uint64_t size_;
  const uint64_t max_samples_;
  std::optional<Open> open_;
  std::string doubt_;  // Why a file may have been lost after the last file. Empty: none was lost.
  uint64_t end_ = 0;   // The end of the last sample in the index.
  std::vector<uint64_t> ends_;
  std::vector<Sample> samples_;
  DamageList damage_;
};

}  // namespace

absl::StatusOr<ScannedArchive> ScanArchive(const ByteSource& archive,
                                           std::optional<uint64_t> max_samples) {
  SYSTOLE_ASSIGN_OR_RETURN(const uint64_t size, archive.Size());
  SYSTOLE_ASSIGN_OR_RETURN(ReadWindow window, ReadWindow::Create(archive, size, kReadBytes));
  return Scanner(archive.name(), std::move(window), max_samples).Scan();
}

}  // namespace systole
