#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""manifests.py CRDS...: checks each object in mesh/ against its schema. Unknown fields are faults.

Kubernetes' own kinds are checked against the oldest release that mesh/README.md names and against the one that the
tests run, custom ones against the definitions (YAML) that the arguments name. What a kustomization makes of them is
checked by the API server, in make test-mesh.
"""

import pathlib
import re
import sys

import jsonschema
import kubernetes_validate
import yaml

ROOT = pathlib.Path(__file__).parent.parent
# Patches and lists of resources, which no schema describes.
KUSTOMIZE = "kustomize.config.k8s.io"
# Files that only kustomize reads, such as the policy; they are not applied to the cluster.
LOCAL = "config.kubernetes.io/local-config"


def documents(path):
    """The documents of a YAML file that are not empty."""
    with open(path, encoding="utf-8") as file:
        return [document for document in yaml.safe_load_all(file) if document]


def strict(schema):
    """The schema, changed so that an object must not have other fields, like in the API server."""
    if isinstance(schema, list):
        return [strict(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {name: strict(value) for name, value in schema.items()}
    is_open = schema.get("x-kubernetes-preserve-unknown-fields") or "additionalProperties" in schema
    if schema.get("type") == "object" and isinstance(schema.get("properties"), dict) and not is_open:
        closed["additionalProperties"] = False
    return closed


def custom_schemas(files):
    """The schemas in definitions of custom resources, by apiVersion and kind."""
    schemas = {}
    for definition in (document for file in files for document in documents(file)):
        if definition["kind"] != "CustomResourceDefinition":
            continue
        spec = definition["spec"]
        for version in spec["versions"]:
            schema = strict(version["schema"]["openAPIV3Schema"])
            # Every object has these fields, even if its definition does not list them.
            for field in ("apiVersion", "kind", "metadata"):
                schema["properties"][field] = {}
            schemas[f"{spec['group']}/{version['name']}", spec["names"]["kind"]] = schema
    return schemas


def releases():
    """The releases of Kubernetes for which manifests must be valid."""
    readme = (ROOT / "mesh/README.md").read_text(encoding="utf-8")
    go_mod = (ROOT / "tests/tools/kubernetes/go.mod").read_text(encoding="utf-8")
    oldest = re.search(r"^\| Kubernetes \| (\d+\.\d+)", readme, re.MULTILINE)
    tested = re.search(r"k8s\.io/kubernetes v(\d+\.\d+)", go_mod)
    return [oldest[1], tested[1]]


def faults(manifest, schemas):
    """The faults of an object."""
    schema = schemas.get((manifest.get("apiVersion"), manifest.get("kind")))
    if schema:
        errors = jsonschema.Draft202012Validator(schema).iter_errors(manifest)
        return [f"{error.json_path}: {error.message}" for error in errors]
    found = []
    for release in releases():
        try:
            kubernetes_validate.validate(manifest, release, strict=True)
        except kubernetes_validate.ValidationError as error:
            found.append(f"Kubernetes {release}: {error.message}")
        except kubernetes_validate.SchemaNotFoundError:
            found.append(f"Kubernetes {release} has no {manifest.get('kind')} of {manifest.get('apiVersion')}")
    return found


def manifests():
    """The objects in mesh/, with their files."""
    for path in sorted((ROOT / "mesh").rglob("*.yaml")):
        for document in documents(path):
            annotations = document.get("metadata", {}).get("annotations", {})
            if document.get("apiVersion", "").startswith(KUSTOMIZE) or annotations.get(LOCAL) == "true":
                continue
            if "kind" in document:
                yield path.relative_to(ROOT), document


def main(definitions):
    """Checks all objects, and returns the exit code."""
    schemas = custom_schemas(definitions)
    # Control: a check that accepts these objects would accept any object.
    for wrong in (
        {"apiVersion": "networking.istio.io/v1", "kind": "Gateway", "spec": {"nonsense": True}},
        {"apiVersion": "v1", "kind": "Service", "spec": {"nonsense": True}},
        {"apiVersion": "v1", "kind": "Nonsense"},
    ):
        assert faults(wrong, schemas), f"accepted by mistake: {wrong}"
    count, wrong = 0, 0
    for path, manifest in manifests():
        count += 1
        for fault in faults(manifest, schemas):
            wrong += 1
            name = manifest.get("metadata", {}).get("name")
            print(f"{path}: {manifest['kind']} {name}: {fault}", file=sys.stderr)
    assert count, "no manifests"
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
