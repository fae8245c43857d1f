#include "server/introspection/reflection_service.h"

#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "grpc/reflection/v1/reflection.grpc.pb.h"  // Also has gRPC's handlers.
#include "proto/framing/status_bridge.h"
#include "server/streams/stream_handle.h"

namespace systole {
namespace {

using grpc::reflection::v1::ServerReflectionRequest;
using grpc::reflection::v1::ServerReflectionResponse;

constexpr const char* kMethods[] = {
    "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
};

constexpr GuardedMethod kReflection = {.name = "ServerReflectionInfo",
                                       .permission = "reflection",
                                       .may = &Permissions::MayReflect,
                                       .max_calls = kMaxReflectionCalls};

void SetError(const absl::Status& status, ServerReflectionResponse& response) {
  response.mutable_error_response()->set_error_code(status.raw_code());
  response.mutable_error_response()->set_error_message(std::string(status.message()));
}

void SetFiles(absl::StatusOr<std::vector<std::string>> files, ServerReflectionResponse& response) {
  if (!files.ok()) return SetError(files.status(), response);
  for (std::string& file : *files) {
    response.mutable_file_descriptor_response()->add_file_descriptor_proto(std::move(file));
  }
}

void SetExtensions(const std::string& message, const absl::StatusOr<std::vector<int32_t>>& numbers,
                   ServerReflectionResponse& response) {
  if (!numbers.ok()) return SetError(numbers.status(), response);
  auto& answer = *response.mutable_all_extension_numbers_response();
  answer.set_base_type_name(message);
  for (const int32_t number : *numbers) answer.add_extension_number(number);
}

ServerReflectionResponse AnswerTo(const ServerReflectionRequest& request,
                                  const ServedSchema& schema) {
  ServerReflectionResponse response;
  response.set_valid_host(request.host());
  *response.mutable_original_request() = request;
  switch (request.message_request_case()) {
    case ServerReflectionRequest::kFileByFilename:
      SetFiles(schema.FileNamed(request.file_by_filename()), response);
      break;
    case ServerReflectionRequest::kFileContainingSymbol:
      SetFiles(schema.FileWithSymbol(request.file_containing_symbol()), response);
      break;
    case ServerReflectionRequest::kFileContainingExtension:
      SetFiles(schema.FileWithExtension(request.file_containing_extension().containing_type(),
                                        request.file_containing_extension().extension_number()),
               response);
      break;
    case ServerReflectionRequest::kAllExtensionNumbersOfType:
      SetExtensions(request.all_extension_numbers_of_type(),
                    schema.ExtensionsOf(request.all_extension_numbers_of_type()), response);
      break;
    case ServerReflectionRequest::kListServices:
      for (const std::string& service : schema.services()) {
        response.mutable_list_services_response()->add_service()->set_name(service);
      }
      break;
    case ServerReflectionRequest::MESSAGE_REQUEST_NOT_SET:
      SetError(absl::InvalidArgumentError(
                   "the request has no field that this server knows; want one of file_by_filename, "
                   "file_containing_symbol, file_containing_extension, "
                   "all_extension_numbers_of_type and list_services"),
               response);
      break;
  }
  return response;
}

}  // namespace

// A call: a request, its answer, the next request, and so on. One read or write is pending at a
// time, so no lock is needed. Owned by gRPC: deletes itself when the call is over.
class ReflectionService::Call final : public grpc::ServerBidiReactor<Request, Response> {
 public:
  Call(const ServedSchema& schema, GuardedCalls& calls, std::shared_ptr<StreamHandle> handle)
      : schema_(schema), calls_(calls), handle_(std::move(handle)) {
    StartRead(&request_);
  }

  void OnReadDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::OK);
    if (++requests_ > kMaxReflectionRequests) {
      return Finish(ToGrpcStatus(absl::ResourceExhaustedError(absl::StrCat(
          "more than ", kMaxReflectionRequests, " requests in one call; begin another"))));
    }
    response_ = AnswerTo(request_, schema_);
    handle_->Offered();
    StartWrite(&response_);
  }

  void OnWriteDone(bool ok) override {
    handle_->Taken();
    if (!ok) return Finish(ToGrpcStatus(absl::CancelledError("the client is gone")));
    StartRead(&request_);
  }

  void OnDone() override {
    calls_.Remove(*handle_);
    delete this;
  }

 private:
  const ServedSchema& schema_;
  GuardedCalls& calls_;
  const std::shared_ptr<StreamHandle> handle_;
  int requests_ = 0;
  Request request_;
  Response response_;
};

class ReflectionService::RefusedCall final : public grpc::ServerBidiReactor<Request, Response> {
 public:
  explicit RefusedCall(const absl::Status& status) { Finish(ToGrpcStatus(status)); }
  void OnDone() override { delete this; }
};

ReflectionService::ReflectionService(std::shared_ptr<AccessControl> access, RefusalLog& refusals,
                                     MonotonicClock clock)
    : calls_(kReflection, std::move(access), refusals, std::move(clock)) {
  // Registers the method under both names of the service. Generated code registers methods under
  // one name only.
  for (int i = 0; i < static_cast<int>(std::size(kMethods)); ++i) {
    AddMethod(new grpc::internal::RpcServiceMethod(
        kMethods[i], grpc::internal::RpcMethod::BIDI_STREAMING, nullptr));
    MarkMethodCallback(
        i, new grpc::internal::CallbackBidiHandler<Request, Response>(
               [this](grpc::CallbackServerContext* context) { return Open(*context); }));
  }
}

void ReflectionService::StartDraining() {
  calls_.StartDraining();
  calls_.End();
}

grpc::ServerBidiReactor<ServerReflectionRequest, ServerReflectionResponse>* ReflectionService::Open(
    grpc::CallbackServerContext& context) {
  absl::StatusOr<std::shared_ptr<StreamHandle>> handle = calls_.Admit(context);
  if (!handle.ok()) return new RefusedCall(handle.status());
  return new Call(schema_, calls_, *std::move(handle));
}

}  // namespace systole
