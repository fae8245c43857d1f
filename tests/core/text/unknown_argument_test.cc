#include "core/text/unknown_argument.h"

#include "gtest/gtest.h"

namespace systole {
namespace {

TEST(UnknownArgumentTest, OptionIsNamedWithoutItsValueAndTheNearestOneOffered) {
  EXPECT_EQ(UnknownArgumentText("systole-server", "--lisen=unix:/s", {"--dataset", "--listen"}),
            "systole-server: there is no option '--lisen'; `systole-server --help` lists them; did "
            "you mean '--listen'?");
}

TEST(UnknownArgumentTest, NothingIsOfferedIfNothingIsNear) {
  EXPECT_EQ(UnknownArgumentText("systole feed", "--colour", {"--server"}),
            "systole feed: there is no option '--colour'; `systole feed --help` lists them");
}

TEST(UnknownArgumentTest, ArgumentThatIsNoOptionIsOneTooMany) {
  EXPECT_EQ(
      UnknownArgumentText("systole feed", "a\nb", {"--server"}),
      "systole feed: 'a\\nb' is one argument too many; `systole feed --help` shows what there "
      "is");
}

TEST(UnknownArgumentTest, AnAddressIsShownWithoutItsSecrets) {
  EXPECT_EQ(UnknownArgumentText("systole feed", "https://user:secret@host/a?secret", {"--server"}),
            "systole feed: 'https://...@host/a' is one argument too many; `systole feed --help` "
            "shows what there is");
}

}  // namespace
}  // namespace systole
