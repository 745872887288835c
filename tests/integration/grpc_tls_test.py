"""gRPC over TLS, with and without certificates of clients, asked by stock clients: grpcio,
@grpc/grpc-js, grpc++ and `buf curl`, which asks by reflection."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

import grpc

import harness
from grpc_test import (SERVING, GrpcWeir, Stub, question, rls_pb2, run_grpc_cpp, run_grpc_js)
from tls_test import Authority

OK = rls_pb2.RateLimitResponse.OK
SERVICE = "envoy.service.ratelimit.v3.RateLimitService"


class GrpcTls(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        made = cls.made = Authority(cls)
        made.root("ca")
        made.root("other")
        made.leaf("server", "ca")
        made.leaf("ann", "ca", san="URI:spiffe://shop/ann,DNS:ann.test")
        made.leaf("bob", "ca", san="DNS:bob.test,IP:192.0.2.7")
        made.leaf("wild", "ca", san="DNS:*.shop.test")
        made.leaf("carl", "ca", san="", subject="/CN=ann.test")
        made.leaf("dora", "other", san="DNS:ann.test")

    def start(self, scheme, *options):
        self.weir = GrpcWeir(self, "--tls-cert", self.made.path("server.crt"), "--tls-key",
                             self.made.path("server.key"), "--tls-client-ca",
                             self.made.path("ca.crt"), *options, scheme=scheme)
        return self.weir.grpc

    def files(self, certificate=None):
        """As the environment of the other clients."""
        files = {"WEIR_GRPC_CA": self.made.path("ca.crt")}
        if certificate:
            files["WEIR_GRPC_CERT"] = self.made.path(certificate + ".crt")
            files["WEIR_GRPC_KEY"] = self.made.path(certificate + ".key")
        return files

    def stub(self, port, certificate=None, ca="ca"):
        def read(name):
            return pathlib.Path(self.made.path(name)).read_bytes()
        key, chain = ((read(certificate + ".key"), read(certificate + ".crt")) if certificate else
                      (None, None))
        return Stub(self, port, grpc.ssl_channel_credentials(read(ca + ".crt"), key, chain))

    def is_let_in(self, port, certificate):
        try:
            return self.stub(port, certificate).check() == SERVING
        except grpc.RpcError as error:
            self.assertEqual(error.code(), grpc.StatusCode.UNAVAILABLE, error)
            self.assertTrue(self.weir.running())
            return False

    def test_grpcio(self):
        port = self.start("tls:")
        stub = self.stub(port)
        self.assertEqual(stub.check("ratelimit"), SERVING)
        for left in (2, 1, 0):
            answer = stub.ask(question({"user": "ann"}))
            self.assertEqual((answer.overall_code, answer.statuses[0].limit_remaining), (OK, left))
        self.assertEqual(next(stub.watch()).status, SERVING)
        self.assertTrue(stub.reflect("v1", list_services="").list_services_response.service)
        with self.assertRaises(grpc.RpcError):
            self.stub(port, ca="other").check()
        with self.assertRaises(grpc.RpcError):
            Stub(self, port).check()  # without TLS
        self.assertEqual(stub.check(), SERVING)

    def test_grpc_js(self):
        port = self.start("tls:")
        self.assertEqual(len(run_grpc_js(self, port, **self.files())), 5)

    def test_grpc_cpp(self):
        port = self.start("tls:")
        self.assertEqual(len(run_grpc_cpp(self, port, **self.files())), 4)

    def test_clients_with_certificates(self):
        port = self.start("mtls:")
        self.assertTrue(self.is_let_in(port, "ann"))
        self.assertFalse(self.is_let_in(port, None))
        self.assertFalse(self.is_let_in(port, "dora"))
        self.assertEqual(len(run_grpc_js(self, port, **self.files("ann"))), 5)
        self.assertEqual(len(run_grpc_cpp(self, port, **self.files("bob"))), 4)

    def test_only_clients_of_a_name(self):
        for name, let_in in (("ann.test", {"ann"}), ("spiffe://shop/ann", {"ann"}),
                             ("192.0.2.7", {"bob"}), ("front.shop.test", {"wild"}),
                             ("bob.test,grpc=ann.test", {"ann", "bob"}),
                             ("http=ann.test", {"ann", "bob", "wild", "carl"})):
            port = self.start("mtls:", "--tls-client-name", name)
            # A common name is no alternative name; another authority's word counts for nothing.
            for certificate in ("ann", "bob", "wild", "carl", "dora"):
                self.assertEqual(self.is_let_in(port, certificate), certificate in let_in,
                                 (name, certificate))
            self.weir.stop()

    def test_the_variables_of_ratelimit(self):
        ports = [harness.free_port() for _ in range(3)]
        with tempfile.TemporaryDirectory() as root:
            os.mkdir(os.path.join(root, "config"))
            command = [harness.WEIR, "serve", "--memory", "32MiB"]
            self.weir = harness.Process(self, command, env=dict(
                os.environ, HOST="127.0.0.1", PORT=str(ports[0]), DEBUG_PORT=str(ports[1]),
                GRPC_HOST="127.0.0.1", GRPC_PORT=str(ports[2]), RUNTIME_ROOT=root,
                GRPC_SERVER_USE_TLS="true", GRPC_SERVER_TLS_CERT=self.made.path("server.crt"),
                GRPC_SERVER_TLS_KEY=self.made.path("server.key"),
                GRPC_CLIENT_TLS_CACERT=self.made.path("ca.crt"), GRPC_CLIENT_TLS_SAN="ann.test"))
            harness.wait_for("an answer", lambda: harness.answers(ports[2]))
            for certificate in ("ann", "bob", "carl", None):
                self.assertEqual(self.is_let_in(ports[2], certificate), certificate == "ann",
                                 certificate)

    def buf(self, port, method, message, *options, scheme="http"):
        """What `buf curl` answers, by reflection alone."""
        if scheme == "http":
            options = ("--http2-prior-knowledge", *options)
        with tempfile.TemporaryDirectory() as home:
            return subprocess.run(
                [os.path.join(os.environ["WEIR_CLIENTS"], "node_modules/.bin/buf"), "curl",
                 "--protocol", "grpc", *options, *(("-d", json.dumps(message)) if method else ()),
                 f"{scheme}://localhost:{port}/{method}".rstrip("/")],
                capture_output=True, text=True, timeout=120, cwd=home,
                env=dict(os.environ, HOME=home))

    def test_buf_curl(self):
        asked = {"domain": "shop", "descriptors": [{"entries": [{"key": "user", "value": "buf"}]}]}
        weir = GrpcWeir(self)
        listed = self.buf(weir.grpc, "", None, "--list-methods")
        self.assertIn(SERVICE + "/ShouldRateLimit", listed.stdout.splitlines(), listed.stderr)
        for version in ("grpc-v1", "grpc-v1alpha"):
            done = self.buf(weir.grpc, SERVICE + "/ShouldRateLimit", asked, "--reflect-protocol",
                            version)
            self.assertEqual(done.returncode, 0, done.stderr)
            answer = json.loads(done.stdout)
            self.assertEqual(answer["overallCode"], "OK")
            self.assertEqual(answer["statuses"][0]["currentLimit"],
                             {"name": "by-user", "requestsPerUnit": 3, "unit": "HOUR"})
        wrong = self.buf(weir.grpc, SERVICE + "/ShouldRateLimit", {})
        self.assertIn("rate limit domain must not be empty", wrong.stderr)
        port = self.start("mtls:")
        done = self.buf(port, "grpc.health.v1.Health/Check", {"service": "ratelimit"}, "--cacert",
                        self.made.path("ca.crt"), "--cert", self.made.path("ann.crt"), "--key",
                        self.made.path("ann.key"), scheme="https")
        self.assertEqual(json.loads(done.stdout or "{}"), {"status": "SERVING"}, done.stderr)


if __name__ == "__main__":
    harness.main()
