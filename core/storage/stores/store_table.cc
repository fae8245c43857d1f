#include "core/storage/stores/store_table.h"

#include <algorithm>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "core/storage/bucket/bucket_store.h"
#include "core/storage/local/local_store.h"
#include "core/storage/memory/memory_store.h"
#include "core/storage/web/web_store.h"
#include "core/text/foreign_text.h"
#include "core/text/web_address.h"

namespace systole {
namespace {

constexpr StoreRow kStores[] = {
    {"", "paths of this machine",
     []() -> const Store& {
       static const LocalStore* const store = new LocalStore();
       return *store;
     }},
    {"mem", "mem://", []() -> const Store& { return MemoryStore::OfProcess(); }},
    {"https", "https://", []() -> const Store& { return WebStore::OfProcess(); }},
    {"http", "http://", []() -> const Store& { return WebStore::OfProcess(); }},
    {"s3", "s3://", []() -> const Store& { return BucketStore::S3OfProcess(); }},
    {"gs", "gs://", []() -> const Store& { return BucketStore::GcsOfProcess(); }},
};

}  // namespace

absl::Span<const StoreRow> StoreTable() { return kStores; }

absl::string_view SchemeOf(absl::string_view name) {
  const size_t end = name.find("://");
  if (end == absl::string_view::npos) return "";
  const absl::string_view scheme = name.substr(0, end);
  const bool may_be = std::all_of(scheme.begin(), scheme.end(), [](char c) {
    return absl::ascii_isalnum(c) || c == '+' || c == '.' || c == '-';
  });
  return may_be ? scheme : "";
}

absl::StatusOr<const Store*> StoreOf(absl::string_view name) {
  const absl::string_view scheme = SchemeOf(name);
  std::string known;
  for (const StoreRow& row : kStores) {
    if (row.scheme == scheme) return &row.store();
    absl::StrAppend(&known, known.empty() ? "" : ", ", row.called);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "\"", ForeignText(ShownAddress(name)), "\" is a URL, and only these are read: ", known,
      "; mount the store as a folder or copy the shards here, and give their path"));
}

}  // namespace systole
