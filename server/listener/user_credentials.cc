#include "server/listener/user_credentials.h"

#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "grpcpp/security/auth_metadata_processor.h"

namespace systole {
namespace {

constexpr char kUserProperty[] = "systole_unix_user";

// Puts the user into the context of every call on a connection with these credentials.
class UserMark final : public grpc::AuthMetadataProcessor {
 public:
  explicit UserMark(uid_t user) : user_(absl::StrCat(user)) {}

  bool IsBlocking() const override { return false; }
  grpc::Status Process(const InputMetadata&, grpc::AuthContext* context, OutputMetadata*,
                       OutputMetadata*) override {
    context->AddProperty(kUserProperty, user_);
    return grpc::Status::OK;
  }

 private:
  const std::string user_;
};

}  // namespace

std::shared_ptr<grpc::ServerCredentials> CredentialsOfUser(uid_t user) {
  std::shared_ptr<grpc::ServerCredentials> credentials =
      grpc::experimental::LocalServerCredentials(UDS);
  credentials->SetAuthMetadataProcessor(std::make_shared<UserMark>(user));
  return credentials;
}

std::optional<uid_t> UserOf(const grpc::AuthContext& context) {
  const std::vector<grpc::string_ref> values = context.FindPropertyValues(kUserProperty);
  uid_t user = 0;
  if (values.empty() ||
      !absl::SimpleAtoi(absl::string_view(values[0].data(), values[0].size()), &user)) {
    return std::nullopt;
  }
  return user;
}

}  // namespace systole
