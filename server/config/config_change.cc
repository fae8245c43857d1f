#include "server/config/config_change.h"

#include <map>
#include <set>

#include "google/protobuf/descriptor.h"
#include "google/protobuf/util/message_differencer.h"

namespace systole {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::util::MessageDifferencer;

std::map<std::string, const v1::DatasetConfig*> DatasetsByName(const v1::ServerConfig& config) {
  std::map<std::string, const v1::DatasetConfig*> datasets;
  for (const v1::DatasetConfig& dataset : config.datasets()) datasets[dataset.name()] = &dataset;
  return datasets;
}

std::set<std::string> UnixUsersOf(const v1::AccessConfig& access) {
  std::set<std::string> users;
  for (const v1::IdentityConfig& identity : access.identities()) {
    users.insert(identity.unix_users().begin(), identity.unix_users().end());
  }
  return users;
}

void CompareDatasets(const v1::ServerConfig& before, const v1::ServerConfig& now,
                     ConfigChange& change) {
  const std::map<std::string, const v1::DatasetConfig*> had = DatasetsByName(before);
  const std::map<std::string, const v1::DatasetConfig*> has = DatasetsByName(now);
  for (const auto& [name, dataset] : has) {
    const auto found = had.find(name);
    if (found == had.end()) {
      change.added.push_back(*dataset);
    } else if (!MessageDifferencer::Equals(*found->second, *dataset)) {
      change.changed.push_back(name);
    }
  }
  for (const auto& [name, dataset] : had) {
    if (!has.contains(name)) change.removed.push_back(name);
  }
}

void CompareAccess(const v1::ServerConfig& before, const v1::ServerConfig& now,
                   ConfigChange& change) {
  if (before.has_access() != now.has_access()) {
    change.fixed.push_back("access");
  } else if (UnixUsersOf(before.access()) != UnixUsersOf(now.access())) {
    // Each of these users has an acceptor of its own, made when the server begins to listen.
    change.fixed.push_back("access.identities.unix_users");
  } else {
    change.access = !MessageDifferencer::Equals(before.access(), now.access());
  }
}

}  // namespace

ConfigChange ChangeOf(const v1::ServerConfig& before, const v1::ServerConfig& now) {
  ConfigChange change;
  const google::protobuf::Descriptor& fields = *v1::ServerConfig::descriptor();
  for (int i = 0; i < fields.field_count(); ++i) {
    const FieldDescriptor* const field = fields.field(i);
    switch (field->number()) {
      case v1::ServerConfig::kDatasetsFieldNumber:
        CompareDatasets(before, now, change);
        break;
      case v1::ServerConfig::kAccessFieldNumber:
        CompareAccess(before, now, change);
        break;
      default:
        if (MessageDifferencer differencer;
            !differencer.CompareWithFields(before, now, {field}, {field})) {
          change.fixed.push_back(std::string(field->name()));
        }
    }
  }
  return change;
}

}  // namespace systole
