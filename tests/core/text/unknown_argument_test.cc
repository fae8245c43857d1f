#include "core/text/unknown_argument.h"

#include "gtest/gtest.h"

namespace systole {
namespace {

TEST(UnknownArgumentTest, AnUnknownOptionIsShownWithoutItsValueAndWithASuggestion) {
  EXPECT_EQ(UnknownArgumentText("systole-server", "--lisen=unix:/s", {"--dataset", "--listen"}),
            "systole-server: there is no option '--lisen'; `systole-server --help` lists them; did "
            "you mean '--listen'?");
}

TEST(UnknownArgumentTest, NoOptionIsSuggestedIfNoneIsNear) {
  EXPECT_EQ(UnknownArgumentText("systole feed", "--colour", {"--server"}),
            "systole feed: there is no option '--colour'; `systole feed --help` lists them");
}

TEST(UnknownArgumentTest, AnArgumentThatIsNotAnOptionIsCalledUnexpected) {
  EXPECT_EQ(UnknownArgumentText("systole feed", "a\nb", {"--server"}),
            "systole feed: unexpected argument 'a\\nb'; `systole feed --help` lists the arguments");
}

TEST(UnknownArgumentTest, AnAddressIsShownWithoutItsSecrets) {
  EXPECT_EQ(UnknownArgumentText("systole feed", "https://user:secret@host/a?secret", {"--server"}),
            "systole feed: unexpected argument 'https://...@host/a'; `systole feed --help` lists "
            "the arguments");
}

}  // namespace
}  // namespace systole
