#include "core/text/markup_text.h"

#include "gtest/gtest.h"

namespace systole {
namespace {

TEST(EscapeMarkupTest, NothingCanOpenATagOrCloseAnAttribute) {
  EXPECT_EQ(EscapeMarkup("<b title=\"x\">'&amp;'</b>"),
            "&lt;b title=&quot;x&quot;&gt;&#39;&amp;amp;&#39;&lt;/b&gt;");
  EXPECT_EQ(EscapeMarkup("resnet50 – v1.5"), "resnet50 – v1.5");
}

}  // namespace
}  // namespace systole
