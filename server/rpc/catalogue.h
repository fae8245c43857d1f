// The datasets of a server's config, by name: those that it serves, and those that it refuses. A
// client can name a dataset, but never a path.
//
// Thread-compatible; immutable once made.
#ifndef SYSTOLE_SERVER_RPC_CATALOGUE_H_
#define SYSTOLE_SERVER_RPC_CATALOGUE_H_

#include <map>
#include <memory>
#include <set>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/dataset/dataset.h"
#include "core/record/source/shard_format.h"
#include "systole/v1/config.pb.h"

namespace systole {

// Why a dataset is not served.
struct Refusal {
  // For the log. The message shows the dataset's patterns from the config, without secrets
  // (ShownName).
  absl::Status status;
  // For clients, which must not learn in which folders or on which servers the shards are
  // (ReasonForClients).
  std::string reason;
};

class Catalogue {
 public:
  // The names of the datasets of `config`.
  static std::set<std::string> NamesOf(const v1::ServerConfig& config);

  // InvalidArgument if `config` has no dataset, a name that is not valid, or a name that occurs
  // twice.
  static absl::Status CheckNames(const v1::ServerConfig& config);

  // An empty catalogue.
  Catalogue() = default;

  // Opens every dataset of `config`. A dataset that cannot be served (a glob that matches nothing,
  // shards without records, files that are no shards, ..) is refused. All other datasets are
  // served.
  //   InvalidArgument  the cases of CheckNames().
  //   Cancelled        InterruptRequested() is true.
  static absl::StatusOr<Catalogue> Open(const v1::ServerConfig& config,
                                        const ShardOptions& options);

  // A copy of this catalogue without the datasets `removed`, and with the datasets of `added`. A
  // dataset of `added` replaces a dataset with the same name.
  Catalogue Changed(absl::Span<const std::string> removed, const Catalogue& added) const;

  // OK if at least one dataset is served, or none is refused. Otherwise the error of the refused
  // dataset whose name sorts first.
  absl::Status CheckServes() const;

  // `datasets` are those that a running stream reads. NotFound if one of them was removed after the
  // stream began.
  absl::Status CheckServed(absl::Span<const std::string> datasets) const;

  // Whether a caller may know of the dataset `name`.
  using IsPermitted = absl::FunctionRef<bool(absl::string_view name)>;

  // The dataset `name`. Datasets for which `is_permitted` is false are treated as absent.
  //   NotFound            no dataset has this name; the error lists up to 20 permitted names.
  //   FailedPrecondition  the dataset was refused; the error says why.
  absl::StatusOr<std::shared_ptr<const Dataset>> Find(absl::string_view name,
                                                      IsPermitted is_permitted) const;

  // By name.
  const std::map<std::string, std::shared_ptr<const Dataset>, std::less<>>& datasets() const {
    return datasets_;
  }
  // By name.
  const std::map<std::string, Refusal, std::less<>>& refused() const { return refused_; }

 private:
  std::map<std::string, std::shared_ptr<const Dataset>, std::less<>> datasets_;
  std::map<std::string, Refusal, std::less<>> refused_;
};

}  // namespace systole

#endif  // SYSTOLE_SERVER_RPC_CATALOGUE_H_
