#include "core/concurrency/processors.h"

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "gtest/gtest.h"

namespace systole {
namespace {

class ProcessorQuotaTest : public testing::Test {
 protected:
  ProcessorQuotaTest() { std::filesystem::remove_all(root_); }
  ~ProcessorQuotaTest() override { std::filesystem::remove_all(root_); }

  void SetQuota(const std::string& group, const std::string& cpu_max) {
    const std::filesystem::path folder = std::filesystem::path(root_) / group;
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "cpu.max") << cpu_max << "\n";
  }

  const std::string root_ =
      testing::TempDir() + "quota_" + testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST(ProcessorsTest, AtLeastOneProcessorIsUsable) { EXPECT_GE(UsableProcessors(), 1); }

TEST_F(ProcessorQuotaTest, AContainersQuotaIsReadFromItsRootCgroup) {
  SetQuota("", "150000 100000");
  EXPECT_EQ(ProcessorQuota(root_, "0::/\n"), 1.5);
}

TEST_F(ProcessorQuotaTest, TheSmallestQuotaOfTheCgroupAndItsParentsCounts) {
  SetQuota("", "max 100000");
  SetQuota("pods", "400000 100000");
  SetQuota("pods/one", "800000 100000");
  SetQuota("pods/two", "200000 100000");
  EXPECT_EQ(ProcessorQuota(root_, "0::/pods/one\n"), 4);
  EXPECT_EQ(ProcessorQuota(root_, "1:cpu:/elsewhere\n0::/pods/two\n"), 2);
  // The group pods/three has no quota file, like any group without a limit of its own.
  EXPECT_EQ(ProcessorQuota(root_, "0::/pods/three\n"), 4);
}

TEST_F(ProcessorQuotaTest, WithoutALimitOrACgroupThereIsNoQuota) {
  SetQuota("", "max 100000");
  EXPECT_EQ(ProcessorQuota(root_, "0::/\n"), std::nullopt);
  EXPECT_EQ(ProcessorQuota(root_ + "/none", "0::/\n"), std::nullopt);
  EXPECT_EQ(ProcessorQuota(root_, ""), std::nullopt);
  EXPECT_EQ(ProcessorQuota(root_, "0::/../../etc\n"), std::nullopt);
}

TEST_F(ProcessorQuotaTest, InvalidCpuMaxTextGivesNoQuota) {
  for (const char* text : {"", "100000", "x y", "-1 100000", "100000 0", "0 100000", "nan 1"}) {
    SetQuota("", text);
    EXPECT_EQ(ProcessorQuota(root_, "0::/\n"), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace systole
