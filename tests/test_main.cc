// The main() of every test program: GoogleTest's, with a deadline for each test.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/test_deadline.h"

int main(int argc, char** argv) {
  testing::InitGoogleMock(&argc, argv);
  testing::UnitTest::GetInstance()->listeners().Append(new systole::TestDeadline);  // Owned there.
  return RUN_ALL_TESTS();
}
