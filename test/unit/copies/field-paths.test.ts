import { describe, expect, test } from "vitest";
import { withoutManagedField, withoutOwnedField, withoutPointer } from "../../../src/copies/field-paths.ts";

const object = {
  data: { "a.properties": "1", a: "2" },
  spec: {
    ports: [
      { port: 80, protocol: "TCP", nodePort: 30080 },
      { port: 80, protocol: "UDP" },
      { name: "b]=,", port: 443 },
    ],
    names: ["x", "y"],
    replicas: 3,
  },
};
const { ports } = object.spec;

describe("withoutPointer", () => {
  test.each([
    ["/spec/replicas", { ...object, spec: { ports, names: ["x", "y"] } }],
    ["/spec/ports/1", { ...object, spec: { ...object.spec, ports: [ports[0], ports[2]] } }],
    ["/data/*", { ...object, data: {} }],
    ["/data/a.properties", { ...object, data: { a: "2" } }],
    [
      "/spec/ports/*/nodePort",
      { ...object, spec: { ...object.spec, ports: [{ port: 80, protocol: "TCP" }, ports[1], ports[2]] } },
    ],
  ])("removes %s", (pointer, expected) => {
    expect(withoutPointer(object, pointer)).toEqual(expected);
  });

  test("removes keys with a slash or a tilde", () => {
    expect(withoutPointer({ labels: { "app/name": "a", "b~c": "d" } }, "/labels/app~1name")).toEqual({
      labels: { "b~c": "d" },
    });
    expect(withoutPointer({ labels: { "app/name": "a", "b~c": "d" } }, "/labels/b~0c")).toEqual({
      labels: { "app/name": "a" },
    });
  });

  test.each(["/spec/none", "/spec/replicas/deeper", "/none/*/x", "/spec/ports/9"])(
    "returns the same object without %s",
    (pointer) => {
      expect(withoutPointer(object, pointer)).toBe(object);
    },
  );
});

describe("withoutManagedField", () => {
  test.each([
    [".spec.replicas", { ...object, spec: { ports, names: ["x", "y"] } }],
    [".data.a.properties", { ...object, data: { a: "2" } }],
    [".data.a", { ...object, data: { "a.properties": "1" } }],
    [
      '.spec.ports[port=80,protocol="TCP"].nodePort',
      { ...object, spec: { ...object.spec, ports: [{ port: 80, protocol: "TCP" }, ports[1], ports[2]] } },
    ],
    ['.spec.ports[name="b]=,"]', { ...object, spec: { ...object.spec, ports: [ports[0], ports[1]] } }],
    ['.spec.names[="y"]', { ...object, spec: { ...object.spec, names: ["x"] } }],
    [".spec.names[0]", { ...object, spec: { ...object.spec, names: ["y"] } }],
  ])("removes %s", (path, expected) => {
    expect(withoutManagedField(object, path)).toEqual(expected);
  });

  test.each([".spec.none", '.spec.ports[port=81,protocol="TCP"]', ".spec.replicas.deeper", "spec", '.spec.names["'])(
    "finds nothing at %s",
    (path) => {
      expect(withoutManagedField(object, path)).toBeUndefined();
    },
  );
});

describe("withoutOwnedField", () => {
  const port = (number: number, protocol: string): string => `k:{"port":${number},"protocol":"${protocol}"}`;
  const fields = {
    "f:data": { ".": {}, "f:a": {}, "f:a.properties": {} },
    "f:spec": {
      "f:replicas": {},
      "f:ports": { [port(80, "TCP")]: { ".": {}, "f:nodePort": {} }, [port(80, "UDP")]: { ".": {} } },
      "f:names": { 'v:"x"': {}, 'v:"y"': {} },
      "f:scale": { "f:min": {} },
      "f:rules": {},
    },
  };
  const spec = fields["f:spec"];
  const without = (removed: keyof typeof spec): object =>
    Object.fromEntries(Object.entries(spec).filter(([key]) => key !== removed));

  test.each<[string, object]>([
    ["/spec/replicas", { ...fields, "f:spec": without("f:replicas") }],
    ["/spec/ports", { ...fields, "f:spec": without("f:ports") }],
    ["/data/*", { ...fields, "f:data": { ".": {} } }],
    ["/data/a.properties", { ...fields, "f:data": { ".": {}, "f:a": {} } }],
    // An empty set would stand for the whole field.
    ["/spec/scale/min", { ...fields, "f:spec": without("f:scale") }],
    [
      "/spec/ports/*/nodePort",
      {
        ...fields,
        "f:spec": { ...spec, "f:ports": { [port(80, "TCP")]: { ".": {} }, [port(80, "UDP")]: { ".": {} } } },
      },
    ],
    [
      "/spec/ports/1",
      { ...fields, "f:spec": { ...spec, "f:ports": { [port(80, "TCP")]: spec["f:ports"][port(80, "TCP")] } } },
    ],
    ["/spec/names/0", { ...fields, "f:spec": { ...spec, "f:names": { 'v:"y"': {} } } }],
    // The API owns the list as one value.
    ["/spec/rules/0/name", fields],
    ["/spec/none", fields],
  ])("gives up %s", (pointer, expected) => {
    expect(withoutOwnedField(fields, pointer, object)).toEqual(expected);
  });
});
