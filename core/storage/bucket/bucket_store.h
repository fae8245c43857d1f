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

// The parts that a store of buckets needs.
struct BucketService {
  std::unique_ptr<BucketDialect> dialect;
  WebStoreOptions web = {};
  BucketListOptions list = {};
  BucketSinkOptions sink = {};
};

// Thread-safe. Before the first use of a name, the store reads no variable, opens no connection and
// starts no thread. Errors are also those of HttpClient::Fetch() and of WebDialect.
class BucketStore final : public Store {
 public:
  // The stores of this process, set up from its environment at the first use. Their threads end
  // when the process exits, and requests are then Cancelled.
  static const BucketStore& S3OfProcess();
  static const BucketStore& GcsOfProcess();

  // `make` is called at the first use, and again after it has failed.
  explicit BucketStore(std::function<absl::StatusOr<BucketService>()> make)
      : make_(std::move(make)) {}

  // Sends at least one request for each pattern. Besides Store's errors: NotFound if there is no
  // such bucket. If the server forbids reading a pattern without wildcards, the pattern is taken as
  // the name of an object. Open() then finds out whether this object exists.
  absl::StatusOr<std::vector<std::string>> List(const std::string& pattern,
                                                NameFilter wanted) const override;
  // For a folder, and for a glob whose folder has no wildcards, lists the whole folder. So a single
  // list has the files of the pattern and the files beside them. For a glob, does what List() does
  // if the list of the whole folder is forbidden or too long.
  absl::StatusOr<PatternList> ListStates(const std::string& pattern,
                                         NameFilter wanted) const override;
  // Sends no request. Uses what List() found out about the pattern.
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
  // The files that the glob matches. Each has its state if `with_states` is true and the list shows
  // the state.
  absl::StatusOr<std::vector<ListedFile>> ListGlob(const BucketName& pattern, NameFilter wanted,
                                                   bool with_states) const;
  void RememberName(const std::string& name) const ABSL_LOCKS_EXCLUDED(mu_);

  const std::function<absl::StatusOr<BucketService>()> make_;
  mutable Mutex mu_;
  mutable std::unique_ptr<Parts> parts_ ABSL_GUARDED_BY(mu_);
  // Objects and folders whose names look like globs, and that were listed by these names.
  mutable ObjectNames named_literally_ ABSL_GUARDED_BY(mu_);
};

}  // namespace systole

#endif  // SYSTOLE_CORE_STORAGE_BUCKET_BUCKET_STORE_H_
