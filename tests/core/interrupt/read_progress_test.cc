#include "core/interrupt/read_progress.h"

#include "core/concurrency/worker_pool.h"
#include "gtest/gtest.h"

namespace systole {
namespace {

TEST(ReadProgressTest, WithoutAScopeNothingIsCounted) {
  EXPECT_EQ(CurrentReadProgress(), nullptr);
  NoteRead(1);
}

TEST(ReadProgressTest, ReadBytesCountOnlyInTheInnermostScope) {
  ReadProgress outer;
  ReadProgress inner;
  const ReadProgressScope scope(outer);
  NoteRead(1);
  {
    const ReadProgressScope within(inner);
    NoteRead(10);
    NoteRead(100);
  }
  NoteRead(1000);
  EXPECT_EQ(outer.bytes(), 1001);
  EXPECT_EQ(inner.bytes(), 110);
}

TEST(ReadProgressTest, AnotherThreadMayAddToTheProgressOfAThread) {
  ReadProgress progress;
  const ReadProgressScope scope(progress);
  ReadProgress* const current = CurrentReadProgress();
  WorkerPool(1).Submit([current] {  // The pool waits for its task.
    NoteRead(1);
    current->Add(10);
  });
  EXPECT_EQ(progress.bytes(), 10);
}

}  // namespace
}  // namespace systole
