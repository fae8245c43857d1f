#include "server/config_reload.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "core/status/status_macros.h"
#include "server/dataset_log.h"

namespace systole {
namespace {

// The datasets of `now` that are to be opened: those that were added, and those that were refused
// when they were opened last. The cause of a refusal may be gone by now.
v1::ServerConfig ToOpen(const ConfigChange& change, const v1::ServerConfig& now,
                        const Catalogue& served) {
  v1::ServerConfig config = now;
  config.clear_datasets();
  for (const v1::DatasetConfig& dataset : change.added) *config.add_datasets() = dataset;
  for (const v1::DatasetConfig& dataset : now.datasets()) {
    if (served.refused().contains(dataset.name())) *config.add_datasets() = dataset;
  }
  return config;
}

}  // namespace

ConfigReload::ConfigReload(v1::ServerConfig running, ShardOptions options, Server& server,
                           std::shared_ptr<AccessControl> access, EventLog& events)
    : running_(std::move(running)),
      options_(std::move(options)),
      server_(server),
      access_(std::move(access)),
      events_(events) {}

ConfigReload::~ConfigReload() {
  if (opening_ != nullptr) opening_->unwanted.Raise();
}

void ConfigReload::Log(LogLevel level, absl::string_view text) {
  events_.Add(LogCause::kProgram, level, text);
}

void ConfigReload::Refuse(absl::string_view why) {
  Log(LogLevel::kError,
      absl::StrCat("the new config is refused: ", why,
                   "; the server keeps the old config. Correct the file, and send SIGHUP again"));
}

void ConfigReload::Begin(v1::ServerConfig config) {
  if (opening_ != nullptr) {
    waiting_ = std::move(config);
    return;
  }
  if (const absl::Status named = Catalogue::CheckNames(config); !named.ok()) {
    return Refuse(named.message());
  }
  next_ = std::move(config);
  change_ = ChangeOf(running_, next_);
  // No feed reads a dataset that was refused. So such a dataset may change while the server runs.
  const std::shared_ptr<const Catalogue> served = server_.catalogue();
  std::erase_if(change_.changed,
                [&served](const std::string& name) { return served->refused().contains(name); });
  v1::ServerConfig to_open = ToOpen(change_, next_, *served);
  opening_ = std::make_shared<Opening>();
  if (to_open.datasets().empty()) {
    MutexLock lock(opening_->mu);
    opening_->opened.emplace(Catalogue());
    return;
  }
  if (thread_ == nullptr) thread_ = std::make_unique<WorkerPool>(1);
  thread_->Submit([opening = opening_, to_open = std::move(to_open), options = options_] {
    const InterruptScope scope(opening->unwanted);
    absl::StatusOr<Catalogue> opened = Catalogue::Open(to_open, options);
    MutexLock lock(opening->mu);
    opening->opened.emplace(std::move(opened));
    opening->changed.Signal();
  });
}

void ConfigReload::Tick() {
  if (opening_ == nullptr) return;
  std::optional<absl::StatusOr<Catalogue>> opened;
  {
    MutexLock lock(opening_->mu);
    if (!opening_->opened.has_value()) return;
    opened = std::move(opening_->opened);
  }
  opening_ = nullptr;
  const absl::Status applied = opened->ok() ? Apply(**opened) : opened->status();
  if (!applied.ok()) Refuse(applied.message());
  if (waiting_.has_value()) Begin(*std::exchange(waiting_, std::nullopt));
}

absl::Status ConfigReload::Apply(const Catalogue& added) {
  const std::shared_ptr<const Catalogue> served = server_.catalogue();
  SYSTOLE_RETURN_IF_ERROR(served->Changed(change_.removed, added).CheckServes());
  std::set<std::string> names = Catalogue::NamesOf(next_);
  if (access_ != nullptr && (change_.access || names != Catalogue::NamesOf(running_))) {
    const v1::AccessConfig& access = change_.access ? next_.access() : running_.access();
    SYSTOLE_RETURN_IF_ERROR(access_->Configure(access, std::move(names)));
  }
  server_.Change(change_.removed, added);
  for (const std::string& name : change_.removed) {
    events_.Add(LogCause::kProgram, LogLevel::kInfo,
                absl::StrCat("dataset '", name, "' was removed; its streams end"),
                {.dataset = name});
  }
  for (const auto& [name, dataset] : added.datasets()) LogServed(*dataset, events_);
  for (const auto& [name, refusal] : added.refused()) LogRefused(name, refusal, events_);
  LogWhatStays(change_);
  // `running_` keeps the old value of everything that a running server cannot change. So the next
  // config is compared with the values that the server uses.
  v1::ServerConfig now = running_;
  *now.mutable_datasets() = next_.datasets();
  for (const std::string& name : change_.changed) {
    const auto of_name = [&name](const v1::DatasetConfig& dataset) {
      return dataset.name() == name;
    };
    *std::find_if(now.mutable_datasets()->begin(), now.mutable_datasets()->end(), of_name) =
        *std::find_if(running_.datasets().begin(), running_.datasets().end(), of_name);
  }
  if (change_.access) *now.mutable_access() = next_.access();
  running_ = std::move(now);
  server_.ShowConfig(running_);
  return absl::OkStatus();
}

void ConfigReload::LogWhatStays(const ConfigChange& change) {
  for (const std::string& name : change.changed) {
    events_.Add(LogCause::kProgram, LogLevel::kWarn,
                absl::StrCat("dataset '", name,
                             "' differs in the new config, and is served as before: a running "
                             "server cannot change it. Give the new data another name, or restart "
                             "the server"),
                {.dataset = name});
  }
  if (!change.fixed.empty()) {
    Log(LogLevel::kWarn,
        absl::StrCat("the new config also differs in ", absl::StrJoin(change.fixed, ", "),
                     ", which a running server cannot change: restart the server"));
  }
  const size_t served = server_.catalogue()->datasets().size();
  Log(LogLevel::kInfo, absl::StrCat("the new config is in force; the server serves ", served,
                                    served == 1 ? " dataset" : " datasets"));
}

bool ConfigReload::Stop(absl::Duration patience) {
  if (opening_ == nullptr) return true;
  opening_->unwanted.Raise();
  MutexLock lock(opening_->mu);
  const absl::Time deadline = absl::Now() + patience;
  while (!opening_->opened.has_value() && absl::Now() < deadline) {
    opening_->changed.WaitFor(opening_->mu, deadline - absl::Now());
  }
  return opening_->opened.has_value();
}

}  // namespace systole
