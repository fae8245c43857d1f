// The datasets a server serves, by name. A client names a dataset; it can never name a path.
//
// Thread-compatible; immutable once made.
#ifndef SYSTOLE_SERVER_CATALOGUE_H_
#define SYSTOLE_SERVER_CATALOGUE_H_

#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/pipeline/dataset.h"
#include "core/record/shard.h"
#include "systole/v1/config.pb.h"

namespace systole {

class Catalogue {
 public:
  // Opens every dataset of `config`.
  //   InvalidArgument  no dataset, a bad or repeated name, or a dataset without records.
  //   NotFound         a glob that matches nothing.
  static absl::StatusOr<Catalogue> Open(const v1::ServerConfig& config,
                                        const ShardOptions& options);

  // NotFound, listing the names there are.
  absl::StatusOr<std::shared_ptr<const Dataset>> Find(absl::string_view name) const;

  // By name.
  const std::map<std::string, std::shared_ptr<const Dataset>, std::less<>>& datasets() const {
    return datasets_;
  }

 private:
  std::map<std::string, std::shared_ptr<const Dataset>, std::less<>> datasets_;
};

}  // namespace systole

#endif  // SYSTOLE_SERVER_CATALOGUE_H_
