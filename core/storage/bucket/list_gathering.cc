#include "core/storage/bucket/list_gathering.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/status/status_macros.h"
#include "core/storage/web/web_answer.h"
#include "core/text/foreign_text.h"

namespace systole {

void AppendContents(BucketContents& all, BucketContents more) {
  // Moving a node of a set does not move its string. So the keys of `states`, which are views of
  // these strings, stay valid.
  while (!more.names.empty()) {
    all.names.insert(all.names.end(), more.names.extract(more.names.begin()));
  }
  all.states.reserve(all.states.size() + more.states.size());
  for (auto& [name, state] : more.states) all.states.emplace(name, std::move(state));
}

absl::Status ListRoom::Take(const NewNames& names) {
  taken_.count += names.count;
  taken_.bytes += names.bytes;
  if (taken_.count <= max_names_ && taken_.bytes <= max_name_bytes_) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "more than ", max_names_, " names or ", max_name_bytes_, " bytes of names begin with \"",
      ForeignText(prefix_.Text()),
      "\"; put shards into folders of their own, and write more of the name before the first "
      "wildcard"));
}

absl::StatusOr<NewNames> ListGathering::Add(const ListPage& page) {
  NewNames added;
  for (size_t i = 0; i < page.keys.size(); ++i) {
    SYSTOLE_RETURN_IF_ERROR(AddKey(page.keys[i], &page.objects[i], added));
  }
  for (const std::string& key : page.folders) SYSTOLE_RETURN_IF_ERROR(AddKey(key, nullptr, added));
  return added;
}

absl::Status ListGathering::AddKey(const std::string& key, const ListedObject* object,
                                   NewNames& added) {
  if (!absl::StartsWith(key, listing_->prefix.key)) {
    return absl::DataLossError("the server lists keys that do not begin with the requested prefix");
  }
  const size_t before = contents_.names.size();
  // Most servers list keys in order. If the key belongs at the end, this insertion needs no search.
  const auto name = contents_.names.insert(contents_.names.end(), root_ + key);
  if (contents_.names.size() == before) return absl::OkStatus();
  if (listing_->with_states && object != nullptr) AddState(*name, *object);
  ++added.count;
  added.bytes += name->size();
  return absl::OkStatus();
}

void ListGathering::AddState(const std::string& name, const ListedObject& object) {
  const uint64_t size_bytes = object.size_bytes.value_or(kMaxWebObjectBytes + 1);
  if (size_bytes > kMaxWebObjectBytes) return;
  // As in WebConnection::Look(): if objects have generations, only a generation identifies a state.
  std::string identity = has_generations_
                             ? ObjectOfList(size_bytes, "", object.generation).Identity()
                             : ObjectOfList(size_bytes, object.etag, "").Identity();
  if (identity.empty()) return;
  contents_.states.emplace(name,
                           StoredState{.size_bytes = size_bytes, .identity = std::move(identity)});
}

}  // namespace systole
