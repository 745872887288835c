#!/usr/bin/env python3
"""Every example rule file fits the published schema, and mistakes do not: schema_test.py [root]."""

import json
import sys
from pathlib import Path

import jsonschema
import yaml

MISTAKES = {
    "an unknown key": "rules: [{name: a, per: ip, limt: 1/s}]",
    "a rule without a name": "rules: [{per: ip, limit: 1/s}]",
    "a table without a default": "rules: [{name: a, per: ip, limit: {free: 1/s}}]",
    "a word that is none of the choices": "rules: [{name: a, per: ip, limit: 1/s, apply: later}]",
    "an unknown matcher": "rules: [{name: a, per: ip, limit: 1/s, when: {x: {prefx: y}}}]",
    "an override without a key": "rules: []\noverrides: [{rule: a, limit: 1/s}]",
}


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    schema = json.loads((root / "docs/reference/rules.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    # Dates stay text, as weir reads them.
    loader = type("TextDates", (yaml.SafeLoader,), {})
    loader.yaml_implicit_resolvers = {
        key: [pair for pair in pairs if pair[0] != "tag:yaml.org,2002:timestamp"]
        for key, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()}
    validator = jsonschema.Draft202012Validator(schema)
    failed = 0
    examples = sorted((root / "examples/rules").glob("*.yaml"))
    for path in examples:
        for error in validator.iter_errors(yaml.load(path.read_text(), loader)):
            print(f"{path}: {'/'.join(map(str, error.absolute_path))}: {error.message}")
            failed += 1
    for what, text in MISTAKES.items():
        if validator.is_valid(yaml.load(text, loader)):
            print(f"the schema accepts {what}: {text}")
            failed += 1
    print(f"schema: {len(examples)} examples, {len(MISTAKES)} mistakes, {failed} failed")
    return 1 if failed or not examples else 0


if __name__ == "__main__":
    sys.exit(main())
