// Feeds of several kinds over the rows of one table of arrays: all rows, rows that meet a
// condition, and mixtures whose weights change. A feed of each kind can be cut into steps of any
// batch that the tests use. The examples of a feed depend neither on the batch nor on the program
// that makes the feed.
//
// Thread-compatible.
#ifndef SYSTOLE_TESTS_SYSTEM_KINDS_OF_FEED_H_
#define SYSTOLE_TESTS_SYSTEM_KINDS_OF_FEED_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client/step/feed.h"
#include "core/dataset/dataset.h"
#include "core/record/arrays/array_table.h"
#include "systole/v1/feed.pb.h"

namespace systole {

// How a feed is cut into steps.
struct FeedCut {
  int global_batch = 0;  // Divides kFeedUnit (below).
  int num_cores = 1;     // Divides the batch.
};
// In a mixture, the weights change at examples whose number is a multiple of kFeedUnit. The number
// counts from the beginning of the feed or, in a feed that pads, of the epoch. Only one change is
// elsewhere: it comes 7 examples after such a multiple, in the middle of a step.
inline constexpr int kFeedUnit = 48;

// Row i has the label i % 8 and an image of `image_width` * 12 bytes. Each of these bytes depends
// on i.
class RowsOfArrays {
 public:
  RowsOfArrays(int rows, int image_width);

  int rows() const { return rows_; }
  int image_width() const { return image_width_; }
  // A dataset of `members` members that lies in memory. Each member has all rows.
  std::shared_ptr<const Dataset> InMemory(int members) const;
  // The bytes of a shard with these rows.
  std::string Shard() const;

 private:
  const int rows_;
  const int image_width_;
  std::vector<uint8_t> images_;
  std::vector<int64_t> labels_;
  std::shared_ptr<const ArrayTable> table_;
};

struct KindOfFeed {
  std::string name;  // Only letters, because names of tests contain it.
  // The spec's text without global_batch, num_cores, weights and outputs. The spec names the
  // dataset "rows".
  std::string members;
  int num_members = 1;
  // Records that the members have together.
  int64_t num_records = 0;
  bool pads = false;  // Whether the tail is padded (tail: PAD).
  // Pairs (example, weights): the weights change at this example, counted since the beginning of
  // the feed. If a step begins at the example, the spec names the step. Otherwise the spec names
  // the example.
  std::vector<std::pair<int64_t, std::string>> changes = {};

  // The text of the spec, with outputs of the rows' features.
  std::string SpecText(const RowsOfArrays& rows, const FeedCut& cut) const;
  v1::FeedSpec Spec(const RowsOfArrays& rows, const FeedCut& cut) const;
};

// Feeds of these kinds:
//   * all rows, shuffled
//   * rows that meet a condition, shuffled in windows
//   * a mixture whose weights change; one of the changes comes in the middle of a step, whatever
//     the cut
//   * a mixture whose weights change; two of its members have conditions, and one of these has a
//     single record
// With 384 rows all steps are full, whatever the cut. REQUIRES: the number of rows is a multiple of
// 32, and at least 96.
std::vector<KindOfFeed> KindsOfFeed(int rows);

// The lines that `systole feed --digest=example` would print for the next `steps` steps of `feed`,
// or for all steps that are left if these are fewer. There are no lines for empty places. An error
// fails the test.
std::vector<std::string> ExampleLines(Feed& feed, int64_t steps);

// The digests at the ends of lines that ExampleLines() returned.
std::vector<std::string> DigestsIn(const std::vector<std::string>& lines);

}  // namespace systole

#endif  // SYSTOLE_TESTS_SYSTEM_KINDS_OF_FEED_H_
