// A feed that the trainer's own process makes, with the server's engine but without a server.
// Bytes, digests and tokens are the same as those of a FeedClient. So a token from a LocalFeed
// resumes a FeedClient, and a token from a FeedClient resumes a LocalFeed. Feeds may share an
// engine. Sharing does not change their steps.
//
// No thread runs before the first call of Next() or WaitForNext(). A feed changes nothing that
// belongs to the process: no malloc setting, no limit, no signal.
//
// Thread-compatible, except Cancel(), stats() and Metrics(), which any thread may call at any time.
#ifndef SYSTOLE_CLIENT_LOCAL_LOCAL_FEED_H_
#define SYSTOLE_CLIENT_LOCAL_LOCAL_FEED_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "client/local/local_engine.h"
#include "client/step/feed.h"
#include "client/step/feed_range.h"
#include "core/cache/value_cache.h"
#include "core/dataset/dataset.h"
#include "core/dataset/record_lists.h"
#include "core/log/event_log.h"
#include "core/order/resume_token.h"
#include "systole/v1/feed.pb.h"

namespace systole {

struct LocalFeedOptions {
  // The engine that makes the steps. Feeds may share an engine. Null: the feed makes its own
  // engine, with `threads`.
  std::shared_ptr<LocalEngine> engine = nullptr;
  // Threads of the feed's own engine. Not used if `engine` is set.
  int threads = 1;
  // Memory for steps that are made ahead, in bytes. If two steps need more than this, the feed
  // still takes the memory of two steps, provided that the engine's budget has it. Steps that
  // Next() has returned do not count.
  int64_t prefetch_bytes = int64_t{256} << 20;

  // The lists of records that meet a `where`. A feed that is opened while another feed with the
  // same `lists`, dataset and `where` exists uses that feed's list and reads no columns. Null: the
  // feed has lists of its own.
  std::shared_ptr<RecordLists> lists = nullptr;
  // Where the feed keeps values of the outputs that the spec marks with `cache`. Feeds may share a
  // cache. Null: the feed keeps no values.
  std::shared_ptr<ValueCache> cache = nullptr;

  WantedSteps wanted;
  // The cores wanted, core_begin .. core_end - 1. If both are 0, all cores.
  int core_begin = 0;
  int core_end = 0;
  // Accept a resume token of another content version. Steps may then differ in a few bits from
  // those of the run in which the token was taken.
  bool allow_mixed_content = false;
  // Next() logs masked examples here, and Resume() logs skipped examples. Null: they are not
  // logged.
  std::shared_ptr<EventLog> log = nullptr;
};

class LocalFeed final : public Feed {
 public:
  // Steps have placement kTensorMajor. If the engine cannot make a whole step as one slice
  // (README.md says when), each slice is copied once into its step. If the spec has a `where`,
  // Create() first makes the columns that shards lack. For this it reads all records of these
  // shards, and takes the memory that DatasetColumns::Note() states.
  //   InvalidArgument    an option is out of range, or the spec is wrong: the message names the
  //                      field. Or a `where` names a feature that no record has: the message names
  //                      the feature.
  //   NotFound           the spec names another dataset.
  //   ResourceExhausted  a step is larger than the budget of options.engine.
  static absl::StatusOr<std::unique_ptr<LocalFeed>> Create(const v1::FeedSpec& spec,
                                                           std::shared_ptr<const Dataset> dataset,
                                                           const LocalFeedOptions& options);

  // Like Create(), but begins where `token` was taken; `options.wanted.first_step` is not used.
  // The spec's global_batch may differ from the one with which the token was taken. If no step of
  // the new size begins where the token was taken, the feed goes on with the next step, and
  // `options.log` says how many examples are skipped.
  //   FailedPrecondition  the dataset, the order or the content version is not that of the token.
  static absl::StatusOr<std::unique_ptr<LocalFeed>> Resume(const v1::FeedSpec& spec,
                                                           std::shared_ptr<const Dataset> dataset,
                                                           const ResumeToken& token,
                                                           const LocalFeedOptions& options);

  // Leaves the engine's threads and memory to other feeds. Waits until no thread uses options.cache
  // any more, but at most 10 seconds, because a read may hang. The last feed of an engine stops the
  // threads and waits for all of them. Steps may outlive the feed.
  ~LocalFeed() override;

  // Feed. The errors of Next():
  //   DataLoss            a record is damaged and the spec says FAIL; names shard and record.
  //   FailedPrecondition  a shard was changed.
  //   Unavailable         a shard cannot be read, or there is no memory for a step.
  //   Cancelled           after Cancel().
  absl::StatusOr<std::optional<Step>> Next() override;
  bool WaitForNext(absl::Duration timeout) override;
  void Cancel() override;
  ResumeToken TokenAt(int64_t next_step) const override;
  int64_t next_step() const override;
  int64_t end_step() const override;
  bool has_end() const override;
  int64_t steps_per_epoch() const override;
  int64_t num_records() const override;
  const Order& order() const override;
  const StepShape& shape() const override;
  std::string Explain() const override;
  // The numbers on streams, the wire and damaged messages stay 0, because nothing is sent. A step
  // counts as received when Next() returns it.
  FeedClientStats stats() const override;

 private:
  class Impl;
  explicit LocalFeed(std::unique_ptr<Impl> impl);
  // `token` may be null.
  static absl::StatusOr<std::unique_ptr<LocalFeed>> Make(const v1::FeedSpec& spec,
                                                         std::shared_ptr<const Dataset> dataset,
                                                         const ResumeToken* token,
                                                         LocalFeedOptions options);

  std::unique_ptr<Impl> impl_;
};

}  // namespace systole

#endif  // SYSTOLE_CLIENT_LOCAL_LOCAL_FEED_H_
