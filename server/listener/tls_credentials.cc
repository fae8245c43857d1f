#include "server/listener/tls_credentials.h"

#include <optional>
#include <utility>

#include "core/status/check.h"
#include "grpc/grpc.h"
#include "grpc/grpc_security.h"

namespace systole {
namespace {

// gRPC's name for subject alternative names (GRPC_X509_SAN_PROPERTY_NAME).
constexpr char kAlternativeNames[] = "x509_subject_alternative_name";

grpc_ssl_certificate_config_reload_status Fetch(void* files,
                                                grpc_ssl_server_certificate_config** config) {
  const std::optional<TlsMaterial> material = static_cast<TlsFiles*>(files)->TakeChange();
  if (!material.has_value()) return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
  const grpc_ssl_pem_key_cert_pair pair = {.private_key = material->key.c_str(),
                                           .cert_chain = material->certificate.c_str()};
  // gRPC crashes without any CA. If clients need no certificate, the CA here is never used.
  const std::string& client_ca =
      material->client_ca.empty() ? material->certificate : material->client_ca;
  *config = grpc_ssl_server_certificate_config_create(client_ca.c_str(), &pair, 1);
  return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
}

// gRPC's C++ interface has no server credentials that call a function to get their certificates.
// Its C interface has such credentials.
class FetchingCredentials final : public grpc::ServerCredentials {
 public:
  explicit FetchingCredentials(std::unique_ptr<TlsFiles> files)
      : files_(std::move(files)),
        credentials_(grpc_ssl_server_credentials_create_with_options(
            grpc_ssl_server_credentials_create_options_using_config_fetcher(
                files_->verifies_clients()
                    ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
                    : GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE,
                Fetch, files_.get()))) {}
  ~FetchingCredentials() override { grpc_server_credentials_release(credentials_); }

  void SetAuthMetadataProcessor(const std::shared_ptr<grpc::AuthMetadataProcessor>&) override {
    SYSTOLE_CHECK(false);  // The calls' handlers check credentials.
  }

 private:
  int AddPortToServer(const std::string& address, grpc_server* server) override {
    return grpc_server_add_http2_port(server, address.c_str(), credentials_);
  }

  const std::unique_ptr<TlsFiles> files_;
  grpc_server_credentials* const credentials_;
};

}  // namespace

std::shared_ptr<grpc::ServerCredentials> TlsCredentialsOver(std::unique_ptr<TlsFiles> files) {
  return std::make_shared<FetchingCredentials>(std::move(files));
}

std::vector<std::string> AuthenticatedNames(const grpc::AuthContext& context) {
  std::vector<std::string> names;
  if (!context.IsPeerAuthenticated()) return names;
  for (const grpc::string_ref& name : context.FindPropertyValues(kAlternativeNames)) {
    names.emplace_back(name.data(), name.size());
  }
  return names;
}

}  // namespace systole
