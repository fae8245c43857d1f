#include "bench/corpora.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <system_error>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "bench/photographs.h"
#include "bench/rounds.h"
#include "core/checksum/xxh3.h"
#include "core/concurrency/processors.h"
#include "core/concurrency/worker_pool.h"
#include "core/example/example_builder.h"
#include "core/random/counter_rng.h"
#include "core/record/tfrecord/index_file.h"
#include "core/record/tfrecord/record_writer.h"
#include "core/status/status_macros.h"
#include "core/storage/local/file_source.h"

namespace systole::bench {
namespace {

namespace fs = std::filesystem;

struct Corpus {
  absl::string_view name;
  int64_t records = 0;
  int64_t shards = 8;
  // Makes the record with the given number.
  std::function<std::string(int64_t)> make_record;
};

std::string PhotographRecord(int64_t number) {
  const int64_t label = number % 1000;
  return ExampleBuilder()
      .AddBytes("image", MakePhotograph(static_cast<uint64_t>(number)))
      .AddBytes("class", absl::StrFormat("class-%03d", label))
      .AddInt64s("label", {label})
      .AddInt64s("size", {kPhotographHeight, kPhotographWidth, 3})
      .Serialize();
}

std::string SmallRecord(int64_t number) {
  CounterRng rng(/*seed=*/1, /*epoch=*/0, number, /*purpose=*/0);
  std::string image(kSmallRecordBytes, '\0');
  for (char& pixel : image) pixel = static_cast<char>(rng.NextU32());
  return ExampleBuilder().AddBytes("image", image).AddInt64s("label", {number % 10}).Serialize();
}

std::string BlobRecord(int64_t number) {
  CounterRng rng(/*seed=*/5, /*epoch=*/0, number, /*purpose=*/0);
  std::string blob(kBlobBytes, '\0');
  for (char& byte : blob) byte = static_cast<char>(rng.NextU32());
  return ExampleBuilder().AddBytes("blob", blob).AddInt64s("label", {number % 1000}).Serialize();
}

std::string TinyRecord(int64_t number) {
  return ExampleBuilder()
      .AddBytes("image", std::string(kTinyRecordBytes, static_cast<char>(number)))
      .AddInt64s("label", {number % 1000})
      .Serialize();
}

std::string LabelledImage(absl::string_view image, int64_t number) {
  return ExampleBuilder().AddBytes("image", image).AddInt64s("label", {number % 1000}).Serialize();
}

std::string PngRecord(int64_t number) {
  return LabelledImage(MakePngPhotograph(static_cast<uint64_t>(number), 320, 240), number);
}

std::string LargePhotographRecord(int64_t number) {
  return LabelledImage(MakePhotograph(static_cast<uint64_t>(number), 4000, 3000, /*quality=*/90),
                       number);
}

std::string TinyImageRecord(int64_t number) {
  CounterRng rng(/*seed=*/2, /*epoch=*/0, number, /*purpose=*/0);
  std::string image(size_t{32} * 32 * 3, '\0');
  for (char& pixel : image) pixel = static_cast<char>(rng.NextU32());
  return LabelledImage(image, number);
}

std::string TokenRecord(int64_t number) {
  CounterRng rng(/*seed=*/3, /*epoch=*/0, number, /*purpose=*/0);
  std::vector<int64_t> tokens(static_cast<size_t>(rng.UniformInt(16, 129)));
  for (int64_t& token : tokens) token = rng.UniformInt(0, 50'000);
  return ExampleBuilder()
      .AddInt64s("tokens", tokens)
      .AddInt64s("label", {number % 1000})
      .Serialize();
}

std::string TableRecord(int64_t number) {
  CounterRng rng(/*seed=*/4, /*epoch=*/0, number, /*purpose=*/0);
  std::vector<float> row(20);
  for (float& value : row) value = rng.UniformFloat();
  return ExampleBuilder().AddFloats("row", row).AddInt64s("label", {number % 1000}).Serialize();
}

std::string ShardName(const Corpus& corpus, int64_t shard) {
  return absl::StrFormat("%s-%05d-of-%05d.tfrecord", corpus.name, shard, corpus.shards);
}

// Writes every corpus.shards-th record, from number `shard` on, so that the shards' sizes differ by
// one record at most.
absl::Status WriteShard(const Corpus& corpus, const fs::path& folder, int64_t shard) {
  const std::string path = folder / ShardName(corpus, shard);
  SYSTOLE_ASSIGN_OR_RETURN(RecordWriter writer, RecordWriter::Create(path));
  for (int64_t number = shard; number < corpus.records; number += corpus.shards) {
    SYSTOLE_RETURN_IF_ERROR(writer.Write(corpus.make_record(number)));
  }
  SYSTOLE_RETURN_IF_ERROR(writer.Close());
  SYSTOLE_ASSIGN_OR_RETURN(const std::unique_ptr<FileSource> source, FileSource::Open(path));
  SYSTOLE_ASSIGN_OR_RETURN(const LoadedIndex index, LoadIndex(*source, source->identity(), {}));
  // The note says why the index could not be written.
  return index.note.empty() ? absl::OkStatus() : absl::UnavailableError(index.note);
}

absl::Status FileError(absl::string_view what, const fs::path& path, const std::error_code& error) {
  return absl::UnavailableError(
      absl::StrCat("cannot ", what, " ", path.string(), ": ", error.message()));
}

// Makes `folder` whole or not at all.
absl::Status Make(const Corpus& corpus, const fs::path& folder) {
  const fs::path making = folder.string() + ".making";
  std::error_code error;
  fs::remove_all(making, error);  // A run that was broken off may have left this.
  if (!error) fs::create_directory(making, error);
  if (error) return FileError("make the folder", making, error);
  std::vector<absl::Status> written(static_cast<size_t>(corpus.shards));
  {
    WorkerPool pool(UsableProcessors());
    ParallelFor(pool, corpus.shards,
                [&](int64_t shard) { written[shard] = WriteShard(corpus, making, shard); });
  }
  for (const absl::Status& status : written) SYSTOLE_RETURN_IF_ERROR(status);
  fs::rename(making, folder, error);
  return error ? FileError("rename", making, error) : absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> FindOrMake(const Corpus& corpus) {
  const fs::path root = CorporaFolder();
  std::error_code error;
  fs::create_directories(root, error);
  if (error) return FileError("make the folder", root, error);
  const fs::path folder = root / absl::StrFormat("%s-%d-in-%d-%016x", corpus.name, corpus.records,
                                                 corpus.shards, Xxh3(corpus.make_record(0)));
  const fs::path lock_path = root / "lock";
  const int lock = open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (lock < 0 || flock(lock, LOCK_EX) != 0) {
    return FileError("lock", lock_path, std::error_code(errno, std::generic_category()));
  }
  const absl::Cleanup unlock = [lock] { close(lock); };
  if (!fs::exists(folder, error)) SYSTOLE_RETURN_IF_ERROR(Make(corpus, folder));
  std::vector<std::string> paths;
  for (int64_t shard = 0; shard < corpus.shards; ++shard) {
    paths.push_back(folder / ShardName(corpus, shard));
  }
  return paths;
}

std::vector<std::string> FindOrMakeOrExit(const Corpus& corpus) {
  absl::StatusOr<std::vector<std::string>> paths = FindOrMake(corpus);
  if (!paths.ok()) {
    std::fprintf(stderr,
                 "the corpus '%s' cannot be made: %s\n"
                 "(SYSTOLE_BENCH_CORPORA is the folder that corpora are made in)\n",
                 std::string(corpus.name).c_str(), std::string(paths.status().message()).c_str());
    std::exit(2);
  }
  return *std::move(paths);
}

}  // namespace

std::string CorporaFolder() {
  const char* told = std::getenv("SYSTOLE_BENCH_CORPORA");
  return told == nullptr ? "/tmp/systole-bench-corpora" : told;
}

std::vector<std::string> PhotographShards() {
  return FindOrMakeOrExit({.name = "photographs",
                           .records = std::max<int64_t>(128, ScaledWork(1024)),
                           .make_record = PhotographRecord});
}

std::vector<std::string> SmallRecordShards() {
  return FindOrMakeOrExit(
      {.name = "small-records", .records = ScaledWork(400'000), .make_record = SmallRecord});
}

std::vector<std::string> BlobShards() {
  return FindOrMakeOrExit({.name = "blobs",
                           .records = std::max<int64_t>(128, ScaledWork(5120)),
                           .make_record = BlobRecord});
}

std::vector<std::string> ManyShards() {
  return FindOrMakeOrExit({.name = "many-shards",
                           .records = ScaledWork(1'281'167),
                           .shards = std::max<int64_t>(8, ScaledWork(1024)),
                           .make_record = TinyRecord});
}

std::vector<std::string> PngShards() {
  return FindOrMakeOrExit({.name = "pngs",
                           .records = std::max<int64_t>(128, ScaledWork(1024)),
                           .make_record = PngRecord});
}

std::vector<std::string> LargePhotographShards() {
  return FindOrMakeOrExit({.name = "large-photographs",
                           .records = std::max<int64_t>(8, ScaledWork(32)),
                           .make_record = LargePhotographRecord});
}

std::vector<std::string> TinyImageShards() {
  return FindOrMakeOrExit(
      {.name = "tiny-images", .records = ScaledWork(50'000), .make_record = TinyImageRecord});
}

std::vector<std::string> TokenShards() {
  return FindOrMakeOrExit(
      {.name = "tokens", .records = ScaledWork(200'000), .make_record = TokenRecord});
}

std::vector<std::string> TableShards() {
  return FindOrMakeOrExit(
      {.name = "tables", .records = ScaledWork(400'000), .make_record = TableRecord});
}

std::vector<std::string> ShardsNamed(absl::string_view name) {
  if (name == "photographs") return PhotographShards();
  if (name == "small-records") return SmallRecordShards();
  if (name == "blobs") return BlobShards();
  if (name == "pngs") return PngShards();
  if (name == "large-photographs") return LargePhotographShards();
  if (name == "tiny-images") return TinyImageShards();
  if (name == "tokens") return TokenShards();
  if (name == "tables") return TableShards();
  return {};
}

}  // namespace systole::bench
