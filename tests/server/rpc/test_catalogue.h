// Catalogues and access rules for servers in tests.
//
// Thread-safe: no state.
#ifndef SYSTOLE_TESTS_SERVER_RPC_TEST_CATALOGUE_H_
#define SYSTOLE_TESTS_SERVER_RPC_TEST_CATALOGUE_H_

#include <memory>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/dataset/dataset.h"
#include "google/protobuf/text_format.h"
#include "server/access/access_control.h"
#include "server/rpc/catalogue.h"
#include "systole/v1/config.pb.h"

namespace systole {

// A catalogue of `datasets`, which all have the same shards.
inline absl::StatusOr<Catalogue> OpenTestCatalogue(const std::string& shards,
                                                   const std::set<std::string>& datasets = {
                                                       "test"}) {
  v1::ServerConfig config;
  for (const std::string& name : datasets) {
    v1::DatasetConfig& dataset = *config.add_datasets();
    dataset.set_name(name);
    dataset.add_shards(shards);
  }
  return Catalogue::Open(config, {});
}

// Finds a dataset for a caller that may know of all datasets.
inline absl::StatusOr<std::shared_ptr<const Dataset>> FindIn(const Catalogue& catalogue,
                                                             absl::string_view name) {
  return catalogue.Find(name, [](absl::string_view) { return true; });
}

// Parses the block `access` of a config. Returns null for "", which stands for a config without
// this block. If the block names a token file, the file `tokens` is used instead.
inline absl::StatusOr<std::shared_ptr<AccessControl>> TestAccess(
    const std::string& access, const std::string& tokens,
    const std::set<std::string>& datasets = {"test"}) {
  if (access.empty()) return nullptr;
  v1::AccessConfig config;
  if (!google::protobuf::TextFormat::ParseFromString(access, &config)) {
    return absl::InvalidArgumentError(access);
  }
  if (!config.token_file().empty()) config.set_token_file(tokens);
  return AccessControl::Create(config, datasets);
}

}  // namespace systole

#endif  // SYSTOLE_TESTS_SERVER_RPC_TEST_CATALOGUE_H_
