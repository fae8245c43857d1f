// A server is compiled with one libjpeg, but loads whatever library is installed under libjpeg's
// name. These tests start servers with other libraries.
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "systole/v1/service.grpc.pb.h"
#include "tests/folders.h"
#include "tests/status_matchers.h"
#include "tests/system/served_feed.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// The build id of Debian 12's libjpeg.
constexpr char kBuildId[] = "75b71ddb85234be3659c097f2561a765b45993bd";

class LibjpegTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TempFolder;
    PackFlowers(*folder_, /*images=*/40, /*shards=*/1);
    spec_ = folder_->Write("spec.textproto", FlowersSpec());
  }
  static void TearDownTestSuite() { delete folder_; }

  static absl::StatusOr<std::unique_ptr<ServerProcess>> Serve(
      const std::vector<std::string>& environment = {}) {
    return ServerProcess::Start(
        {"--dataset", absl::StrCat("flowers=", *folder_ / "flowers-train-*.tfrecord")},
        {.environment = environment});
  }

  static Finished Digest(const std::string& servers) {
    return RunSystole({"feed", "--server", servers, "--spec", spec_, "--steps", "4", "--digest"});
  }

  static v1::ServerStatusResponse StatusOf(const ServerProcess& server) {
    const auto stub = v1::Systole::NewStub(
        grpc::CreateChannel(server.address(), grpc::InsecureChannelCredentials()));
    grpc::ClientContext context;
    v1::ServerStatusResponse status;
    EXPECT_TRUE(stub->ServerStatus(&context, {}, &status).ok());
    return status;
  }

  static TempFolder* folder_;
  static std::string spec_;
};
TempFolder* LibjpegTest::folder_ = nullptr;
std::string LibjpegTest::spec_;

TEST_F(LibjpegTest, AnIncompatibleLibjpegDecodesAloneAndIsReported) {
  const auto ordinary = Serve();
  ASSERT_THAT(ordinary, IsOk());
  const auto unfit = Serve(
      {absl::StrCat("LD_PRELOAD=", BuildFolder(), "/tests/system/libsystole_other_libjpeg.so"),
       // In a build with AddressSanitizer, LD_PRELOAD puts another library before the sanitizer's.
       // The sanitizer would refuse this without verify_asan_link_order=0.
       "ASAN_OPTIONS=verify_asan_link_order=0:allocator_may_return_null=1"});
  ASSERT_THAT(unfit, IsOk());

  const v1::ServerStatusResponse status = StatusOf(**unfit);
  EXPECT_THAT(status.jpeg_fallback(), HasSubstr("gives other pixels for a 4:4:4 test image"));
  EXPECT_THAT((*unfit)->process().err(),
              AllOf(HasSubstr("JPEGs are decoded by libjpeg alone, at about half the speed"),
                    HasSubstr(status.jpeg_fallback())));
  EXPECT_EQ(StatusOf(**ordinary).jpeg_fallback(), "");
  EXPECT_THAT((*ordinary)->process().err(), Not(HasSubstr("libjpeg")));

  const Finished want = Digest((*ordinary)->address());
  ASSERT_EQ(want.exit_code, 0) << want.err;
  ASSERT_EQ(Lines(want.out).size(), 4u * 8);
  EXPECT_EQ(Digest((*unfit)->address()).out, want.out);
}

TEST_F(LibjpegTest, AnotherBuildIsAnotherContentVersion) {
  std::ifstream in(SYSTOLE_LIBJPEG, std::ios::binary);
  std::string library((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  const size_t digit = absl::BytesToHexString(library).find(kBuildId);
  ASSERT_NE(digit, std::string::npos) << SYSTOLE_LIBJPEG;
  const size_t at = digit / 2;
  library[at] = '\x11';
  folder_->Write("libjpeg.so.62", library);
  // The 8 bytes before the build id are the type of the note and then the padded name "GNU". The
  // next line changes the type to an unknown type.
  library[at - 8] = '\x77';
  const TempFolder unnamed;
  unnamed.Write("libjpeg.so.62", library);

  const auto ordinary = Serve();
  const auto other = Serve({absl::StrCat("LD_LIBRARY_PATH=", folder_->path())});
  const auto unknown = Serve({absl::StrCat("LD_LIBRARY_PATH=", unnamed.path())});
  for (const auto* server : {&ordinary, &other, &unknown}) ASSERT_THAT(*server, IsOk());
  EXPECT_THAT(StatusOf(**ordinary).content_version(), HasSubstr("+libjpeg-turbo-2.1.5"));
  EXPECT_THAT(StatusOf(**other).content_version(),
              HasSubstr(absl::StrCat("+libjpeg-build-11", std::string(kBuildId).substr(2))));
  EXPECT_THAT(StatusOf(**unknown).content_version(), HasSubstr("+libjpeg-unknown-headers-2.1.5"));
  // `other` and `unknown` run with unchanged code of libjpeg, so our decoder works there.
  EXPECT_EQ(StatusOf(**other).jpeg_fallback(), "");
  EXPECT_EQ(StatusOf(**unknown).jpeg_fallback(), "");
  const Finished mixed = Digest(absl::StrCat((*ordinary)->address(), ",", (*other)->address()));
  EXPECT_NE(mixed.exit_code, 0);
  EXPECT_THAT(mixed.err, HasSubstr("libjpeg-build-11"));
}

}  // namespace
}  // namespace systole
