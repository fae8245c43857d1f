#include "core/storage/memory/memory_store.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"
#include "core/status/status_macros.h"
#include "core/storage/memory_source.h"
#include "core/text/foreign_text.h"

namespace systole {
namespace {

absl::Status CheckName(absl::string_view name) {
  absl::string_view parts = name;
  if (absl::ConsumePrefix(&parts, "mem://") && !parts.empty() && !absl::StartsWith(parts, "/") &&
      !absl::EndsWith(parts, "/") && !absl::StrContains(parts, "//")) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("\"", ForeignText(name),
                   "\" names no object in memory; want mem://NAME, or mem://PART/PART/.."));
}

}  // namespace

struct MemoryStore::Object {
  Object(std::string bytes, std::string name, uint64_t put)
      : source(std::move(bytes), std::move(name)), put(put) {}

  const MemorySource source;
  const uint64_t put;  // The number of this put into the store, counted from 1.

  StoredState State() const {
    const uint64_t bytes = *source.Size();
    return {.size_bytes = bytes, .identity = absl::StrCat(bytes, " put ", put)};
  }
};

class MemoryStore::Source final : public ByteSource {
 public:
  Source(const MemoryStore& store, std::shared_ptr<const Object> object)
      : store_(store), object_(std::move(object)) {}

  absl::StatusOr<size_t> ReadAt(uint64_t offset, absl::Span<char> out) const override {
    return object_->source.ReadAt(offset, out);
  }
  absl::StatusOr<uint64_t> Size() const override { return object_->source.Size(); }
  bool is_local() const override { return true; }
  std::string identity() const override { return object_->State().identity; }
  absl::Status CheckUnchanged() const override {
    const absl::StatusOr<std::shared_ptr<const Object>> now = store_.Find(std::string(name()));
    if (!now.ok()) return ChangedSinceOpened(name(), "was removed");
    if (*now != object_) return ChangedSinceOpened(name(), "was replaced");
    return absl::OkStatus();
  }
  absl::string_view name() const override { return object_->source.name(); }

 private:
  const MemoryStore& store_;
  const std::shared_ptr<const Object> object_;
};

class MemoryStore::Sink final : public ByteSink {
 public:
  Sink(const MemoryStore& store, std::string name) : store_(store), name_(std::move(name)) {}

  absl::Status Append(absl::string_view bytes) override { return gathered_.Append(bytes); }
  absl::Status Close() override {
    SYSTOLE_RETURN_IF_ERROR(gathered_.Close());
    store_.Replace(name_, std::move(bytes_));
    return absl::OkStatus();
  }
  absl::string_view name() const override { return name_; }

 private:
  const MemoryStore& store_;
  const std::string name_;
  std::string bytes_;
  StringSink gathered_{&bytes_};
};

MemoryStore& MemoryStore::OfProcess() {
  static MemoryStore* const store = new MemoryStore();  // Not deleted: sources may outlive main().
  return *store;
}

void MemoryStore::Replace(const std::string& name, std::string bytes) const {
  MutexLock lock(mu_);
  objects_[name] = std::make_shared<const Object>(std::move(bytes), name, ++puts_);
}

absl::Status MemoryStore::Put(const std::string& name, std::string bytes) {
  SYSTOLE_RETURN_IF_ERROR(CheckName(name));
  Replace(name, std::move(bytes));
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const MemoryStore::Object>> MemoryStore::Find(
    const std::string& name) const {
  MutexLock lock(mu_);
  const auto found = objects_.find(name);
  if (found != objects_.end()) return found->second;
  return absl::NotFoundError(
      absl::StrCat("no object in memory is named \"", ForeignText(name), "\""));
}

ObjectNames MemoryStore::Names() const {
  MutexLock lock(mu_);
  ObjectNames names;
  for (const auto& [name, object] : objects_) names.insert(names.end(), name);
  return names;
}

absl::StatusOr<std::vector<std::string>> MemoryStore::List(const std::string& pattern,
                                                           NameFilter wanted) const {
  return ListObjects(Names(), pattern, wanted);
}

bool MemoryStore::Takes(const std::string& pattern, const std::string& name) const {
  return TakesObject(Names(), pattern, name);
}

absl::StatusOr<std::vector<std::string>> MemoryStore::ListFolder(const std::string& folder) const {
  return ObjectsIn(Names(), folder);
}

absl::StatusOr<std::unique_ptr<ByteSource>> MemoryStore::Open(const std::string& name) const {
  SYSTOLE_ASSIGN_OR_RETURN(std::shared_ptr<const Object> object, Find(name));
  return std::make_unique<Source>(*this, std::move(object));
}

absl::StatusOr<StoredState> MemoryStore::Stat(const std::string& name) const {
  SYSTOLE_ASSIGN_OR_RETURN(const std::shared_ptr<const Object> object, Find(name));
  return object->State();
}

absl::StatusOr<std::unique_ptr<ByteSink>> MemoryStore::Create(const std::string& name) const {
  SYSTOLE_RETURN_IF_ERROR(CheckName(name));
  return std::make_unique<Sink>(*this, name);
}

absl::Status MemoryStore::Remove(const std::string& name) const {
  SYSTOLE_RETURN_IF_ERROR(Find(name).status());
  MutexLock lock(mu_);
  objects_.erase(name);
  return absl::OkStatus();
}

}  // namespace systole
