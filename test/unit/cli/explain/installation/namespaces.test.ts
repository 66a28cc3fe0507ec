import { describe, expect, test } from "vitest";
import type { Namespace, Stored } from "../../../../../src/api/kubernetes.ts";
import { namespaceFindings } from "../../../../../src/cli/explain/installation/namespaces.ts";
import { stored } from "./given.ts";

describe("namespaces", () => {
  const namespace = (
    name: string,
    labels: Record<string, string>,
    annotations: Record<string, string> = {},
  ): Stored<Namespace> => ({ metadata: { name, ...stored, labels, annotations } });
  const judge = (...all: Stored<Namespace>[]) => namespaceFindings(all, new Set(["west", "east"]));

  test("opted in are counted", () => {
    expect(judge(namespace("shop", { "legation.dev/delegation": "all" }), namespace("x", {}))).toEqual([
      { state: "OK", what: "1 namespace opted in: shop" },
    ]);
    expect(judge()).toMatchObject([{ state: "WARN", remedy: expect.stringContaining("kubectl label namespace NAME") }]);
  });

  test.each([
    [
      "a misspelled label",
      namespace("a", { "legation.dev/delegation": "anotated" }),
      "FAIL",
      "kubectl label --overwrite namespace a legation.dev/delegation=annotated",
    ],
    [
      "an annotation without the label",
      namespace("a", {}, { "legation.dev/clusters": "west" }),
      "WARN",
      expect.stringContaining("kubectl label namespace a legation.dev/delegation=annotated"),
    ],
    [
      "an annotation that does not parse",
      namespace("a", { "legation.dev/delegation": "all" }, { "legation.dev/clustrs": "west" }),
      "WARN",
      "kubectl annotate namespace a legation.dev/clustrs-",
    ],
    [
      "a member that is not there",
      namespace("a", { "legation.dev/delegation": "all" }, { "legation.dev/clusters": "wst" }),
      "WARN",
      "kubectl annotate --overwrite namespace a legation.dev/clusters=NAMES",
    ],
  ])("with %s are found", (_, given, state, remedy) => {
    expect(judge(given)[1]).toMatchObject({ state, remedy });
  });

  test("that name a misspelled member are told the right one", () => {
    const given = namespace("a", { "legation.dev/delegation": "all" }, { "legation.dev/clusters": "wst" });
    expect(judge(given)[1]?.what).toContain("(did you mean west?)");
  });

  test("are judged alone, and without the names of members, where the user may see no others", () => {
    const asking = namespace("a", { "legation.dev/delegation": "all" }, { "legation.dev/clusters": "wst" });
    expect(namespaceFindings([asking, namespace("b", {})], undefined, false)).toMatchObject([
      { state: "OK", what: "namespace a is opted in: all" },
      { state: "INFO", what: "namespace b is not opted in, so none of its pods is delegated" },
      { state: "SKIP", what: "other namespaces: you may not list them" },
    ]);
  });
});
