#include "server/rpc/catalogue.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/compression/compression.h"
#include "core/interrupt/interrupt.h"
#include "core/plan/note_columns.h"
#include "core/record/source/client_reason.h"
#include "core/status/status_macros.h"
#include "core/storage/byte_source.h"
#include "core/text/did_you_mean.h"
#include "core/text/foreign_text.h"
#include "server/streams/end_cause.h"

namespace systole {
namespace {

// The most names that an error lists.
constexpr size_t kMaxNamesListed = 20;

bool IsDatasetName(absl::string_view name) {
  return !name.empty() && name.size() <= 128 &&
         name.find_first_not_of(
             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
             "0123456789_.-") == absl::string_view::npos;
}

absl::StatusOr<Compression> StatedCompression(const v1::DatasetConfig& entry) {
  switch (entry.compression()) {
    case v1::DatasetConfig::DETECT:
      return Compression::kDetect;
    case v1::DatasetConfig::NONE:
      return Compression::kNone;
    case v1::DatasetConfig::GZIP:
      return Compression::kGzip;
    case v1::DatasetConfig::ZLIB:
      return Compression::kZlib;
    case v1::DatasetConfig::ZSTD:
      return Compression::kZstd;
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("dataset '", entry.name(), "': compression is ",
                       static_cast<int>(entry.compression()), ", which this server does not know"));
  }
}

// The error if opening was interrupted at `entry`. Open() returns this error, and does not note the
// dataset as refused.
absl::Status Interrupted(const v1::DatasetConfig& entry) {
  return absl::CancelledError(
      absl::StrCat("opening the datasets was interrupted at '", entry.name(), "'"));
}

void AppendShown(std::string* text, absl::string_view pattern) {
  absl::StrAppend(text, ForeignText(ShownName(pattern)));
}

}  // namespace

std::set<std::string> Catalogue::NamesOf(const v1::ServerConfig& config) {
  std::set<std::string> names;
  for (const v1::DatasetConfig& dataset : config.datasets()) names.insert(dataset.name());
  return names;
}

absl::Status Catalogue::CheckNames(const v1::ServerConfig& config) {
  if (config.datasets().empty()) {
    return absl::InvalidArgumentError(
        "no dataset to serve; give --dataset NAME=GLOB, or `datasets` in the file of --config");
  }
  std::set<std::string> names;
  for (const v1::DatasetConfig& entry : config.datasets()) {
    if (!IsDatasetName(entry.name())) {
      return absl::InvalidArgumentError(
          absl::StrCat("dataset name '", ForeignName(ShownName(entry.name())),
                       "': want 1 to 128 letters, digits, '_', '-' or '.'"));
    }
    if (!names.insert(entry.name()).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("dataset '", entry.name(), "' is named twice; rename one"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Catalogue> Catalogue::Open(const v1::ServerConfig& config,
                                          const ShardOptions& options) {
  SYSTOLE_RETURN_IF_ERROR(CheckNames(config));
  Catalogue catalogue;
  for (const v1::DatasetConfig& entry : config.datasets()) {
    const std::vector<std::string> patterns(entry.shards().begin(), entry.shards().end());
    ShardOptions own = options;
    SYSTOLE_ASSIGN_OR_RETURN(own.compression, StatedCompression(entry));
    absl::StatusOr<std::shared_ptr<Dataset>> dataset =
        Dataset::Open(entry.name(), patterns, own,
                      {.records = entry.expect_records(), .bytes = entry.expect_bytes()});
    if (dataset.ok() && !entry.columns().empty()) {
      const absl::StatusOr<NotedColumns> noted =
          NoteColumnsOf(**dataset, {entry.columns().begin(), entry.columns().end()});
      if (noted.ok()) {
        (*dataset)->AddNote(noted->note);
      } else {
        dataset = noted.status();
      }
    }
    if (InterruptRequested()) return Interrupted(entry);
    if (!dataset.ok()) {
      const absl::Status& error = dataset.status();
      catalogue.refused_.emplace(
          entry.name(),
          Refusal{.status = absl::Status(
                      error.code(), absl::StrCat(error.message(), " (--dataset ", entry.name(), "=",
                                                 absl::StrJoin(patterns, ", ", AppendShown), ")")),
                  .reason = ReasonForClients(error)});
      continue;
    }
    catalogue.datasets_.emplace(entry.name(), *std::move(dataset));
  }
  return catalogue;
}

Catalogue Catalogue::Changed(absl::Span<const std::string> removed, const Catalogue& added) const {
  Catalogue changed = *this;
  const auto remove = [&changed](const std::string& name) {
    changed.datasets_.erase(name);
    changed.refused_.erase(name);
  };
  for (const std::string& name : removed) remove(name);
  for (const auto& [name, dataset] : added.datasets_) {
    remove(name);
    changed.datasets_.emplace(name, dataset);
  }
  for (const auto& [name, refusal] : added.refused_) {
    remove(name);
    changed.refused_.emplace(name, refusal);
  }
  return changed;
}

absl::Status Catalogue::CheckServes() const {
  if (!datasets_.empty() || refused_.empty()) return absl::OkStatus();
  const auto& [name, refusal] = *refused_.begin();
  const std::string others =
      refused_.size() == 1 ? "" : absl::StrCat(", nor any of ", refused_.size() - 1, " others");
  return absl::Status(refusal.status.code(), absl::StrCat("dataset '", name, "' cannot be served",
                                                          others, ": ", refusal.status.message()));
}

absl::Status Catalogue::CheckServed(absl::Span<const std::string> datasets) const {
  for (const std::string& name : datasets) {
    if (datasets_.contains(name)) continue;
    return MarkedAs(EndCause::kRemoved,
                    absl::NotFoundError(absl::StrCat("the dataset '", ForeignName(name),
                                                     "' was removed from this server")));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const Dataset>> Catalogue::Find(absl::string_view name,
                                                               IsPermitted is_permitted) const {
  if (is_permitted(name)) {
    if (const auto found = datasets_.find(name); found != datasets_.end()) return found->second;
    if (const auto found = refused_.find(name); found != refused_.end()) {
      return absl::FailedPreconditionError(absl::StrCat("this server does not serve the dataset '",
                                                        name, "': ", found->second.reason));
    }
  }
  std::vector<std::string> names;
  for (const auto& [known, dataset] : datasets_) {
    if (is_permitted(known)) names.push_back(known);
  }
  const std::string meant = DidYouMean(name, names);
  const size_t more = names.size() > kMaxNamesListed ? names.size() - kMaxNamesListed : 0;
  names.resize(names.size() - more);
  return absl::NotFoundError(absl::StrCat(
      "no dataset '", ForeignName(name), "'; this server has ",
      names.empty() ? "none for this caller" : absl::StrCat("'", absl::StrJoin(names, "', '"), "'"),
      more > 0 ? absl::StrCat(" and ", more, " more") : "", meant));
}

}  // namespace systole
