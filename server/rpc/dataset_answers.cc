#include "server/rpc/dataset_answers.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/dataset/dataset.h"
#include "core/example/feature_view.h"
#include "core/record/source/record_source.h"
#include "core/status/status_macros.h"
#include "core/text/foreign_text.h"
#include "server/access/call_credentials.h"
#include "server/streams/end_cause.h"

namespace systole {
namespace {

// The most features that DescribeDataset lists. A record may have any number of them.
constexpr int kMaxFeaturesListed = 1000;

void Summarize(const Dataset& dataset, v1::DatasetSummary& summary) {
  summary.set_name(dataset.name());
  summary.set_num_shards(static_cast<int64_t>(dataset.shards().size()));
  summary.set_num_records(dataset.num_records());
  summary.set_fingerprint(dataset.fingerprint());
  summary.set_num_damaged_records(dataset.num_damaged_records());
}

void DescribeDamage(const DamageLog::Entry& entry, v1::DamagedRecord& record) {
  record.set_shard(ForeignName(entry.shard));
  record.set_record(entry.record);
  record.set_offset(entry.offset);
  record.set_cause(ForeignText(entry.cause));
}

}  // namespace

absl::Status ListDatasets(const Catalogue& catalogue, const Permissions& permissions,
                          v1::ListDatasetsResponse& response) {
  if (permissions.policy != nullptr && permissions.caller.anonymous() &&
      !permissions.policy->MayListAny(permissions.caller)) {
    return CredentialWanted();
  }
  for (const auto& [name, dataset] : catalogue.datasets()) {
    if (permissions.MayList(name)) Summarize(*dataset, *response.add_datasets());
  }
  for (const auto& [name, refusal] : catalogue.refused()) {
    if (!permissions.MayList(name)) continue;
    v1::RefusedDataset& refused = *response.add_refused();
    refused.set_name(name);
    refused.set_reason(ForeignText(refusal.reason));
  }
  return absl::OkStatus();
}

absl::Status DescribeDataset(const Catalogue& catalogue, const Permissions& permissions,
                             const v1::DescribeDatasetRequest& request,
                             v1::DescribeDatasetResponse& response) {
  const auto may_list = [&permissions](absl::string_view name) {
    return permissions.MayList(name);
  };
  if (permissions.caller.anonymous() && !may_list(request.dataset())) return CredentialWanted();
  absl::StatusOr<std::shared_ptr<const Dataset>> found =
      catalogue.Find(request.dataset(), may_list);
  if (!may_list(request.dataset())) return MarkedAs(EndCause::kNotPermitted, found.status());
  SYSTOLE_ASSIGN_OR_RETURN(const std::shared_ptr<const Dataset> dataset, std::move(found));
  Summarize(*dataset, *response.mutable_summary());
  for (const std::shared_ptr<const RecordSource>& shard : dataset->shards()) {
    v1::ShardSummary& summary = *response.add_shards();
    summary.set_name(ForeignName(shard->base_name()));
    summary.set_bytes(static_cast<int64_t>(shard->size_bytes()));
    summary.set_num_records(shard->num_records());
    summary.set_num_damaged_records(shard->num_damaged());
  }
  for (const DamageLog::Entry& entry : dataset->DamagedRecords(DamageLog::kMaxEntries)) {
    DescribeDamage(entry, *response.add_damaged_records());
  }
  for (const FeatureDescription& feature : dataset->features()) {
    if (response.features_size() >= kMaxFeaturesListed) break;
    v1::FeatureSummary& summary = *response.add_features();
    summary.set_name(ForeignName(feature.name));
    summary.set_kind(std::string(FeatureKindName(feature.kind)));
    summary.set_num_values(feature.count);
  }
  return absl::OkStatus();
}

void AddDamage(const Catalogue& catalogue, const Permissions& permissions,
               v1::ServerStatusResponse& response) {
  for (const auto& [name, dataset] : catalogue.datasets()) {
    if (!permissions.MayList(name)) continue;
    v1::DatasetStatus& status = *response.add_datasets();
    status.set_name(name);
    status.set_masked_examples(dataset->damage().masked_examples());
    for (const DamageLog::Entry& entry : dataset->damage().entries()) {
      DescribeDamage(entry, *status.add_damaged_records());
    }
  }
}

}  // namespace systole
