#include "client/lanes/feed_option_table.h"

#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <type_traits>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "client/lanes/feed_client_options.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/folders.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::HasSubstr;

const FeedOption& RowOf(absl::string_view name) {
  for (const FeedOption& option : FeedOptionTable()) {
    if (option.name == name) return option;
  }
  ADD_FAILURE() << name;
  return FeedOptionTable()[0];
}

// The default as text, such as "10s", "268435456" or "on".
std::string DefaultOf(const FeedOption& option) {
  FeedClientOptions defaults;
  return std::visit(
      [](const auto* field) -> std::string {
        using Value = std::remove_cv_t<std::remove_pointer_t<decltype(field)>>;
        if constexpr (std::is_same_v<Value, bool>) {
          return *field ? "on" : "off";
        } else if constexpr (std::is_same_v<Value, absl::Duration>) {
          return absl::FormatDuration(*field);
        } else {
          return absl::StrCat(*field);
        }
      },
      option.field(defaults));
}

TEST(FeedOptionTableTest, EveryRowHasAFieldAndNamesOfItsOwnAndAHelp) {
  FeedClientOptions options;
  std::set<std::string> names;
  std::set<std::string> flags;
  std::set<FeedOption::Field> fields;
  for (const FeedOption& option : FeedOptionTable()) {
    SCOPED_TRACE(option.name);
    EXPECT_TRUE(names.insert(std::string(option.name)).second);
    EXPECT_TRUE(flags.insert(FlagOf(option)).second);
    EXPECT_TRUE(fields.insert(option.field(options)).second);
    EXPECT_FALSE(option.help.empty());
    EXPECT_FALSE(absl::EndsWith(option.help, "."));
    EXPECT_EQ(option.value.empty(), std::holds_alternative<bool*>(option.field(options)));
    EXPECT_THAT(CheckFeedOption(option, FeedClientOptions(), option.name), IsOk());
  }
}

TEST(FeedOptionTableTest, WhatIsOutOfItsBoundsIsRefusedByTheNameThatTheUserKnows) {
  FeedClientOptions options;
  options.retry_for = absl::ZeroDuration();
  options.hedge_fraction = 1.5;
  options.max_step_bytes = 0;
  const auto refusal = [&options](absl::string_view name, absl::string_view called) {
    return std::string(CheckFeedOption(RowOf(name), options, called).message());
  };
  EXPECT_EQ(refusal("retry_for", "--retry-for"), "--retry-for is 0, want 1ns to 8760h");
  EXPECT_EQ(refusal("hedge_fraction", "hedge_fraction"), "hedge_fraction is 1.5, want 0 to 1");
  EXPECT_EQ(refusal("max_step_bytes", "--max-step-bytes"), "--max-step-bytes is 0, want 1 or more");
}

TEST(FeedOptionTableTest, ATextThatFailsItsCheckIsRefusedByTheNameThatTheUserKnows) {
  FeedClientOptions options;
  options.traceparent = "none";
  const absl::Status status = CheckFeedOption(RowOf("traceparent"), options, "--traceparent");
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument,
                               HasSubstr("--traceparent is 'none', want a traceparent of W3C")));
}

TEST(FeedOptionTableTest, AnInvalidWordIsRefusedWithAListOfTheValidWords) {
  FeedClientOptions options;
  for (const char* const word : {"auto", "server", "client"}) {
    options.finish = word;
    EXPECT_THAT(CheckFeedOption(RowOf("finish"), options, "--finish"), IsOk());
  }
  options.finish = "Client\n";
  EXPECT_EQ(CheckFeedOption(RowOf("finish"), options, "--finish").message(),
            "--finish is 'Client\\n', want auto, server or client");
}

TEST(FeedOptionTableTest, TheReadmeShowsEveryRowOfTheTable) {
  std::ifstream file(SourceFolder() + "/client/feed/README.md");
  const std::string readme((std::istreambuf_iterator<char>(file)), {});
  std::string rows;
  for (const FeedOption& option : FeedOptionTable()) {
    const std::string text = DefaultOf(option);
    absl::StrAppend(&rows, "| `", option.name, "` | `", FlagOf(option), "` | ",
                    text.empty() ? "" : absl::StrCat(text, " "), "| ", option.help, " |\n");
  }
  EXPECT_THAT(readme, HasSubstr(rows));
}

}  // namespace
}  // namespace systole
