// Runs the checks on small trees that break one rule each, because a check that cannot fail proves
// nothing.
#include "tests/layers/layer_check.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/layers/layer_rules.h"
#include "tests/status_matchers.h"

namespace systole::layers {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Eq;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

std::vector<std::string> IncludeViolations(const std::string& path, const std::string& text) {
  return CheckIncludes(SystoleRules(), {{path, text}});
}

std::vector<std::string> WordViolations(const std::string& path, const std::string& text) {
  return CheckReservedWords(SystoleRules(), {{path, text}});
}

TEST(BlankCommentsTest, KeepsLinesAndLiterals) {
  EXPECT_THAT(BlankComments("a // b\nc /* d\n e */ f"), Eq("a     \nc     \n      f"));
  EXPECT_THAT(BlankComments("x = \"// no\"; // yes"), Eq("x = \"// no\";       "));
  EXPECT_THAT(BlankComments("x = \"\\\"// no\";"), Eq("x = \"\\\"// no\";"));
  EXPECT_THAT(BlankComments("x = R\"re(\" // no)re\"; // y"), Eq("x = R\"re(\" // no)re\";     "));
  EXPECT_THAT(BlankComments("1'000 // y"), Eq("1'000     "));
  EXPECT_THAT(BlankComments("'\"' // y"), Eq("'\"'     "));
  EXPECT_THAT(BlankComments("/* never closed"), Eq("               "));
}

TEST(ParseIncludesTest, FindsQuotedAngleAndMacroIncludesOutsideComments) {
  const std::vector<Include> includes = ParseIncludes(
      "// #include <no>\n"
      "#include <vector>\n"
      "  #  include \"core/status/check.h\"  // why\n"
      "/* #include <no>\n"
      "*/ #include MACRO\n");
  ASSERT_EQ(includes.size(), 3u);
  EXPECT_EQ(includes[0].line, 2);
  EXPECT_TRUE(includes[0].angle);
  EXPECT_EQ(includes[0].path, "vector");
  EXPECT_EQ(includes[1].line, 3);
  EXPECT_FALSE(includes[1].angle);
  EXPECT_EQ(includes[1].path, "core/status/check.h");
  EXPECT_EQ(includes[2].line, 5);
  EXPECT_EQ(includes[2].path, "MACRO");
}

TEST(CheckIncludesTest, AcceptsIncludesThatTheRulesAllow) {
  EXPECT_THAT(IncludeViolations("core/record/tfrecord/record_reader.cc",
                                "#include <sys/stat.h>\n#include <vector>\n"
                                "#include \"absl/status/statusor.h\"\n"
                                "#include \"core/checksum/crc32c.h\"\n"
                                "#include \"core/record/tfrecord/record_reader.h\"\n"
                                "#include \"core/storage/byte_source.h\"\n"),
              IsEmpty());
  EXPECT_THAT(IncludeViolations("core/plan/feed.cc", "#include \"systole/v1/feed.pb.h\"\n"),
              IsEmpty());
  EXPECT_THAT(IncludeViolations("client/emulator/training/trainer.cc",
                                "#include \"client/emulator/array/matrix_unit.h\"\n"
                                "#include \"systole/v1/model.pb.h\"\n"),
              IsEmpty());
}

TEST(CheckIncludesTest, RefusesAnUpwardInclude) {
  EXPECT_THAT(
      IncludeViolations("core/storage/local/file_source.cc",
                        "\n#include \"core/record/tfrecord/record_reader.h\"\n"),
      ElementsAre(
          "core/storage/local/file_source.cc:2: includes core/record/tfrecord/record_reader.h, but "
          "core/storage/local may not use core/record/tfrecord"));
}

TEST(CheckIncludesTest, RefusesANeighbourOfTheSameLevel) {
  EXPECT_THAT(IncludeViolations("core/image/decode.cc", "#include \"core/example/example.h\"\n"),
              ElementsAre(HasSubstr("core/image may not use core/example")));
  EXPECT_THAT(IncludeViolations("core/random/keys.h", "#include \"core/checksum/xxh3.h\"\n"),
              ElementsAre(HasSubstr("core/random may not use core/checksum")));
  EXPECT_THAT(IncludeViolations("server/service.cc", "#include \"client/feed/feed_client.h\"\n"),
              ElementsAre(HasSubstr("server may not use client")));
}

TEST(CheckIncludesTest, RefusesProtobufInCoreRoomsOutsideThePipeline) {
  for (const char* folder : {"core/order", "core/batch", "core/image", "core/memory"}) {
    EXPECT_THAT(
        IncludeViolations(std::string(folder) + "/x.cc", "#include \"systole/v1/feed.pb.h\"\n"),
        ElementsAre(HasSubstr("may not use proto/systole/v1")));
  }
  EXPECT_THAT(IncludeViolations("core/order/x.cc", "#include \"google/protobuf/message.h\"\n"),
              ElementsAre(HasSubstr("protobuf may be included only")));
}

TEST(CheckIncludesTest, RefusesGrpcInCoreAndInTheEmulator) {
  for (const char* file :
       {"core/plan/x.cc", "core/concurrency/x.h", "client/emulator/array/x.cc"}) {
    EXPECT_THAT(IncludeViolations(file, "#include <grpcpp/grpcpp.h>\n"),
                ElementsAre(HasSubstr("gRPC may be included only")));
    EXPECT_THAT(IncludeViolations(file, "#include \"systole/v1/service.grpc.pb.h\"\n"),
                ElementsAre(HasSubstr("gRPC may be included only")));
  }
  EXPECT_THAT(IncludeViolations("server/x.cc", "#include <grpcpp/grpcpp.h>\n"), IsEmpty());
  EXPECT_THAT(IncludeViolations("client/feed/x.cc", "#include \"systole/v1/service.grpc.pb.h\"\n"),
              IsEmpty());
}

TEST(CheckIncludesTest, RefusesALibraryOutsideTheFilesThatMayIncludeIt) {
  EXPECT_THAT(IncludeViolations("core/image/window/crop.cc", "#include <jpeglib.h>\n"),
              ElementsAre(HasSubstr("libjpeg may be included only")));
  EXPECT_THAT(IncludeViolations("core/image/jpeg/jpeg_decoder.h", "#include <jpeglib.h>\n"),
              ElementsAre(HasSubstr("libjpeg may be included only")));
  EXPECT_THAT(IncludeViolations("core/record/x.cc", "#include <isa-l/crc.h>\n"),
              ElementsAre(HasSubstr("ISA-L may be included only")));
  EXPECT_THAT(IncludeViolations("core/checksum/xxh3.h", "#include <xxhash.h>\n"),
              ElementsAre(HasSubstr("xxHash may be included only")));
  EXPECT_THAT(IncludeViolations("server/service.cc", "#include <CLI/CLI.hpp>\n"),
              ElementsAre(HasSubstr("CLI11 may be included only")));
  EXPECT_THAT(IncludeViolations("core/plan/x.cc", "#include \"hwy/highway.h\"\n"),
              ElementsAre(HasSubstr("Highway may be included only")));
}

TEST(CheckIncludesTest, RefusesALibraryThatTheRulesDoNotKnow) {
  EXPECT_THAT(IncludeViolations("server/x.cc", "#include <folly/Range.h>\n"),
              ElementsAre(HasSubstr("folly/Range.h, which is neither a room")));
  EXPECT_THAT(IncludeViolations("server/x.cc", "#include \"gtest/gtest.h\"\n"),
              ElementsAre(HasSubstr("gtest/gtest.h, which is neither a room")));
  EXPECT_THAT(IncludeViolations("server/x.cc", "#include \"tests/status_matchers.h\"\n"),
              ElementsAre(HasSubstr("which is neither a room")));
  EXPECT_THAT(IncludeViolations("server/x.cc", "#include COMPUTED\n"),
              ElementsAre(HasSubstr("includes COMPUTED, which is neither a room")));
}

TEST(CheckIncludesTest, RefusesPathsThatDoNotStartAtTheTop) {
  EXPECT_THAT(IncludeViolations("server/x.cc", "#include \"service.h\"\n"),
              ElementsAre(HasSubstr("paths start at the top")));
  EXPECT_THAT(IncludeViolations("server/x.cc", "#include \"../core/concurrency/queue.h\"\n"),
              ElementsAre(HasSubstr("paths start at the top")));
  EXPECT_THAT(IncludeViolations("server/x.cc", "#include <core/concurrency/queue.h>\n"),
              ElementsAre(HasSubstr("want quotes")));
}

TEST(CheckIncludesTest, RefusesAFolderThatIsNoRoom) {
  EXPECT_THAT(
      IncludeViolations("core/drawer/x.cc", ""),
      ElementsAre("core/drawer/x.cc:1: its folder is no room in tests/layers/layer_rules.cc"));
  EXPECT_THAT(IncludeViolations("core/image/detail/x.h", ""), ElementsAre(HasSubstr("no room")));
}

TEST(CheckIncludesTest, RefusesIncludesOfTheClientLibraryInTheEmulator) {
  EXPECT_THAT(IncludeViolations("client/emulator/training/trainer.cc",
                                "#include \"client/feed/feed_client.h\"\n"),
              ElementsAre(HasSubstr("client/emulator/training may not use client")));
}

std::vector<std::string> LinkViolations(const std::string& cmake, const std::string& source) {
  LayerRules rules = {.rooms = {{"core/a", 0, {}}, {"core/b", 1, {}}},
                      .generated_targets = {{"systole_made", "proto/systole/v1"}}};
  rules.rooms.push_back({"proto/systole/v1", 0, {}});
  rules.not_linked = {"proto/systole/v1"};
  return CheckLinks(rules,
                    {.sources = {{"core/b/b.cc", source}},
                     .builds = {{"core/a/CMakeLists.txt", "systole_room(core/a HEADERS a.h)"},
                                {"core/b/CMakeLists.txt", cmake}}});
}

TEST(CheckLinksTest, ARoomLinksJustWhatItIncludes) {
  EXPECT_THAT(LinkViolations("systole_room(core/b\n  SOURCES b.cc\n"
                             "  DEPS systole_core_a systole_made absl::status)  # Why.\n",
                             "#include \"core/a/a.h\"\n#include \"systole/v1/feed.pb.h\"\n"),
              IsEmpty());
  EXPECT_THAT(LinkViolations("systole_room(core/b SOURCES b.cc DEPS systole_core_a)", ""),
              ElementsAre(HasSubstr("core/b links core/a without including it")));
  EXPECT_THAT(LinkViolations("systole_room(core/b SOURCES b.cc)", "#include \"core/a/a.h\"\n"),
              ElementsAre(HasSubstr("core/b includes core/a without linking it")));
  EXPECT_THAT(LinkViolations("systole_room(core/b SOURCES b.cc DEPS systole_core_c)", ""),
              ElementsAre(HasSubstr("links systole_core_c, which is no room")));
  // Files that are not part of the room's library do not count.
  EXPECT_THAT(LinkViolations("systole_room(core/b SOURCES c.cc)", "#include \"core/a/a.h\"\n"),
              IsEmpty());
  EXPECT_THAT(LinkViolations("# systole_room(core/b)\n", ""),
              ElementsAre(HasSubstr("has no systole_room(core/b)")));
}

TEST(CheckCirclesTest, AnIncludeCycleIsFoundAcrossASourceAndItsHeader) {
  const std::vector<SourceFile> sources = {{"core/a/a.h", "#include \"core/a/b.h\"\n"},
                                           {"core/a/b.h", ""},
                                           {"core/a/b.cc", "#include \"core/a/b.h\"\n"},
                                           {"core/a/c.cc", "#include \"core/a/a.h\"\n"}};
  EXPECT_THAT(CheckCircles(sources), IsEmpty());
  std::vector<SourceFile> circle = sources;
  circle.push_back({"core/a/b.cc", "#include \"core/a/a.h\"\n"});
  EXPECT_THAT(CheckCircles(circle), ElementsAre(StartsWith("core/a/a:1: includes core/a/b "),
                                                StartsWith("core/a/b:1: includes core/a/a "),
                                                StartsWith("core/a/c:1: includes core/a/a ")));
}

std::string Lines(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += "x\n";
  return text;
}

std::vector<std::string> SizeViolations(const std::vector<SourceFile>& programs) {
  return CheckSizes({.max_lines = 10, .max_lines_of_header_and_sources = 15}, programs);
}

TEST(CheckSizesTest, AFileAboveTheLineLimitIsRefused) {
  for (const std::string path : {"core/a/b.h", "core/a/b.cc", "bench/b.py", "deploy/b.sh"}) {
    EXPECT_THAT(SizeViolations({{path, Lines(10)}}), IsEmpty());
    EXPECT_THAT(SizeViolations({{path, Lines(10) + "without an end"}}),
                ElementsAre(StartsWith(path + ":1: has 11 lines, want 10 at most: split")));
  }
}

TEST(CheckSizesTest, AHeaderAndItsSourcesShareALineLimit) {
  const std::vector<SourceFile> short_ones = {{"core/a/b.h", Lines(5)},
                                              {"core/a/b.cc", Lines(5)},
                                              {"core/a/b_more.cc", Lines(5)},
                                              {"core/a/bc.cc", Lines(5)},
                                              {"core/c/b.cc", Lines(5)}};
  EXPECT_THAT(SizeViolations(short_ones), IsEmpty());
  std::vector<SourceFile> long_ones = short_ones;
  long_ones[2].text += "one\n";
  EXPECT_THAT(SizeViolations(long_ones),
              ElementsAre(StartsWith("core/a/b.h:1: has 16 lines with core/a/b.cc, "
                                     "core/a/b_more.cc, want 15 at most: split")));
  // A source with a header of its own counts for that header.
  long_ones.push_back({"core/a/b_more.h", Lines(5)});
  EXPECT_THAT(SizeViolations(long_ones), IsEmpty());
}

TEST(CheckReservedWordsTest, RefusesThreadsAndWaitsOutsideCoreConcurrency) {
  for (const char* code :
       {"std::thread t;", "std::jthread t;", "std::mutex mu;", "std::shared_mutex mu;",
        "std::recursive_mutex mu;", "std::condition_variable cv;", "std::lock_guard lock(mu);",
        "auto f = std::async(g);", "absl::Mutex mu;", "absl::Notification n;",
        "pthread_create(&t, 0, f, 0);", "#include <thread>", "#include <mutex>",
        "#include \"absl/synchronization/mutex.h\""}) {
    for (const char* file : {"core/plan/x.cc", "server/x.cc", "client/x.h", "proto/framing/x.h"}) {
      EXPECT_THAT(WordViolations(file, code),
                  ElementsAre(AllOf(StartsWith(file), HasSubstr("lives in core/concurrency"))))
          << code;
    }
    EXPECT_THAT(WordViolations("core/concurrency/x.cc", code), IsEmpty()) << code;
  }
}

TEST(CheckReservedWordsTest, FindsReservedWordsButNotInCommentsOrLongerWords) {
  EXPECT_THAT(WordViolations("server/x.cc", "// Not a std::mutex.\n/* std::thread */\n"),
              IsEmpty());
  EXPECT_THAT(WordViolations("server/x.cc", "// One.\n\nstd::mutex mu;  // std::mutex\n"),
              ElementsAre(StartsWith("server/x.cc:3: \"std::mutex\"")));
  EXPECT_THAT(WordViolations("server/x.cc", "my_std::mutex_like x; std::threads y;"), IsEmpty());
}

TEST(CheckReservedWordsTest, RefusesStandardRandomnessClocksAndPrintingWhereReserved) {
  EXPECT_THAT(WordViolations("client/cli/x.cc", "#include <random>\n"),
              ElementsAre(HasSubstr("randomness comes from core/random")));
  EXPECT_THAT(WordViolations("core/order/x.cc", "absl::Time t = absl::Now();\n"),
              ElementsAre(HasSubstr("only core/concurrency and core/log read a clock")));
  EXPECT_THAT(WordViolations("core/order/x.cc", "#include <chrono>\n"),
              ElementsAre(HasSubstr("only core/concurrency and core/log read a clock")));
  EXPECT_THAT(WordViolations("server/x.cc", "#include <chrono>\n"), IsEmpty());
  EXPECT_THAT(WordViolations("core/order/x.cc", "std::fprintf(stderr, \"x\");\n"),
              ElementsAre(HasSubstr("core never prints")));
  EXPECT_THAT(WordViolations("core/order/x.cc", "std::snprintf(b, 1, \"x\");\n"), IsEmpty());
}

TEST(CheckReservedWordsTest, RefusesLibmInImageCodeAndInTheEmulator) {
  for (const char* code : {"std::exp(x)", "std::log(x)", "std::pow(x, 2)", "std::tanh(x)"}) {
    EXPECT_THAT(WordViolations("client/emulator/x.cc", code), ElementsAre(HasSubstr("libm")))
        << code;
    EXPECT_THAT(WordViolations("core/image/x.cc", code), ElementsAre(HasSubstr("libm"))) << code;
  }
  EXPECT_THAT(WordViolations("core/image/x.cc", "std::sqrt(x) + std::floor(x) + numeric::Exp(x)"),
              IsEmpty());
}

TEST(CheckHeadersTest, WantsAnIncludeGuardFromThePathAndAThreadSafetyWord) {
  const std::string good =
      "// A thing. Thread-safe.\n"
      "#ifndef SYSTOLE_CORE_CONCURRENCY_QUEUE_H_\n#define "
      "SYSTOLE_CORE_CONCURRENCY_QUEUE_H_\n#endif\n";
  EXPECT_THAT(CheckHeaders({{"core/concurrency/queue.h", good}}), IsEmpty());
  EXPECT_THAT(CheckHeaders({{"core/concurrency/other.h", good}}),
              ElementsAre(HasSubstr("SYSTOLE_CORE_CONCURRENCY_OTHER_H_")));
  EXPECT_THAT(CheckHeaders({{"core/concurrency/queue.h", good.substr(good.find('\n'))}}),
              ElementsAre(HasSubstr("says none of Thread-safe")));
}

TEST(CheckHeadersTest, WantsTheHighwayToggleGuardInInlHeaders) {
  EXPECT_THAT(CheckHeaders({{"core/image/resize-inl.h",
                             "// Thread-safe.\n#if defined(SYSTOLE_CORE_IMAGE_RESIZE_INL_H_) == "
                             "defined(HWY_TARGET_TOGGLE)\n"}}),
              IsEmpty());
  EXPECT_THAT(CheckHeaders({{"core/image/resize-inl.h",
                             "// Thread-safe.\n#ifndef SYSTOLE_CORE_IMAGE_RESIZE_INL_H_\n"
                             "#define SYSTOLE_CORE_IMAGE_RESIZE_INL_H_\n"}}),
              ElementsAre(HasSubstr("SYSTOLE_CORE_IMAGE_RESIZE_INL_H_")));
}

TEST(CheckHeadersTest, WantsASourcesOwnHeaderFirst) {
  const std::string header =
      "// Thread-safe.\n#ifndef SYSTOLE_CORE_ORDER_A_H_\n#define SYSTOLE_CORE_ORDER_A_H_\n#endif\n";
  const auto check = [&header](const std::string& source) {
    return CheckHeaders({{"core/order/a.h", header}, {"core/order/a.cc", source}});
  };
  EXPECT_THAT(check("#include \"core/order/a.h\"\n\n#include <string>\n"), IsEmpty());
  EXPECT_THAT(check("#include <string>\n#include \"core/order/a.h\"\n"),
              ElementsAre(StartsWith("core/order/a.cc:1: does not include core/order/a.h first")));
  EXPECT_THAT(CheckHeaders({{"core/order/b.cc", "#include <string>\n"}}), IsEmpty());
}

TEST(CheckPrecompiledNamesTest, AUsedPrecompiledHeaderMustBeIncludedDirectlyOrIndirectly) {
  LayerRules rules;
  rules.precompiled = {{"optional", {"std::optional", "std::nullopt"}}};
  const SourceFile used{"core/a.cc", "int x;\nstd::optional<int> y;\n"};
  EXPECT_THAT(CheckPrecompiledNames(rules, {used}),
              ElementsAre("core/a.cc:2: uses std::optional, but no include leads to optional"));
  EXPECT_THAT(CheckPrecompiledNames(rules, {{used.path, "#include <optional>\n" + used.text}}),
              IsEmpty());
  // Headers of the tree may include <optional> for the source.
  const SourceFile through{used.path, "#include \"core/b.h\"\n" + used.text};
  EXPECT_THAT(CheckPrecompiledNames(rules, {through,
                                            {"core/b.h", "#include \"core/c.h\"\n"},
                                            {"core/c.h", "#include <optional>\n"}}),
              IsEmpty());
  EXPECT_THAT(CheckPrecompiledNames(rules, {through, {"core/b.h", ""}}), testing::SizeIs(1));
}

TEST(CheckPrecompiledNamesTest, NamesInCommentsAndPartsOfLongerNamesAreIgnored) {
  LayerRules rules;
  rules.precompiled = {{"algorithm", {"std::find"}}};
  for (const std::string text : {"// std::find\n", "std::find_if(x);\n", "mystd::find(x);\n",
                                 "xstd::find;", "std::find::x;"}) {
    EXPECT_THAT(CheckPrecompiledNames(rules, {{"core/a.cc", text}}), IsEmpty()) << text;
  }
  EXPECT_THAT(CheckPrecompiledNames(rules, {{"core/a.cc", "std::find_if(std::find"}}),
              testing::SizeIs(1));
}

TEST(CheckFoldersTest, RefusesExtraAndMissingTopLevelEntries) {
  const LayerRules rules = SystoleRules();
  Tree tree{.top_level = rules.top_level, .folders = {"core", "core/concurrency"}, .sources = {}};
  EXPECT_THAT(CheckFolders(rules, tree), IsEmpty());

  tree.top_level.push_back("scripts");
  EXPECT_THAT(CheckFolders(rules, tree),
              ElementsAre(StartsWith("scripts: the top level is fixed")));

  tree.top_level = rules.top_level;
  tree.top_level.erase(tree.top_level.begin());
  EXPECT_THAT(CheckFolders(rules, tree), ElementsAre("CHANGELOG.md: missing at the top level"));
}

TEST(CheckFoldersTest, RefusesFoldersWithCatchAllNames) {
  const LayerRules rules = SystoleRules();
  for (const char* name : {"util", "common", "helpers", "misc", "base"}) {
    const std::string folder = std::string("core/image/") + name;
    const Tree tree{.top_level = rules.top_level, .folders = {folder}, .sources = {}};
    EXPECT_THAT(CheckFolders(rules, tree),
                ElementsAre(StartsWith(folder + ": a folder of this name could hold anything")));
  }
}

TEST(CheckRulesTest, RefusesARuleToAHigherLevelAndAnUnknownRoom) {
  LayerRules rules;
  rules.rooms = {{"a", 1, {"b"}}, {"b", 2, {"a"}}, {"c", 3, {"d", "b/x.h"}}};
  EXPECT_THAT(CheckRules(rules), ElementsAre("a (level 1) names b (level 2), want a lower level",
                                             "c names d, which is no room"));
}

TEST(ReadTreeTest, ReportsAMissingFolder) {
  EXPECT_THAT(ReadTree("/no/such/folder"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("/no/such/folder")));
}

}  // namespace
}  // namespace systole::layers
