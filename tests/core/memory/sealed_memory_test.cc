#include "core/memory/sealed_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/descriptor/owned_fd.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/memory/old_kernel.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kBytes = 10'000;  // Not a multiple of a page.
constexpr int kAllSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL;

SealedMemory MustCreate(int64_t bytes) {
  absl::StatusOr<SealedMemory> memory = SealedMemory::Create(bytes);
  EXPECT_THAT(memory, IsOk());
  return *std::move(memory);
}

// Makes a memory file of `bytes` with exactly these seals.
OwnedFd MemoryFile(int64_t bytes, int seals) {
  OwnedFd fd(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_TRUE(fd.ok());
  EXPECT_EQ(ftruncate(fd.get(), bytes), 0);
  EXPECT_EQ(fcntl(fd.get(), F_ADD_SEALS, seals), 0);
  return fd;
}

TEST(SealedMemoryTest, WhatTheOwnerWritesAViewReadsAtOnce) {
  const SealedMemory memory = MustCreate(kBytes);
  EXPECT_EQ(memory.bytes(), kBytes);
  const absl::StatusOr<SealedView> view = SealedView::Map(memory.fd(), kBytes);
  ASSERT_THAT(view, IsOk());
  EXPECT_EQ(view->bytes(), kBytes);
  EXPECT_EQ(view->data()[kBytes - 1], 0);
  memory.data()[kBytes - 1] = 17;
  EXPECT_EQ(view->data()[kBytes - 1], 17);
}

TEST(SealedMemoryTest, AViewOutlivesTheOwner) {
  absl::StatusOr<SealedView> view;
  {
    const SealedMemory memory = MustCreate(kBytes);
    memory.data()[3] = 5;
    view = SealedView::Map(memory.fd(), kBytes);
  }
  ASSERT_THAT(view, IsOk());
  EXPECT_EQ(view->data()[3], 5);
}

TEST(SealedMemoryTest, NobodyWithTheDescriptorCanWriteOrResize) {
  const SealedMemory memory = MustCreate(kBytes);
  const char byte = 1;
  EXPECT_EQ(pwrite(memory.fd(), &byte, 1, 0), -1);
  EXPECT_EQ(errno, EPERM);
  EXPECT_EQ(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory.fd(), 0), MAP_FAILED);
  EXPECT_EQ(ftruncate(memory.fd(), kBytes - 1), -1);
  EXPECT_EQ(ftruncate(memory.fd(), kBytes + 1), -1);
  EXPECT_EQ(fcntl(memory.fd(), F_ADD_SEALS, F_SEAL_WRITE), -1);
  // Writing also fails through a new descriptor of the file.
  const OwnedFd again(open(absl::StrCat("/proc/self/fd/", memory.fd()).c_str(), O_RDWR));
  EXPECT_EQ(pwrite(again.get(), &byte, 1, 0), -1);
  EXPECT_EQ(memory.data()[0], 0);
}

TEST(SealedMemoryTest, AMappingOfAViewCannotBeMadeWritable) {
  const SealedMemory memory = MustCreate(kBytes);
  const absl::StatusOr<SealedView> view = SealedView::Map(memory.fd(), kBytes);
  ASSERT_THAT(view, IsOk());
  EXPECT_EQ(mprotect(const_cast<uint8_t*>(view->data()), kBytes, PROT_READ | PROT_WRITE), -1);
}

TEST(SealedMemoryTest, EachHasItsOwnId) {
  EXPECT_NE(MustCreate(1).id(), MustCreate(1).id());
  EXPECT_GT(MustCreate(1).id(), 0u);
}

TEST(SealedMemoryTest, MovedMemoryAndViewsKeepTheirContent) {
  SealedMemory a = MustCreate(kBytes);
  a.data()[0] = 1;
  SealedMemory b = MustCreate(kBytes);
  b = std::move(a);
  EXPECT_EQ(b.data()[0], 1);
  absl::StatusOr<SealedView> view = SealedView::Map(b.fd(), kBytes);
  ASSERT_THAT(view, IsOk());
  const SealedView moved = *std::move(view);
  EXPECT_EQ(moved.data()[0], 1);
}

// Descriptors that a peer must not send.

TEST(SealedViewTest, ErrorForAMissingSealShowsTheSealsThatAreSet) {
  for (const int lacking : {F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_FUTURE_WRITE, F_SEAL_SEAL}) {
    const OwnedFd fd = MemoryFile(kBytes, kAllSeals & ~lacking);
    EXPECT_THAT(SealedView::Map(fd.get(), kBytes),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr(absl::StrCat("seals are 0x", absl::Hex(kAllSeals & ~lacking)))))
        << lacking;
  }
  EXPECT_THAT(SealedView::Map(MemoryFile(kBytes, kAllSeals).get(), kBytes), IsOk());
}

TEST(SealedViewTest, AnotherSizeThanAnnouncedIsRefused) {
  const OwnedFd fd = MemoryFile(kBytes, kAllSeals);
  for (const int64_t announced : {kBytes - 1, kBytes + 1, int64_t{0}, int64_t{1} << 60}) {
    EXPECT_THAT(SealedView::Map(fd.get(), announced),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("size is 10000 bytes")));
  }
}

TEST(SealedViewTest, NonMemoryFilesAndInvalidDescriptorsAreRefused) {
  const OwnedFd file(open("/proc/self/exe", O_RDONLY));
  EXPECT_THAT(SealedView::Map(file.get(), 1),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not a memory file")));
  EXPECT_THAT(SealedView::Map(-1, 1),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not a memory file")));
}

TEST(SealedMemoryTest, ASizeBelowOneByteIsRefused) {
  for (const int64_t bytes : {int64_t{0}, int64_t{-1}}) {
    EXPECT_THAT(SealedMemory::Create(bytes),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("want 1 or more")));
  }
}

TEST(SealedMemoryTest, CreateIsUnimplementedOnAKernelWithoutTheSeal) {
  OnOldKernel([] {
    EXPECT_THAT(SealedMemory::Create(1),
                StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("want Linux 5.1")));
  });
  EXPECT_THAT(SealedMemory::Create(1), IsOk());
}

TEST(SealedMemoryTest, NoDescriptorLeftIsResourceExhausted) {
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none = {.rlim_cur = 0, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const absl::StatusOr<SealedMemory> memory = SealedMemory::Create(kBytes);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_THAT(memory, StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("ulimit -n")));
}

}  // namespace
}  // namespace systole
