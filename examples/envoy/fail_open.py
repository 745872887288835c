"""Asks weir over gRPC from a program of your own, as Envoy does, and decides here what happens when
no answer comes: the request passes (fail open), as with Envoy's failure_mode_deny: false.

    protoc -I proto --python_out=. $(cd proto && find envoy -name '*.proto')
    from envoy.service.ratelimit.v3 import rls_pb2
    limits = RateLimits(grpc.insecure_channel("127.0.0.1:8081", options=CHANNEL), rls_pb2)
    if not limits.allows("shop", {"remote_address": "192.0.2.1"}):
        return 429
"""
import grpc

METHOD = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit"
# A server that went is looked for again soon, and then at least once a second.
CHANNEL = (("grpc.initial_reconnect_backoff_ms", 100), ("grpc.max_reconnect_backoff_ms", 1000))


class RateLimits:
    """Thread-safe. `messages` is the module rls_pb2 that protoc makes."""

    def __init__(self, channel, messages, timeout_s=0.02):
        self._messages = messages
        self._timeout_s = timeout_s  # Envoy's default; a limiter must not make requests slow
        self._ask = channel.unary_unary(METHOD, messages.RateLimitRequest.SerializeToString,
                                        messages.RateLimitResponse.FromString)

    def allows(self, domain, entries, on_failure=True):
        """Whether a request with these entries may pass; `on_failure` if nobody knows."""
        request = self._messages.RateLimitRequest(domain=domain)
        descriptor = request.descriptors.add()
        for key, value in entries.items():
            descriptor.entries.add(key=key, value=value)
        try:
            # Not wait_for_ready: without a connection the call fails at once.
            answer = self._ask(request, timeout=self._timeout_s)
        except grpc.RpcError:
            return on_failure
        return answer.overall_code != self._messages.RateLimitResponse.OVER_LIMIT
