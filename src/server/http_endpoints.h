// What the server answers at which path. Made for one request.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/byte_buffer.h"
#include "base/ip_address.h"
#include "codec/http/answer.h"
#include "codec/http/request.h"
#include "server/http_context.h"

namespace weir::server {

class HttpEndpoints {
 public:
  HttpEndpoints(HttpContext& context, Deciders& deciders, const HttpContext::Instant& instant,
                const HttpPeer& peer, bool keep_alive, base::ByteBuffer& output);

  void Answer(const codec::http::Request& request);

 private:
  using Request = codec::http::Request;
  using Handler = void (HttpEndpoints::*)(const Request&);

  struct Endpoint {
    std::string_view path;
    std::string_view methods;  // as an Allow header has them
    bool admin;
    Handler handler;
  };
  static const Endpoint kEndpoints[];

  // Decisions.
  void Check(const Request& request);
  void CheckBatch();
  void CheckTogether(const RuleLimiter::Pin& pin, codec::http::AnswerWriter::Batch& batch);
  void AuthOr403(const Request& request);
  void AuthOr429(const Request& request);
  void Auth(const Request& request, codec::http::AnswerMode mode);
  void Usage(const Request& request);
  void Reserve(const Request& request);
  void Settle(const Request& request);
  void Release(const Request& request);

  // For operators.
  void Explain(const Request& request);
  void Metrics(const Request& request);
  void Rules(const Request& request);
  void RuleText(const Request& request);
  void Reload(const Request& request);
  void TopKeys(const Request& request);
  void Reset(const Request& request);
  void Switch(const Request& request);

  // About the server.
  void Healthy(const Request& request);
  void Ready(const Request& request);
  void OpenApi(const Request& request);

  [[nodiscard]] bool MayAdminister(const Request& request) const;
  // What a client sent, with who it is by its certificate, and not by what it says of itself.
  std::span<const Attribute> WithClient(std::span<const Attribute> sent, HttpDesk& desk) const;
  // A question's id is one among those of whoever asks.
  [[nodiscard]] std::string_view IdOf(std::string_view id, HttpDesk& desk) const;
  // What a question asks of the rules, with the desk's memory.
  [[nodiscard]] RuleRequest Asked(const codec::http::CheckQuestion& question, HttpDesk& desk) const;
  // Attributes of a query, and of what a proxy tells of the original request. The count.
  size_t CollectQuery(std::string_view query, size_t count);
  size_t WithQuery(std::string_view query);  // and who it is, first of all
  size_t CollectOriginal(const Request& request, codec::http::AnswerMode mode, size_t count);
  bool AddAttribute(std::string_view name, std::string_view value, size_t& count) noexcept;

  void Decide(const RuleRequest& asked, codec::http::AnswerMode mode);
  // Of a refusal: it is noted, and what is added to its Retry-After. Of anything else: nothing.
  Duration NoteDenial(const RuleReply& reply);
  void Json(std::string_view body, int status = 200);
  void Fail(int status, std::string_view detail, std::string_view allow = {});

  HttpContext& context_;
  const base::Pool<HttpDesk>::Lease lease_;
  HttpDesk& desk_;
  Deciders& deciders_;
  const HttpContext::Instant& instant_;
  const HttpPeer& peer_;
  base::ByteBuffer& output_;
  codec::http::AnswerContext answer_;
};

}  // namespace weir::server
