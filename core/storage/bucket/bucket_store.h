// Objects in buckets: s3://bucket/key, gs://bucket/key.
#ifndef SYSTOLE_CORE_STORAGE_BUCKET_BUCKET_STORE_H_
#define SYSTOLE_CORE_STORAGE_BUCKET_BUCKET_STORE_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/concurrency/mutex.h"
#include "core/storage/bucket/bucket_dialect.h"
#include "core/storage/bucket/bucket_list.h"
#include "core/storage/bucket/bucket_name.h"
#include "core/storage/bucket/bucket_sink.h"
#include "core/storage/byte_sink.h"
#include "core/storage/byte_source.h"
#include "core/storage/object_names.h"
#include "core/storage/store.h"
#include "core/storage/web/web_source.h"

namespace systole {

// The dialect and the options of a store of buckets.
struct BucketService {
  std::unique_ptr<BucketDialect> dialect;
  WebStoreOptions web = {};
  BucketListOptions list = {};
  BucketSinkOptions sink = {};
};

// Thread-safe. Until a name is used for the first time, the store reads no environment variable,
// opens no connection and starts no thread. Besides Store's errors, functions return those of
// HttpClient::Fetch() and of WebDialect.
class BucketStore final : public Store {
 public:
  // The stores of this process, set up from its environment at the first use. Their threads end
  // when the process exits, and requests are then Cancelled.
  static const BucketStore& S3OfProcess();
  static const BucketStore& GcsOfProcess();

  // `make` is called at the first use. If it fails, the next use calls it again.
  explicit BucketStore(std::function<absl::StatusOr<BucketService>()> make)
      : make_(std::move(make)) {}

  // Sends requests. NotFound also if there is no such bucket. If the pattern has no wildcards, and
  // the server forbids reading an object of this name, List() returns the name. Open() then finds
  // out whether the object exists.
  absl::StatusOr<std::vector<std::string>> List(const std::string& pattern,
                                                NameFilter wanted) const override;
  // For a folder, and for a glob whose folder has no wildcards, lists the whole folder. So a single
  // list has the files of the pattern and the files beside them. If the list of the whole folder is
  // forbidden or too long, a glob is listed as in List().
  absl::StatusOr<PatternList> ListStates(const std::string& pattern,
                                         NameFilter wanted) const override;
  // Sends no request. Uses only what List() and ListStates() found out about the pattern.
  bool Takes(const std::string& pattern, const std::string& name) const override
      ABSL_LOCKS_EXCLUDED(mu_);
  absl::StatusOr<std::vector<std::string>> ListFolder(const std::string& folder) const override;
  absl::StatusOr<std::unique_ptr<ByteSource>> Open(const std::string& name) const override;
  absl::StatusOr<StoredState> Stat(const std::string& name) const override;
  // Sends no request if reads can be tied to the state. Otherwise opens the object as Open() does.
  absl::StatusOr<std::unique_ptr<ByteSource>> OpenInState(const std::string& name,
                                                          const StoredState& state) const override;
  // Sends no request. The sink finds out whether the object may be written.
  absl::StatusOr<std::unique_ptr<ByteSink>> Create(const std::string& name) const override;
  // Asks the server whether there is such an object, and then removes it.
  absl::Status Remove(const std::string& name) const override;

 private:
  // Made at the first use.
  struct Parts {
    BucketService service;
    std::unique_ptr<WebConnection> connection;  // Uses the service's dialect.
  };

  void End() const ABSL_LOCKS_EXCLUDED(mu_);
  absl::StatusOr<Parts*> Use() const ABSL_LOCKS_EXCLUDED(mu_);
  absl::StatusOr<SeenObject> Look(const std::string& name) const;
  absl::StatusOr<BucketContents> Contents(const BucketListing& listing) const;
  absl::StatusOr<ObjectNames> Names(const BucketListing& listing) const;
  absl::StatusOr<std::vector<std::string>> ListName(const BucketName& name,
                                                    NameFilter wanted) const;
  absl::StatusOr<std::vector<std::string>> ListFolderOf(const BucketName& name,
                                                        NameFilter wanted) const;
  // The files that the glob matches. If `with_states` is true, with the states that the list shows.
  absl::StatusOr<std::vector<ListedFile>> ListGlob(const BucketName& pattern, NameFilter wanted,
                                                   bool with_states) const;
  void RememberName(const std::string& name) const ABSL_LOCKS_EXCLUDED(mu_);

  const std::function<absl::StatusOr<BucketService>()> make_;
  mutable Mutex mu_;
  mutable std::unique_ptr<Parts> parts_ ABSL_GUARDED_BY(mu_);
  // The names of objects and folders that look like globs, and that List() or ListStates() got as
  // patterns.
  mutable ObjectNames named_literally_ ABSL_GUARDED_BY(mu_);
};

}  // namespace systole

#endif  // SYSTOLE_CORE_STORAGE_BUCKET_BUCKET_STORE_H_
