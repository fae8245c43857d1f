#include "client/html/html_text.h"

#include "gtest/gtest.h"

namespace systole {
namespace {

TEST(EscapeHtmlTest, NothingCanOpenATagOrCloseAnAttribute) {
  EXPECT_EQ(EscapeHtml("<b title=\"x\">'&amp;'</b>"),
            "&lt;b title=&quot;x&quot;&gt;&#39;&amp;amp;&#39;&lt;/b&gt;");
  EXPECT_EQ(EscapeHtml("resnet50 – v1.5"), "resnet50 – v1.5");
}

}  // namespace
}  // namespace systole
