// Writes and reads sets of records for systole.write and systole.read.
#ifndef SYSTOLE_CLIENT_PYTHON_EXTENSION_RECORD_FILES_H_
#define SYSTOLE_CLIENT_PYTHON_EXTENSION_RECORD_FILES_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/shard_set/shard_set_writer.h"
#include "core/record/shard_formats.h"
#include "core/record/source/record_source.h"
#include "nanobind/nanobind.h"

namespace systole::python {

// Writes examples into a set of shards. Single-thread: call with the GIL held.
class ExampleWriter {
 public:
  // Raises the errors of ShardSetWriter::Create().
  ExampleWriter(const std::string& prefix, int64_t shards, const std::string& compression,
                int threads);
  // In a child of fork() the writer is left alone, because its threads are in the parent.
  ~ExampleWriter();
  ExampleWriter(const ExampleWriter&) = delete;
  ExampleWriter& operator=(const ExampleWriter&) = delete;

  // Adds an example. Each of the `features` is a tuple of a name (as bytes), a kind ("bytes",
  // "int64" or "float") and the values. The values are a list of bytes, or a buffer of int64 or
  // float32. If the kind is "bytes", a buffer is one value. Waits if the writer's threads are
  // behind.
  void Add(const nanobind::list& features);
  // Calls ShardSetWriter::Finish(). Returns the shards, each as (path, records, bytes), and the
  // manifest's path.
  nanobind::tuple Finish();
  void Abandon();

 private:
  ShardSetWriter& Writer();

  const pid_t process_;
  std::unique_ptr<ShardSetWriter> writer_;  // Null after Finish() and Abandon().
};

// Reads the records of shards, one shard after the other. Single-thread: call with the GIL held.
// Make no call while another call waits without the GIL.
class RecordWalk {
 public:
  // Lists the shards that the patterns match, but opens no shard. Raises the errors of ListShards()
  // and of GroupShards().
  RecordWalk(std::vector<std::string> patterns, const std::string& compression,
             std::string index_dir);

  // Returns the next records, or nullopt at the end. A record is a list of tuples, one for each
  // feature: name, kind and values. The values are a list of bytes, or a bytearray of int64 or
  // float32 values. If the record has no list of values for a feature, the kind is "missing" and
  // the values are None. If a record has two features of the same name, the later one counts.
  // Raises the errors of opening and reading a shard.
  std::optional<nanobind::list> NextBlock();

 private:
  // Fills payloads_ with the next records. At the end payloads_ is empty.
  absl::Status ReadBlock();
  // The numbers of the shard's next records, at most as many as fit into a block.
  std::vector<int64_t> NextRecords() const;
  nanobind::list Features(const std::string& payload, int64_t record) const;

  std::vector<NamedShard> shards_;
  ShardOptions options_;
  size_t opened_ = 0;                    // How many of shards_ were opened.
  std::unique_ptr<RecordSource> shard_;  // The shard that was opened last.
  int64_t next_record_ = 0;              // The number of the next record in shard_.
  int64_t first_of_block_ = 0;
  std::vector<std::string> payloads_;
  // The error of a read. It is raised after the records that were read before it were returned.
  absl::Status failed_;
};

void DeclareRecordFiles(nanobind::module_& module);

}  // namespace systole::python

#endif  // SYSTOLE_CLIENT_PYTHON_EXTENSION_RECORD_FILES_H_
