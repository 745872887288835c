"""gRPC asked by stock clients: python3-grpcio here, @grpc/grpc-js and h2load beside it."""
import os
import pathlib
import re
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

    def __init__(self, test, *options):
        super().__init__(test, "--grpc", "127.0.0.1:0", *options)
        self.grpc = int(re.search(r"^  grpc .*:(\d+)$", self.output(), re.M).group(1))


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

    def raw(self, path, message=b"", timeout=harness.DEADLINE_S, **options):
        return self.channel.unary_unary(path)(message, timeout=timeout, **options)

    def reflect(self, version, **question):
        module = reflections[version]
        call = self.channel.stream_stream(
            REFLECTION.format(version), module.ServerReflectionRequest.SerializeToString,
            module.ServerReflectionResponse.FromString)
        return next(call(iter([module.ServerReflectionRequest(**question)]),
                         timeout=harness.DEADLINE_S))


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
