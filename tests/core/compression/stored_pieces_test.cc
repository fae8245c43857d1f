// DecompressedSource as StoredPieces.
#include "core/storage/stored_pieces.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/compression/decompressed_source.h"
#include "core/storage/stores/stored_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/compression/compressed_cases.h"
#include "tests/core/http/stub_objects.h"
#include "tests/core/storage/gated_source.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Opens the compressed file `compressed` as if it were on another machine.
Opened OpenFar(const std::string& compressed, const DecompressedOptions& options) {
  auto far = std::make_unique<GatedSource>(compressed, "far://a", std::make_shared<Gate>(),
                                           /*is_local=*/false, /*identity=*/"v1");
  Opened opened;
  opened.source = DecompressedSource::Open(std::move(far), options, &opened.note);
  return opened;
}

// Reads the pieces of [offset, offset + size), and returns the bytes that Make() makes of them.
std::string Made(const StoredPieces& pieces, uint64_t offset, size_t size) {
  const PieceRanges wanted = pieces.PiecesOf({.begin = offset, .end = offset + size});
  std::map<uint64_t, std::string> fetched;
  for (const PieceRange& range : wanted) {
    for (int64_t piece = range.begin; piece < range.end; ++piece) {
      const ByteStretch place = pieces.PlaceOf(piece);
      EXPECT_LT(place.begin, place.end);
      fetched[place.begin] = Read(pieces.stored(), place.begin, place.end - place.begin);
    }
    if (range.begin == range.end) continue;
    const ByteStretch back = pieces.BytesOf(range);
    EXPECT_LT(back.begin, offset + size);
    EXPECT_GE(back.end, offset + size);
  }
  std::string out(size, '?');
  EXPECT_THAT(pieces.Make(offset, absl::MakeSpan(out),
                          [&](const ByteStretch& place) -> absl::StatusOr<absl::string_view> {
                            const std::string& bytes = fetched.at(place.begin);
                            EXPECT_EQ(bytes.size(), place.end - place.begin);
                            return bytes;
                          }),
              IsOk());
  return out;
}

TEST(StoredPiecesTest, BytesOfARemoteFileCanBeMadeFromItsStoredPieces) {
  const std::string bytes = MixedBytes(kBytes, 1);
  StubObjects objects;
  int cases = 0;
  for (const Case& one : Cases(bytes)) {
    const std::string target = absl::StrCat("/", cases++, "/a.restart");
    const TempFolder folder;
    DecompressedOptions options = {.compression = one.compression,
                                   .restart_path = folder / "a.restart"};
    ASSERT_THAT(OpenFar(one.compressed, options).source, IsOk());
    const std::string kept = ReadWholeFile(options.restart_path);
    // The windows of the restart points lie in a file of this machine, in memory, or on a server.
    for (const std::string& restart :
         {options.restart_path, std::string(), objects.Put(target, kept)}) {
      SCOPED_TRACE(absl::StrCat(one.name, " ", restart));
      options.restart_path = restart;
      // A chunk may take half of the cache, and a file of one frame is a chunk of kBytes bytes.
      options.chunks = std::make_shared<ChunkCache>(2 * kBytes + kBytes / 8);
      const Opened opened = OpenFar(one.compressed, options);
      ASSERT_THAT(opened.source, IsOk());
      EXPECT_EQ(opened.note, "");
      const StoredPieces* const pieces = (*opened.source)->pieces();
      ASSERT_NE(pieces, nullptr);
      const bool has_far_windows =
          absl::StartsWith(restart, "http") && one.compression != Compression::kZstd;
      EXPECT_EQ(pieces->stored().Size().value(),
                one.compressed.size() +
                    (has_far_windows ? kept.size() / kWindowBytes * kWindowBytes : 0));
      EXPECT_EQ(pieces->stored().name(), "far://a");
      EXPECT_EQ(pieces->stored().identity() == "v1", !has_far_windows);
      EXPECT_TRUE(Made(*pieces, 0, bytes.size()) == bytes);
      for (size_t at = 0; at + 5'000 <= bytes.size(); at += 97'123) {
        ASSERT_TRUE(Made(*pieces, at, 5'000) == bytes.substr(at, 5'000)) << at;
      }
    }
  }
}

TEST(StoredPiecesTest, DamageGivesTheSameBytesThroughPiecesAsThroughReads) {
  const std::string bytes = MixedBytes(kBytes, 3);
  for (const Case& one : Cases(bytes)) {
    SCOPED_TRACE(one.name);
    const TempFolder folder;
    const DecompressedOptions options = {.compression = one.compression,
                                         .restart_path = folder / "a.restart"};
    ASSERT_THAT(OpenFar(one.compressed, options).source, IsOk());
    std::string damaged = one.compressed;
    for (int i = 0; i < 40; ++i) damaged[damaged.size() / 2 + i] ^= 0x55;
    const Opened read = OpenFar(damaged, options);
    const Opened made = OpenFar(damaged, options);
    ASSERT_THAT(read.source, IsOk());
    ASSERT_THAT(made.source, IsOk());
    const std::string want = Read(**read.source, 0, bytes.size());
    EXPECT_TRUE(want != bytes);
    EXPECT_TRUE(Made(*(*made.source)->pieces(), 0, bytes.size()) == want);
  }
}

TEST(StoredPiecesTest, ErrorsOfPiecesNameTheRestartFileButNoServerAndNoSecret) {
  const std::string compressed = Deflate(MixedBytes(kBytes, 7), kGzipStream);
  const TempFolder folder;
  const std::string path = folder / "a.restart";
  ASSERT_THAT(OpenFar(compressed, {.restart_path = path}).source, IsOk());
  StubObjects objects;
  const std::string url = objects.Put("/a.restart", ReadWholeFile(path)) + "?key=secret";
  const Opened opened = OpenFar(compressed, {.restart_path = url});
  ASSERT_THAT(opened.source, IsOk());
  const StoredPieces& pieces = *(*opened.source)->pieces();
  const uint64_t size = compressed.size();
  std::string out(kBytes, '\0');
  const auto make = [&](absl::StatusOr<std::string> stored, std::string window) {
    return pieces.Make(kBytes / 2, absl::MakeSpan(out).subspan(0, 10),
                       [&](const ByteStretch& place) -> absl::StatusOr<absl::string_view> {
                         if (place.begin >= size) return window;
                         if (!stored.ok()) return stored.status();
                         return *stored;
                       });
  };
  EXPECT_THAT(make(absl::PermissionDeniedError("no"), std::string(kWindowBytes, 'x')),
              StatusIs(absl::StatusCode::kPermissionDenied, "no"));
  EXPECT_THAT(make("x", std::string(kWindowBytes, 'x')),
              StatusIs(absl::StatusCode::kUnavailable,
                       AllOf(HasSubstr("shard \"a\""), HasSubstr("remove \"a.restart\""),
                             Not(HasSubstr("secret")))));
  objects.Remove("/a.restart");
  EXPECT_THAT(pieces.stored().ReadAt(size + 5, absl::MakeSpan(out).subspan(0, 10)).status(),
              StatusIs(absl::StatusCode::kUnavailable,
                       AllOf(HasSubstr("shard \"a\""), HasSubstr("\"a.restart\""),
                             Not(HasSubstr("secret")), Not(HasSubstr("127.0.0.1")))));
}

TEST(StoredPiecesTest, LocalFilesAndFilesWithAHugePieceOfferNoPieces) {
  const TempFolder folder;
  Opened near;
  near.source = DecompressedSource::Open(
      *OpenStored(folder.Write("a", Deflate("abc", kGzipStream))), {}, &near.note);
  ASSERT_THAT(near.source, IsOk());
  EXPECT_EQ((*near.source)->pieces(), nullptr);
  // The many zeros between the members belong to a chunk with few decompressed bytes.
  const Opened zeros = OpenFar(
      Deflate("abc", kGzipStream) + std::string(3 << 20, '\0') + Deflate("def", kGzipStream),
      {.chunks = std::make_shared<ChunkCache>(2 << 20)});
  ASSERT_THAT(zeros.source, IsOk());
  EXPECT_EQ((*zeros.source)->pieces(), nullptr);
  EXPECT_EQ(Read(**zeros.source, 0, 10), "abcdef");
}

}  // namespace
}  // namespace systole
