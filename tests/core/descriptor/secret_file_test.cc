#include "core/descriptor/secret_file.h"

#include "gtest/gtest.h"

namespace systole {
namespace {

constexpr uid_t kRoot = 0;
constexpr uid_t kReader = 65532;
constexpr uid_t kOther = 1000;

bool OthersMayUseFile(uid_t owner, mode_t mode, uid_t reader) {
  struct stat file = {};
  file.st_uid = owner;
  file.st_mode = S_IFREG | mode;
  return OthersMayUse(file, reader);
}

TEST(SecretFileTest, AFileThatOnlyItsOwnerMayUseIsASecret) {
  for (const uid_t owner : {kRoot, kReader, kOther}) {
    for (const mode_t mode : {0400, 0600, 0700}) {
      EXPECT_FALSE(OthersMayUseFile(owner, mode, kReader));
      EXPECT_FALSE(OthersMayUseFile(owner, mode, kRoot));
    }
  }
}

TEST(SecretFileTest, ARootFileReadableByAGroupIsASecretForANonRootReader) {
  EXPECT_FALSE(OthersMayUseFile(kRoot, 0440, kReader));
  EXPECT_FALSE(OthersMayUseFile(kRoot, 0640, kReader));
}

TEST(SecretFileTest, GroupReadableFilesOfNonRootOwnersOrForRootAreNoSecrets) {
  EXPECT_TRUE(OthersMayUseFile(kReader, 0640, kReader));
  EXPECT_TRUE(OthersMayUseFile(kOther, 0640, kReader));
  EXPECT_TRUE(OthersMayUseFile(kRoot, 0640, kRoot));
}

TEST(SecretFileTest, AnyGroupOrWorldBitButGroupReadMakesAFileNoSecret) {
  for (mode_t bits = 1; bits < 0100; ++bits) {
    if (bits == S_IRGRP) continue;
    EXPECT_TRUE(OthersMayUseFile(kRoot, 0600 | bits, kReader)) << std::oct << bits;
  }
}

}  // namespace
}  // namespace systole
