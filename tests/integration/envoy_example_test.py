"""The example Envoy configuration against Envoy's own message definitions and their validation
rules (from @grpc/grpc-js-xds, which brings them along), and our proto files against the same."""
import copy
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

import yaml
from google.protobuf import (descriptor_pb2, descriptor_pool, json_format, message_factory)

import harness

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples/envoy/envoy.yaml"
LIMITS = ROOT / "examples/envoy/ratelimit.yaml"
THEIRS = pathlib.Path(os.environ["WEIR_CLIENTS"]) / "node_modules/@grpc/grpc-js-xds/deps"
# What the example is made of; all else comes with it.
USED = ("envoy/config/bootstrap/v3/bootstrap.proto",
        "envoy/extensions/filters/http/ratelimit/v3/rate_limit.proto",
        "envoy/extensions/filters/http/router/v3/router.proto",
        "envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager.proto",
        "envoy/extensions/upstreams/http/v3/http_protocol_options.proto",
        "envoy/service/ratelimit/v3/rls.proto")
# Came to Envoy after the definitions that the package has.
NEWER = {"envoy.extensions.common.ratelimit.v3.RateLimitDescriptor.hits_addend", "WEEK"}


class Schema:
    """Message types made from proto files, without generated code."""

    def __init__(self, *options):
        with tempfile.TemporaryDirectory() as folder:
            # The rules' own definition there is older than its use: one option is not known to it.
            rules = (THEIRS / "protoc-gen-validate/validate/validate.proto").read_text()
            rules = re.sub(r"(message (?!FieldRules)\w+Rules \{)",
                           r"\1 optional bool ignore_empty = 1000;", rules)
            patched = pathlib.Path(folder) / "validate/validate.proto"
            patched.parent.mkdir()
            patched.write_text(rules)
            made = pathlib.Path(folder) / "all.pb"
            done = subprocess.run(
                [harness.program("protoc"), "-I", folder, *options, "--include_imports",
                 f"--descriptor_set_out={made}"], capture_output=True, text=True)
            if done.returncode != 0:
                raise AssertionError(done.stderr)
            files = descriptor_pb2.FileDescriptorSet.FromString(made.read_bytes())
        self.pool = descriptor_pool.DescriptorPool()
        for file in files.file:
            self.pool.Add(file)
        self.files = [file.name for file in files.file]
        self._factory = message_factory.MessageFactory(self.pool)

    def type(self, name):
        return self._factory.GetPrototype(self.pool.FindMessageTypeByName(name))

    def read(self, name, tree):
        """As Envoy reads YAML: by proto3 JSON, unknown names refused."""
        return json_format.ParseDict(tree, self.type(name)(), descriptor_pool=self.pool)

    def option(self, descriptor, kind, extension):
        """An option that only this pool knows; None: not given."""
        options = self.type("google.protobuf." + kind).FromString(
            descriptor.GetOptions().SerializeToString())
        found = self.pool.FindExtensionByName(extension)
        return options.Extensions[found] if options.HasExtension(found) else None


def theirs():
    return Schema("-I", str(THEIRS / "envoy-api"), "-I", str(THEIRS / "xds"), "-I",
                  str(THEIRS / "googleapis"), *USED)


def ours():
    files = sorted(str(path.relative_to(ROOT / "proto"))
                   for path in (ROOT / "proto/envoy").rglob("*.proto"))
    return Schema("-I", str(ROOT / "proto"), *files)


class Broken(Exception):
    pass


class Rules:
    """protoc-gen-validate's rules, as far as the example meets them; one that is met and not
    understood is an error."""

    def __init__(self, schema):
        self.schema = schema
        self.checked = 0

    def check(self, message, path=""):
        if message.DESCRIPTOR.full_name == "google.protobuf.Any":
            within = self.schema.type(message.type_url.rpartition("/")[2])()
            message.Unpack(within)
            self.check(within, path)
            return
        for oneof in message.DESCRIPTOR.oneofs:
            if (self.schema.option(oneof, "OneofOptions", "validate.required") and
                    message.WhichOneof(oneof.name) is None):
                raise Broken(f"{path}: one of {oneof.name} is needed")
        for field in message.DESCRIPTOR.fields:
            self.check_field(message, field, f"{path}.{field.name}")

    def check_field(self, message, field, path):
        repeated = field.label == field.LABEL_REPEATED
        value = getattr(message, field.name)
        present = len(value) > 0 if repeated else (
            message.HasField(field.name) if field.has_presence else True)
        chosen = field.containing_oneof is None or present
        rules = self.schema.option(field, "FieldOptions", "validate.rules")
        if rules is not None and chosen:
            for kind, rule in rules.ListFields():
                self.check_rule(kind.name, rule, value, present, path)
        if field.message_type is None or not present:
            return
        if field.message_type.GetOptions().map_entry:
            for key in value:
                if hasattr(value[key], "DESCRIPTOR"):
                    self.check(value[key], f"{path}[{key}]")
        elif repeated:
            for index, one in enumerate(value):
                self.check(one, f"{path}[{index}]")
        else:
            self.check(value, path)

    def check_rule(self, kind, rule, value, present, path):
        given = {field.name: want for field, want in rule.ListFields()}
        if kind in ("message", "any", "duration", "timestamp") and given.pop("required", False):
            self.expect(present, f"{path} is needed")
        given.pop("skip", None)
        if given.pop("ignore_empty", False) and not value:
            return
        if kind in ("message", "any") or not present:
            given.pop("in", None)
            self.expect(present or kind != "repeated" or not given.get("min_items"),
                        f"{path}: too few")
            return
        for name, want in given.items():
            self.expect(self.holds(kind, name, want, value, path), f"{path}: {name} {want}")

    def holds(self, kind, name, want, value, path):
        self.checked += 1
        if kind == "duration" and name in ("gt", "gte", "lt", "lte"):
            value, want = value.ToNanoseconds(), want.ToNanoseconds()
        if name in ("min_len", "max_len", "min_bytes", "max_bytes", "min_items", "max_items"):
            return len(value) >= want if name.startswith("min") else len(value) <= want
        if name in ("gt", "gte", "lt", "lte"):
            return {"gt": value > want, "gte": value >= want, "lt": value < want,
                    "lte": value <= want}[name]
        if name in ("defined_only", "well_known_regex", "strict", "items", "keys", "values",
                    "unique"):
            return True  # what json_format has seen to, or what is about text of no harm
        if name in ("in", "not_in"):
            return (value in want) == (name == "in")
        if name == "const":
            return value == want
        if name in ("prefix", "suffix"):
            return value.startswith(want) if name == "prefix" else value.endswith(want)
        raise AssertionError(f"{path}: the rule {kind}.{name} is not understood by this test")

    def expect(self, holds, what):
        if not holds:
            raise Broken(what)


class EnvoyExample(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.schema = theirs()
        cls.tree = yaml.safe_load(EXAMPLE.read_text())
        cls.limits = yaml.safe_load(LIMITS.read_text())

    def validate(self, tree):
        message = self.schema.read("envoy.config.bootstrap.v3.Bootstrap", tree)
        rules = Rules(self.schema)
        rules.check(message, "bootstrap")
        return rules

    def test_envoy_takes_it(self):
        self.assertGreater(self.validate(self.tree).checked, 10)

    def parts(self, tree):
        """The listener, its connection manager, the rate limit filter and the clusters."""
        listener = tree["static_resources"]["listeners"][0]
        manager = listener["filter_chains"][0]["filters"][0]["typed_config"]
        return listener, manager, manager["http_filters"][0]["typed_config"], (
            tree["static_resources"]["clusters"])

    def test_what_envoy_would_refuse_is_refused_here(self):
        def unknown_name(listener, manager, limit, clusters):
            limit["failure_mode_denied"] = False

        def wrong_type(listener, manager, limit, clusters):
            limit["timeout"] = "soon"

        def no_domain(listener, manager, limit, clusters):
            limit["domain"] = ""

        def no_service(listener, manager, limit, clusters):
            del limit["rate_limit_service"]

        def a_port_that_is_none(listener, manager, limit, clusters):
            listener["address"]["socket_address"]["port_value"] = 70000

        def no_name(listener, manager, limit, clusters):
            clusters[0]["name"] = ""

        def no_action(listener, manager, limit, clusters):
            manager["route_config"]["virtual_hosts"][0]["rate_limits"][0]["actions"] = []

        def no_such_version(listener, manager, limit, clusters):
            limit["enable_x_ratelimit_headers"] = "DRAFT_VERSION_99"

        def no_such_type(listener, manager, limit, clusters):
            limit["@type"] = "type.googleapis.com/envoy.extensions.filters.http.ratelimit.v9.Rate"

        for spoil in (unknown_name, wrong_type, no_domain, no_service, a_port_that_is_none, no_name,
                      no_action, no_such_version, no_such_type):
            with self.subTest(spoil.__name__):
                tree = copy.deepcopy(self.tree)
                spoil(*self.parts(tree))
                with self.assertRaises((Broken, json_format.ParseError, TypeError)):
                    self.validate(tree)

    def test_its_parts_fit_one_another_and_the_limits(self):
        _, manager, limit, clusters = self.parts(self.tree)
        names = [cluster["name"] for cluster in clusters]
        self.assertIn(limit["rate_limit_service"]["grpc_service"]["envoy_grpc"]["cluster_name"],
                      names)
        for host in manager["route_config"]["virtual_hosts"]:
            for route in host["routes"]:
                self.assertIn(route["route"]["cluster"], names)
        self.assertEqual(limit["domain"], self.limits["domain"])
        self.assertIs(limit["failure_mode_deny"], False)

        def keys(action):
            return action.get("request_headers", {}).get("descriptor_key", "remote_address")

        def leads(descriptors, entries):
            return not entries or any(one["key"] == entries[0] and
                                      leads(one.get("descriptors", []), entries[1:])
                                      for one in descriptors)
        for limits in manager["route_config"]["virtual_hosts"][0]["rate_limits"]:
            entries = [keys(action) for action in limits["actions"]]
            self.assertTrue(leads(self.limits["descriptors"], entries), entries)

    def test_weir_takes_the_limits(self):
        weir = harness.Weir(self, "--grpc", "127.0.0.1:0", "--descriptors", str(LIMITS))
        self.assertTrue(weir.running())


class OwnProtos(unittest.TestCase):
    def test_every_field_of_ours_is_theirs(self):
        """Names, numbers and types; ours may lack fields that we do not use."""
        mine, original = ours(), theirs()
        fields = 0

        def compare(message):
            nonlocal fields
            other = original.pool.FindMessageTypeByName(message.full_name)
            for field in message.fields:
                if field.full_name in NEWER:
                    self.assertNotIn(field.number, other.fields_by_number)
                    continue
                twin = other.fields_by_name[field.name]
                self.assertEqual((field.number, field.type, field.label),
                                 (twin.number, twin.type, twin.label), field.full_name)
                if field.enum_type is not None:
                    for value in field.enum_type.values:
                        known = twin.enum_type.values_by_name.get(value.name)
                        if known is None and value.name in NEWER:
                            self.assertNotIn(value.number, twin.enum_type.values_by_number)
                        else:
                            self.assertEqual(known and known.number, value.number, value.name)
                if field.message_type is not None:
                    self.assertEqual(field.message_type.full_name, twin.message_type.full_name)
                fields += 1
            for nested in message.nested_types:
                compare(nested)
        for name in mine.files:
            if name.startswith("envoy/"):
                file = mine.pool.FindFileByName(name)
                for message in file.message_types_by_name.values():
                    compare(message)
                for service in file.services_by_name.values():
                    other = original.pool.FindServiceByName(service.full_name)
                    for method in service.methods:
                        twin = other.methods_by_name[method.name]
                        self.assertEqual(method.input_type.full_name, twin.input_type.full_name)
                        self.assertEqual(method.output_type.full_name, twin.output_type.full_name)
        self.assertGreater(fields, 25)


if __name__ == "__main__":
    harness.main()
