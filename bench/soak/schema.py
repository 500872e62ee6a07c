"""Whether answers are what /openapi.json says: the part of JSON Schema that such files use."""

from __future__ import annotations

import re

KINDS = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None),
         "number": (int, float), "integer": int}
# Words that say nothing about a value, or nothing that is checked here.
SILENT = {"description", "title", "default", "example", "examples", "format", "deprecated",
          "readOnly", "writeOnly", "contentEncoding", "contentMediaType", "discriminator"}


def is_kind(value: object, kind: str) -> bool:
    if kind in ("number", "integer") and isinstance(value, bool):
        return False
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, KINDS[kind])


class Schemas:
    def __init__(self, document: dict):
        self.document = document
        self.paths = [(template, re.compile(re.sub(r"\\\{[^/]*?\\\}", "[^/]+",
                                                   re.escape(template)) + "$"), operations)
                      for template, operations in document.get("paths", {}).items()]
        # A path without parameters goes before one that has some.
        self.paths.sort(key=lambda each: "{" in each[0])

    def resolve(self, schema):
        while isinstance(schema, dict) and "$ref" in schema:
            target = self.document
            for part in schema["$ref"].removeprefix("#/").split("/"):
                target = target[part.replace("~1", "/").replace("~0", "~")]
            schema = target
        return schema

    def template_of(self, path: str) -> str | None:
        return next((template for template, pattern, _ in self.paths if pattern.match(path)), None)

    def answer_faults(self, method: str, path: str, status: int, kind: str, value) -> list[str]:
        """What is wrong with the JSON (or media type) of an answer, as sentences."""
        path = path.split("?")[0]
        operations = next((each for _, pattern, each in self.paths if pattern.match(path)), None)
        operation = (operations or {}).get(("GET" if method == "HEAD" else method).lower())
        if operation is None:
            # Nothing is there, and the answer has to say so.
            return [] if status >= 400 else [f"{method} {path} is not in the file"]
        answers = operation.get("responses", {})
        answer = self.resolve(answers.get(str(status), answers.get(f"{status // 100}XX",
                                                                   answers.get("default"))))
        if answer is None:
            return [f"{method} {path}: status {status} is not in the file"]
        content = answer.get("content", {})
        if not kind:
            return []
        if kind not in content:
            return [f"{method} {path} {status}: type {kind} is not in the file"]
        schema = content[kind].get("schema")
        if kind != "application/json" or schema is None:
            return []
        return [f"{method} {path} {status}: {fault}" for fault in self.faults(schema, value, "$")]

    def component_faults(self, name: str, value) -> list[str]:
        schema = self.document.get("components", {}).get("schemas", {}).get(name)
        return self.faults(schema, value, name) if schema is not None else []

    def faults(self, schema, value, at: str) -> list[str]:
        schema = self.resolve(schema)
        if isinstance(schema, bool):
            return [] if schema else [f"{at} must not be there"]
        unread = {word for word in schema if not word.startswith("x-")} - SILENT - set(RULES)
        if unread:
            raise ValueError(f"openapi.json uses {sorted(unread)}, which this check cannot read")
        return [fault for word, rule in RULES.items() if word in schema
                for fault in rule(self, schema[word], value, at, schema)]


def _kind(_, kinds, value, at, __):
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if not any(is_kind(value, kind) for kind in kinds):
        yield f"{at} is {value!r:.80}, expected {' or '.join(kinds)}"


def _enum(_, allowed, value, at, __):
    if value not in allowed:
        yield f"{at} is {value!r:.80}, expected one of {allowed}"


def _const(_, only, value, at, __):
    if value != only:
        yield f"{at} is {value!r:.80}, expected {only!r}"


def _properties(schemas, properties, value, at, _):
    if isinstance(value, dict):
        for name, schema in properties.items():
            if name in value:
                yield from schemas.faults(schema, value[name], f"{at}.{name}")


def _required(_, names, value, at, __):
    if isinstance(value, dict):
        yield from (f"{at} has no {name}" for name in names if name not in value)


def _additional(schemas, rule, value, at, schema):
    if isinstance(value, dict):
        for name in value.keys() - schema.get("properties", {}).keys():
            yield from schemas.faults(rule, value[name], f"{at}.{name}")


def _items(schemas, schema, value, at, _):
    if isinstance(value, list):
        for index, each in enumerate(value):
            yield from schemas.faults(schema, each, f"{at}[{index}]")


def _any_of(schemas, choices, value, at, _):
    if not any(not schemas.faults(choice, value, at) for choice in choices):
        yield f"{at} fits none of its forms: {value!r:.80}"


def _one_of(schemas, choices, value, at, _):
    fitting = sum(not schemas.faults(choice, value, at) for choice in choices)
    if fitting != 1:
        yield f"{at} fits {fitting} of its forms, expected one: {value!r:.80}"


def _all_of(schemas, parts, value, at, _):
    for part in parts:
        yield from schemas.faults(part, value, at)


def _bound(is_wrong, of=lambda value: value, kinds=(int, float)):
    def rule(_, bound, value, at, __):
        if isinstance(value, kinds) and not isinstance(value, bool) and is_wrong(of(value), bound):
            yield f"{at} is {value!r:.80}, which is outside of {bound}"
    return rule


RULES = {
    "type": _kind, "enum": _enum, "const": _const, "properties": _properties,
    "required": _required, "additionalProperties": _additional, "items": _items,
    "anyOf": _any_of, "oneOf": _one_of, "allOf": _all_of,
    "minimum": _bound(lambda value, bound: value < bound),
    "maximum": _bound(lambda value, bound: value > bound),
    "exclusiveMinimum": _bound(lambda value, bound: value <= bound),
    "exclusiveMaximum": _bound(lambda value, bound: value >= bound),
    "minLength": _bound(lambda length, bound: length < bound, len, str),
    "maxLength": _bound(lambda length, bound: length > bound, len, str),
    "minItems": _bound(lambda length, bound: length < bound, len, list),
    "maxItems": _bound(lambda length, bound: length > bound, len, list),
    "pattern": _bound(lambda text, pattern: not re.search(pattern, text), kinds=str),
}
