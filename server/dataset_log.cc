#include "server/dataset_log.h"

#include <cstddef>
#include <memory>

#include "absl/strings/str_cat.h"
#include "core/text/foreign_text.h"

namespace systole {
namespace {

// The log has a line of its own for at most this many damaged records of a dataset. One more line
// says how many there are in all.
constexpr size_t kMaxDamagedTold = 5;

}  // namespace

void LogServed(const Dataset& dataset, EventLog& events) {
  // EventLog does not limit the number of kProgram lines. No limit is needed here: each configured
  // dataset has at most two such lines.
  events.Add(LogCause::kProgram, LogLevel::kInfo,
             absl::StrCat("dataset '", dataset.name(), "': ", dataset.num_records(), " records in ",
                          dataset.shards().size(), " shards"),
             {.dataset = dataset.name()});
  if (!dataset.note().empty()) {
    events.Add(LogCause::kIndex, LogLevel::kInfo,
               absl::StrCat("dataset '", dataset.name(), "': ", dataset.note()),
               {.dataset = dataset.name()});
  }
  for (const std::shared_ptr<const RecordSource>& shard : dataset.shards()) {
    if (shard->note().empty()) continue;
    events.Add(LogCause::kIndex, LogLevel::kInfo,
               absl::StrCat(ForeignName(ShownName(shard->path())), ": ", shard->note()),
               {.dataset = dataset.name(), .shard = std::string(shard->base_name())});
  }
  if (dataset.num_damaged_records() == 0) return;
  events.Add(LogCause::kProgram, LogLevel::kWarn,
             absl::StrCat("dataset '", dataset.name(), "': ", dataset.num_damaged_records(),
                          dataset.num_damaged_records() == 1 ? " damaged stretch was"
                                                             : " damaged stretches were",
                          " found while indexing; `systole datasets` lists the first of them"),
             {.dataset = dataset.name()});
  for (const DamageLog::Entry& entry : dataset.DamagedRecords(kMaxDamagedTold)) {
    events.Add(
        LogCause::kDamage, LogLevel::kWarn,
        absl::StrCat("dataset '", dataset.name(), "': shard '", ForeignName(entry.shard),
                     "', offset ", entry.offset, " (record_id ", entry.record, "): ", entry.cause),
        {.dataset = dataset.name(), .shard = entry.shard, .record = entry.record});
  }
}

void LogRefused(const std::string& name, const Refusal& refusal, EventLog& events) {
  events.Add(LogCause::kProgram, LogLevel::kError,
             absl::StrCat("dataset '", name, "' is not served: ", refusal.status.message()),
             {.dataset = name});
}

}  // namespace systole
