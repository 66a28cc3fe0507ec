import { describe, expect, test } from "vitest";
import { parseOverrides } from "../../../src/api/overrides.ts";

describe("overrides", () => {
  test.each<[string, string]>([
    ["{}", "expected array"],
    ["[", "is neither JSON nor YAML"],
    ['[{"patch": []}]', "[0].patch: "],
    ['[{"clusters": ["We$t"], "patch": [{"op": "remove", "path": "/spec/hostname"}]}]', '[0].clusters: "We$t" is not'],
    ['[{"clusterSelector": "a in b", "patch": [{"op": "remove", "path": "/spec/hostname"}]}]', "[0].clusterSelector: "],
    ['[{"patch": [{"op": "put", "path": "/spec/hostname"}]}]', "op: must be add, remove, replace, move, copy or test"],
    ['[{"patch": [{"op": "add", "path": "/spec/hostname"}]}]', "[0].patch[0].value: "],
    ...[
      ["/metadata/labels/a", "is not inside /spec/"],
      ["/spec", "is not inside /spec/"],
      ["", "is not inside /spec/"],
      ["/spec/nodeName", "spec.nodeName is Legation's or the member's to decide"],
      ["/spec/schedulerName", "spec.schedulerName is Legation's"],
      ["/spec/containers", "containers keep their number, order and names"],
      ["/spec/containers/0", "containers keep their number, order and names"],
      ["/spec/containers/-", "containers keep their number, order and names"],
      ["/spec/initContainers/0/name", "containers keep their number, order and names"],
    ].map(([path = "", message = ""]): [string, string] => [
      JSON.stringify([{ patch: [{ op: "remove", path }] }]),
      message,
    ]),
    ['[{"patch": [{"op": "move", "from": "/metadata/name", "path": "/spec/hostname"}]}]', "[0].patch[0].from: "],
  ])("that are malformed are refused with place and remedy: %s", (text, message) => {
    const parsed = parseOverrides(text);
    const problem = "problem" in parsed ? parsed.problem : "none";
    expect(problem).toContain(message);
    expect(problem).toContain("; write e.g. [");
  });
});

describe("overrides with a path to prototypes", () => {
  const paths = [
    "/spec/__proto__/polluted",
    "/spec/containers/0/__proto__/polluted",
    "/spec/a/constructor/prototype/x",
  ];

  test.each(paths)("are refused: %s", (path) => {
    expect(parseOverrides(JSON.stringify([{ patch: [{ op: "add", path, value: "yes" }] }]))).toHaveProperty("problem");
    const move = { op: "copy", from: path, path: "/spec/hostname" };
    expect(parseOverrides(JSON.stringify([{ patch: [move] }]))).toHaveProperty("problem");
  });
});
