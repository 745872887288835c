"""gRPC asked by stock clients: python3-grpcio here, @grpc/grpc-js and h2load beside it."""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import unittest

import grpc

import harness

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEALTH = "/grpc.health.v1.Health/"
SHOULD_RATE_LIMIT = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit"
DESCRIPTORS = """
domain: shop
descriptors:
  - key: user
    rate_limit: {unit: hour, requests_per_unit: 3, name: by-user}
  - key: plan
    value: free
    descriptors:
      - key: path
        rate_limit: {unit: day, requests_per_unit: 100}
"""
REFLECTION = "/grpc.reflection.{}.ServerReflection/ServerReflectionInfo"


def load_messages():
    """The messages of proto/, made by protoc for Python."""
    folder = tempfile.mkdtemp(prefix="weir-proto")
    protos = sorted(str(path.relative_to(ROOT / "proto"))
                    for path in (ROOT / "proto").rglob("*.proto"))
    subprocess.run(["protoc", "-I", str(ROOT / "proto"), "--python_out", folder, *protos],
                   check=True)
    # The package named grpc is the client's; ours are found below another name.
    os.rename(os.path.join(folder, "grpc"), os.path.join(folder, "wire"))
    sys.path.insert(0, folder)
    from wire.health.v1 import health_pb2
    from wire.reflection.v1 import reflection_pb2
    from wire.reflection.v1alpha import reflection_pb2 as reflection_alpha_pb2
    from envoy.service.ratelimit.v3 import rls_pb2
    return health_pb2, {"v1": reflection_pb2, "v1alpha": reflection_alpha_pb2}, rls_pb2


health_pb2, reflections, rls_pb2 = load_messages()
SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


class GrpcWeir(harness.Weir):
    """weir serve with a gRPC listener; `grpc` is its port."""

    def __init__(self, test, *options, descriptors=DESCRIPTORS, scheme=""):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="weir-descriptors"))
        test.addCleanup(shutil.rmtree, self.folder)
        self.write_descriptors(descriptors)
        super().__init__(test, "--grpc", scheme + "127.0.0.1:0", "--descriptors", str(self.folder),
                         *options)
        self.grpc = int(re.search(r"^  grpc .*:(\d+)$", self.output(), re.M).group(1))

    def write_descriptors(self, text):
        temporary = self.folder / "shop.yaml.new"
        temporary.write_text(text)
        temporary.rename(self.folder / "shop.yaml")


def question(*descriptors, domain="shop", hits=0):
    """A request; each descriptor is a dict of entries."""
    request = rls_pb2.RateLimitRequest(domain=domain, hits_addend=hits)
    for entries in descriptors:
        descriptor = request.descriptors.add()
        for key, value in entries.items():
            descriptor.entries.add(key=key, value=value)
    return request


class Stub:
    def __init__(self, test, port, credentials=None, options=()):
        target = f"localhost:{port}"
        self.channel = (grpc.secure_channel(target, credentials, options) if credentials else
                        grpc.insecure_channel(target, options))
        test.addCleanup(self.channel.close)

    def check(self, service="", **options):
        call = self.channel.unary_unary(
            HEALTH + "Check", health_pb2.HealthCheckRequest.SerializeToString,
            health_pb2.HealthCheckResponse.FromString)
        return call(health_pb2.HealthCheckRequest(service=service),
                    timeout=harness.DEADLINE_S, **options).status

    def watch(self, service="", **options):
        call = self.channel.unary_stream(
            HEALTH + "Watch", health_pb2.HealthCheckRequest.SerializeToString,
            health_pb2.HealthCheckResponse.FromString)
        return call(health_pb2.HealthCheckRequest(service=service), **options)

    def ask(self, request, timeout=harness.DEADLINE_S):
        return self.channel.unary_unary(
            SHOULD_RATE_LIMIT, rls_pb2.RateLimitRequest.SerializeToString,
            rls_pb2.RateLimitResponse.FromString)(request, timeout=timeout)

    def raw(self, path, message=b"", timeout=harness.DEADLINE_S, **options):
        return self.channel.unary_unary(path)(message, timeout=timeout, **options)

    def reflect(self, version, **question):
        module = reflections[version]
        call = self.channel.stream_stream(
            REFLECTION.format(version), module.ServerReflectionRequest.SerializeToString,
            module.ServerReflectionResponse.FromString)
        return next(call(iter([module.ServerReflectionRequest(**question)]),
                         timeout=harness.DEADLINE_S))


def run_client(test, port, *command, **environment):
    """The lines that a program prints, a line for each part that went well."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=120,
                          env=dict(os.environ, WEIR_GRPC_PORT=str(port),
                                   ASAN_OPTIONS="detect_leaks=0",  # those of its library
                                   **environment))
    test.assertEqual(done.returncode, 0, done.stdout + done.stderr)
    return done.stdout.splitlines()


def run_grpc_js(test, port, **environment):
    script = os.path.join(os.environ["WEIR_CLIENTS"], "grpc.mjs")
    return run_client(test, port, "node", script, **environment)


def run_grpc_cpp(test, port, **environment):
    return run_client(test, port, os.environ["WEIR_GRPC_CLIENT"], str(port), **environment)


class Grpc(unittest.TestCase):
    def start(self, *options):
        self.weir = GrpcWeir(self, *options)
        return Stub(self, self.weir.grpc)

    def assert_fails(self, code, call):
        with self.assertRaises(grpc.RpcError) as failed:
            call()
        self.assertEqual(failed.exception.code(), code, failed.exception)
        return failed.exception.details()

    def test_health(self):
        stub = self.start()
        self.assertEqual(stub.check(), SERVING)
        self.assertEqual(stub.check("ratelimit"), SERVING)
        self.assertIn("nobody", self.assert_fails(grpc.StatusCode.NOT_FOUND,
                                                  lambda: stub.check("nobody")))

    def test_should_rate_limit(self):
        stub = self.start()
        wire = rls_pb2.RateLimitResponse
        for left in (2, 1, 0):
            answer = stub.ask(question({"user": "ann"}))
            self.assertEqual(answer.overall_code, wire.OK)
            self.assertEqual(answer.statuses[0].limit_remaining, left)
        answer = stub.ask(question({"user": "ann"}, {"plan": "free", "path": "/"}, {"no": "limit"}))
        self.assertEqual(answer.overall_code, wire.OVER_LIMIT)
        over, counted, free = answer.statuses
        self.assertEqual((over.code, over.limit_remaining), (wire.OVER_LIMIT, 0))
        self.assertEqual((over.current_limit.requests_per_unit, over.current_limit.unit,
                          over.current_limit.name), (3, wire.RateLimit.HOUR, "by-user"))
        self.assertTrue(0 < over.duration_until_reset.seconds <= 3600)
        self.assertEqual((counted.code, counted.limit_remaining), (wire.OK, 99))
        self.assertEqual(free, wire.DescriptorStatus(code=wire.OK))
        # A limit that the request brings along, and a peek.
        request = question({"user": "bob"})
        request.descriptors[0].limit.requests_per_unit = 7
        request.descriptors[0].limit.unit = 2
        self.assertEqual(stub.ask(request).statuses[0].limit_remaining, 6)
        request.descriptors[0].hits_addend.value = 0
        self.assertEqual(stub.ask(request).statuses[0].limit_remaining, 6)

    def test_wrong_questions_fail_as_the_original_does(self):
        stub = self.start()
        for request, text in ((question({"user": "ann"}, domain=""), "domain must not be empty"),
                              (question(), "descriptor list must not be empty")):
            self.assertIn(text, self.assert_fails(grpc.StatusCode.UNKNOWN,
                                                  lambda asked=request: stub.ask(asked)))
        weir = harness.Weir(self, "--grpc-on-http")
        self.assertIn("no rate limit configuration loaded", self.assert_fails(
            grpc.StatusCode.UNKNOWN,
            lambda: Stub(self, weir.http).ask(question({"user": "ann"}))))

    def test_descriptors_change_under_way_and_bad_ones_change_nothing(self):
        stub = self.start()

        def limit():
            status = stub.ask(question({"user": "eve"}, hits=1)).statuses[0]
            return status.current_limit.requests_per_unit
        self.assertEqual(limit(), 3)
        self.weir.write_descriptors(DESCRIPTORS.replace("unit: 3", "unit: 5"))
        harness.wait_for("the change", lambda: limit() == 5)
        self.weir.write_descriptors("domain: shop\ndescriptors: [{key: ''}]\n")
        harness.wait_for("the refusal", lambda: "descriptors not taken" in self.weir.output())
        self.assertEqual(limit(), 5)

    def test_deadlines_and_cancellations_leave_the_connection_well(self):
        """Calls that end early by the hundred, as an Envoy with a short timeout makes them."""
        stub = self.start()
        request = question({"no": "limit"})
        call = stub.channel.unary_unary(
            SHOULD_RATE_LIMIT, rls_pb2.RateLimitRequest.SerializeToString,
            rls_pb2.RateLimitResponse.FromString)
        futures = [call.future(request, timeout=60 if i % 2 else 0.0005) for i in range(400)]
        for future in futures[::5]:
            future.cancel()
        ends = {(future.code(), future.details()) for future in futures[1::2]
                if not future.cancelled()}
        self.assertEqual({code for code, _ in ends}, {grpc.StatusCode.OK}, ends)
        self.assertEqual(stub.ask(request).overall_code, rls_pb2.RateLimitResponse.OK)

    def test_watch_tells_that_the_server_goes(self):
        stub = self.start("--drain-seconds", "5")
        updates = stub.watch("ratelimit")
        self.assertEqual(next(updates).status, SERVING)
        self.weir.signal(signal.SIGTERM)
        self.assertEqual(next(updates).status, NOT_SERVING)
        self.assertEqual(self.weir.wait(), 0)

    def test_watch_ends_with_its_deadline_and_by_cancellation(self):
        stub = self.start()
        updates = stub.watch(timeout=0.5)
        self.assertEqual(next(updates).status, SERVING)
        self.assert_fails(grpc.StatusCode.DEADLINE_EXCEEDED, lambda: next(updates))
        updates = stub.watch()
        self.assertEqual(next(updates).status, SERVING)
        updates.cancel()
        self.assert_fails(grpc.StatusCode.CANCELLED, lambda: next(updates))
        self.assertEqual(stub.check(), SERVING)

    def test_reflection(self):
        stub = self.start()
        for version in ("v1", "v1alpha"):
            services = stub.reflect(version, list_services="").list_services_response.service
            self.assertIn("grpc.health.v1.Health", [one.name for one in services])
            files = stub.reflect(
                version, file_containing_symbol="envoy.service.ratelimit.v3.RateLimitService"
            ).file_descriptor_response.file_descriptor_proto
            self.assertGreater(len(files), 5)
            self.assertEqual(stub.reflect(version, file_by_filename="no.proto")
                             .error_response.error_code, 5)

    def test_errors(self):
        stub = self.start()
        details = self.assert_fails(grpc.StatusCode.UNIMPLEMENTED,
                                    lambda: stub.raw("/no.Such/Method"))
        self.assertIn("/no.Such/Method", details)
        self.assert_fails(grpc.StatusCode.INTERNAL,
                          lambda: stub.raw(HEALTH + "Check", b"\xff\xff"))
        self.assert_fails(grpc.StatusCode.RESOURCE_EXHAUSTED,
                          lambda: stub.raw(HEALTH + "Check", bytes(2 << 20)))
        self.assert_fails(grpc.StatusCode.UNIMPLEMENTED, lambda: stub.raw(
            HEALTH + "Check", bytes(1000), compression=grpc.Compression.Gzip))
        self.assertEqual(stub.check(), SERVING)
        self.assertGreaterEqual(
            self.weir.metric('weir_request_errors_total{protocol="grpc"}'), 4)
        self.assertEqual(self.weir.metric('weir_protocol_errors_total{protocol="grpc"}'), 0)

    def test_one_port_for_http_and_grpc(self):
        self.weir = harness.Weir(self, "--grpc-on-http")
        self.assertEqual(Stub(self, self.weir.http).check(), SERVING)
        self.assertEqual(harness.get(self.weir.http, "/healthz").status, 200)

    def test_no_call_fails_while_connections_grow_old(self):
        """Each connection is told to go after a second; the client opens others, losing nothing."""
        stub = self.start("--grpc-max-age-seconds", "1")
        connections = 0
        for asked in range(1, 1000):
            for _ in range(50):
                self.assertEqual(stub.check(), SERVING)
            # Each look at the metrics is a connection as well.
            connections = self.weir.metric("weir_connections_accepted_total") - asked
            if connections >= 3:
                return
        self.fail(f"{connections} connections after 50,000 calls")

    def test_a_drain_loses_no_call(self):
        stub = self.start("--drain-seconds", "5")
        failures = []
        done = threading.Event()
        count = [0]

        def ask():
            while not done.is_set():
                try:
                    stub.check()
                    count[0] += 1
                except grpc.RpcError as error:
                    # Refused before it began is no loss: the client may ask elsewhere.
                    if error.code() != grpc.StatusCode.UNAVAILABLE:
                        failures.append(error)
                    return
        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        harness.wait_for("calls", lambda: count[0] > 200)
        self.weir.signal(signal.SIGTERM)
        self.assertEqual(self.weir.wait(), 0)
        done.set()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])

    def test_grpc_js(self):
        self.start()
        self.assertEqual(len(run_grpc_js(self, self.weir.grpc)), 5)

    def test_grpc_cpp(self):
        self.start()
        self.assertEqual(len(run_grpc_cpp(self, self.weir.grpc)), 4)

    def test_h2load(self):
        self.start()
        with tempfile.NamedTemporaryFile() as body:
            body.write(b"\0\0\0\0\0")
            body.flush()
            done = subprocess.run(
                [harness.program("h2load"), "-n", "20000", "-c", "4", "-m", "100", "-d", body.name,
                 "-H", "content-type: application/grpc", "-H", "te: trailers",
                 f"http://127.0.0.1:{self.weir.grpc}{HEALTH}Check"],
                capture_output=True, text=True, timeout=120)
        self.assertIn("20000 succeeded, 0 failed, 0 errored", done.stdout)
        self.assertEqual(self.weir.metric('weir_requests_total{protocol="grpc"}'), 20000)
        self.assertEqual(self.weir.metric('weir_request_errors_total{protocol="grpc"}'), 0)


if __name__ == "__main__":
    harness.main()
