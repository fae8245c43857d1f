#include "server/listener/tls_files.h"

#include <sys/stat.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/folders.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

int Shell(const std::string& command) { return std::system(command.c_str()); }

class TlsFilesTest : public testing::Test {
 protected:
  void SetUp() override { MakeCertificates(); }
  void MakeCertificates() const {
    ASSERT_EQ(Shell(absl::StrCat(SourceFolder(), "/deploy/make_certificates.sh ", folder_.path(),
                                 " 2>/dev/null")),
              0);
  }
  TlsOptions Options() const {
    return {.certificate = folder_ / "server.pem",
            .key = folder_ / "server.key",
            .client_ca = folder_ / "ca.pem"};
  }

  const TempFolder folder_;
};

TEST_F(TlsFilesTest, CertificatesFromMakeCertificatesScriptAreRead) {
  const absl::StatusOr<TlsMaterial> material = ReadTlsFiles(Options());
  ASSERT_THAT(material, IsOk());
  EXPECT_EQ(material->certificate, ReadWholeFile(folder_ / "server.pem"));
  EXPECT_EQ(material->key, ReadWholeFile(folder_ / "server.key"));
  EXPECT_EQ(material->client_ca, ReadWholeFile(folder_ / "ca.pem"));
}

TEST_F(TlsFilesTest, ACertificateWithoutAKeyIsRefused) {
  EXPECT_THAT(ReadTlsFiles({.certificate = folder_ / "server.pem"}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("--tls-key")));
}

TEST_F(TlsFilesTest, AKeyThatOthersCanReadIsRefusedWithTheRemedy) {
  ASSERT_EQ(::chmod((folder_ / "server.key").c_str(), 0640), 0);
  EXPECT_THAT(ReadTlsFiles(Options()),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr(absl::StrCat("chmod 600 ", folder_ / "server.key"))));
}

TEST_F(TlsFilesTest, AMissingFileIsNamed) {
  TlsOptions options = Options();
  options.certificate = folder_ / "none.pem";
  EXPECT_THAT(ReadTlsFiles(options),
              StatusIs(absl::StatusCode::kNotFound,
                       AllOf(HasSubstr("--tls-certificate"), HasSubstr("none.pem"))));
}

TEST_F(TlsFilesTest, AKeyOfAnotherCertificateIsRefused) {
  TlsOptions options = Options();
  options.key = folder_ / "client.key";
  EXPECT_THAT(ReadTlsFiles(options),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("not the key of"), HasSubstr("server.pem"))));
}

TEST_F(TlsFilesTest, FilesWithoutAPemCertificateOrKeyAreRefused) {
  TlsOptions options = Options();
  options.client_ca = folder_.Write("text", "hello");
  EXPECT_THAT(ReadTlsFiles(options),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("--tls-client-ca")));
  options.key = options.client_ca;
  ASSERT_EQ(::chmod(options.key.c_str(), 0600), 0);
  EXPECT_THAT(ReadTlsFiles(options),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no PEM key")));
}

TEST_F(TlsFilesTest, AnExpiredCertificateIsRefused) {
  ASSERT_EQ(Shell(absl::StrCat("cd ", folder_.path(),
                               " && openssl req -new -key server.key -subj /CN=old 2>/dev/null | "
                               "openssl x509 -req -CA ca.pem -CAkey ca.key -days -1 -set_serial 7 "
                               "-out server.pem 2>/dev/null")),
            0);
  EXPECT_THAT(ReadTlsFiles(Options()),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("has expired")));
}

TEST_F(TlsFilesTest, AChangedCertificateLoadsOnceAndAnInvalidOneKeepsTheOld) {
  std::vector<std::string> told;
  absl::StatusOr<std::unique_ptr<TlsFiles>> files =
      TlsFiles::Open(Options(), [&told](absl::string_view text, bool good) {
        told.push_back(absl::StrCat(good ? "good: " : "bad: ", text));
      });
  ASSERT_THAT(files, IsOk());
  EXPECT_TRUE((*files)->verifies_clients());
  EXPECT_TRUE((*files)->TakeChange().has_value());  // The files as they were at the start.
  EXPECT_FALSE((*files)->TakeChange().has_value());

  folder_.Write("server.pem", "half a fi");
  EXPECT_FALSE((*files)->TakeChange().has_value());
  EXPECT_FALSE((*files)->TakeChange().has_value());
  EXPECT_THAT(told, ElementsAre(AllOf(HasSubstr("bad: "), HasSubstr("the old ones stay in use"),
                                      HasSubstr("server.pem"))));
  MakeCertificates();
  const std::optional<TlsMaterial> changed = (*files)->TakeChange();
  ASSERT_TRUE(changed.has_value());
  EXPECT_EQ(changed->certificate, ReadWholeFile(folder_ / "server.pem"));
  EXPECT_THAT(told, ElementsAre(testing::_, HasSubstr("good: ")));
}

TEST(MakeCertificatesTest, WithoutAFolderTheScriptWritesNothingAndPrintsItsUsage) {
  const TempFolder folder;
  const std::string err = folder / "err";
  const int status = Shell(absl::StrCat("mkdir ", folder / "here && cd ", folder / "here && ",
                                        SourceFolder(), "/deploy/make_certificates.sh 2>", err));
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 2);
  EXPECT_THAT(ReadWholeFile(err), StartsWith("usage: deploy/make_certificates.sh DIR"));
  EXPECT_TRUE(std::filesystem::is_empty(folder / "here"));
}

}  // namespace
}  // namespace systole
