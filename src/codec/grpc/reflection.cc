#include "codec/grpc/reflection.h"

#include <memory>
#include <set>
#include <string>

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <grpc/reflection/v1/reflection.pb.h>
#include <grpc/reflection/v1alpha/reflection.pb.h>

#include "codec/grpc/message.h"

namespace weir::codec::grpc {

namespace {

using google::protobuf::DescriptorPool;
using google::protobuf::FileDescriptor;

// A file after those that it imports, each once.
void Collect(const FileDescriptor& file, std::set<const FileDescriptor*>& seen,
             ::google::protobuf::RepeatedPtrField<std::string>& into) {
  if (!seen.insert(&file).second) {
    return;
  }
  for (int i = 0; i < file.dependency_count(); ++i) {
    Collect(*file.dependency(i), seen, into);
  }
  google::protobuf::FileDescriptorProto proto;
  file.CopyTo(&proto);
  *into.Add() = proto.SerializeAsString();
}

// The two versions differ in their name alone.
template <class Request, class Response>
class Reflection final : public Method {
 public:
  Reflection(const std::string& version, const MethodTable& methods)
      : Method("/grpc.reflection." + version + ".ServerReflection/ServerReflectionInfo",
               Shape::kBidiStream),
        methods_(methods) {}

  Status OnMessage(Call& call, std::string_view message) override {
    Request request;
    if (Status status = ReadMessage(message, request); !status.ok()) {
      return status;
    }
    Response response;
    response.set_valid_host(request.host());
    *response.mutable_original_request() = request;
    const DescriptorPool& pool = *DescriptorPool::generated_pool();
    switch (request.message_request_case()) {
      case Request::kListServices:
        for (const std::string& service : methods_.Services()) {
          response.mutable_list_services_response()->add_service()->set_name(service);
        }
        break;
      case Request::kFileByFilename:
        Tell(pool.FindFileByName(request.file_by_filename()), request.file_by_filename(), response);
        break;
      case Request::kFileContainingSymbol:
        Tell(pool.FindFileContainingSymbol(request.file_containing_symbol()),
             request.file_containing_symbol(), response);
        break;
      case Request::kFileContainingExtension:
        Tell(nullptr, request.file_containing_extension().containing_type(), response);
        break;
      case Request::kAllExtensionNumbersOfType:
        if (pool.FindMessageTypeByName(request.all_extension_numbers_of_type()) != nullptr) {
          response.mutable_all_extension_numbers_response()->set_base_type_name(
              request.all_extension_numbers_of_type());
        } else {
          Tell(nullptr, request.all_extension_numbers_of_type(), response);
        }
        break;
      case Request::MESSAGE_REQUEST_NOT_SET:
        return {Code::kUnimplemented, "a question that reflection does not know"};
    }
    Answer(call, response);
    return {};
  }

 private:
  static void Tell(const FileDescriptor* file, const std::string& asked, Response& response) {
    if (file == nullptr) {
      response.mutable_error_response()->set_error_code(static_cast<int>(Code::kNotFound));
      response.mutable_error_response()->set_error_message("not found: " + asked);
      return;
    }
    std::set<const FileDescriptor*> seen;
    Collect(*file, seen,
            *response.mutable_file_descriptor_response()->mutable_file_descriptor_proto());
  }

  const MethodTable& methods_;
};

}  // namespace

void AddReflection(MethodTable& methods) {
  namespace v1 = ::grpc::reflection::v1;
  namespace v1alpha = ::grpc::reflection::v1alpha;
  methods.Add(
      std::make_unique<Reflection<v1::ServerReflectionRequest, v1::ServerReflectionResponse>>(
          "v1", methods));
  methods.Add(std::make_unique<
              Reflection<v1alpha::ServerReflectionRequest, v1alpha::ServerReflectionResponse>>(
      "v1alpha", methods));
}

}  // namespace weir::codec::grpc
