import { describe, expect, test } from "vitest";
import { asksForDelegation, parsePlacement, placementExcludes } from "../../../src/api/annotations.ts";

function problemsOf(annotations: Record<string, string>, defaults?: Record<string, string>): string[] {
  const parsed = parsePlacement(annotations, defaults);
  return parsed.ok ? [] : parsed.problems.map(({ message }) => message);
}

describe("what an author writes is read", () => {
  test("every key, with names trimmed and said once", () => {
    const parsed = parsePlacement({
      "legation.dev/delegate": "true",
      "legation.dev/clusters": "west, east,west",
      "legation.dev/cluster-selector": "region in (eu), !spot",
      "legation.dev/api": "member",
      "example.com/other": "not Legation's",
    });
    expect(parsed).toEqual({
      ok: true,
      placement: {
        delegate: true,
        clusters: ["west", "east"],
        selector: [
          { key: "region", operator: "In", values: ["eu"] },
          { key: "spot", operator: "DoesNotExist" },
        ],
        selectorText: "region in (eu), !spot",
        api: "member",
      },
    });
  });

  test("the pod wins over the namespace, key by key", () => {
    const parsed = parsePlacement(
      { "legation.dev/clusters": "west" },
      { "legation.dev/clusters": "east", "legation.dev/cluster-selector": "gpu" },
    );
    expect(parsed).toMatchObject({ placement: { clusters: ["west"], selectorText: "gpu" } });
  });

  test("what Legation wrote itself on a proxy is passed over", () => {
    const internal = ["scheduler-name", "cluster", "delegate-uid", "member-node", "owner", "forwarded"];
    const annotations = Object.fromEntries(internal.map((name) => [`legation.dev/${name}`, "anything"]));
    expect(parsePlacement(annotations)).toEqual({ ok: true, placement: {} });
  });

  test.each([
    [{}, false],
    [{ "legation.dev/delegate": "true" }, true],
    [{ "legation.dev/clusters": "west" }, true],
    [{ "legation.dev/cluster-selector": "" }, true],
    [{ "legation.dev/delegate": "false", "legation.dev/clusters": "west" }, false],
    [{ "legation.dev/api": "host" }, false],
  ])("%j asks for delegation: %j", (annotations, expected) => {
    const parsed = parsePlacement(annotations);
    expect(parsed.ok && asksForDelegation(parsed.placement)).toBe(expected);
  });
});

describe("a malformed value is a problem that names the key, the fault and the remedy", () => {
  test.each([
    ["delegate", "yes", 'annotation legation.dev/delegate: "yes" is neither "true" nor "false"; write one of them'],
    [
      "clusters",
      "",
      'annotation legation.dev/clusters: names no cluster; write names of Clusters with commas between them, e.g. "west,east", or leave the key out for any cluster',
    ],
    [
      "clusters",
      "west,,We$t",
      'annotation legation.dev/clusters: "" is an empty name, "We$t" is not a DNS label (a-z, 0-9 and -, with a letter or digit first and last); write names of Clusters with commas between them, e.g. "west,east"',
    ],
    [
      "clusters",
      "x".repeat(55),
      `annotation legation.dev/clusters: "${"x".repeat(55)}" is longer than 54 characters; write names of Clusters with commas between them, e.g. "west,east"`,
    ],
    [
      "cluster-selector",
      "region in eu",
      'annotation legation.dev/cluster-selector: "region in eu" is not a label selector: expected ( at character 11, found "eu"; write e.g. "region in (eu,us), gpu"',
    ],
    [
      "clustres",
      "west",
      "annotation legation.dev/clustres: is not an annotation that Legation knows; did you mean legation.dev/clusters?",
    ],
    [
      "something",
      "west",
      "annotation legation.dev/something: is not an annotation that Legation knows; write one of legation.dev/delegate, legation.dev/clusters, legation.dev/cluster-selector, legation.dev/api",
    ],
    ["api", "Host", 'annotation legation.dev/api: "Host" is no API server; write "host", "member" or "none"'],
    ["overrides", "[]", "annotation legation.dev/overrides: is not supported by this version of Legation; remove it"],
  ])("legation.dev/%s: %j", (name, value, message) => {
    expect(problemsOf({ [`legation.dev/${name}`]: value })).toEqual([message]);
  });

  test.each(["scheduling-preferences", "group", "group-by", "mode", "failover"])(
    "the key of a feature to come, %s, is not ignored",
    (name) => {
      expect(problemsOf({ [`legation.dev/${name}`]: "x" })[0]).toContain("not supported by this version");
    },
  );

  test("all problems are listed, those of the namespace's defaults too", () => {
    const problems = problemsOf(
      { "legation.dev/delegate": "", "legation.dev/clusters": "-" },
      { "legation.dev/cluster-selector": "(" },
    );
    expect(problems).toHaveLength(3);
  });

  test("a long value is cut in the message", () => {
    const [message = ""] = problemsOf({ "legation.dev/delegate": "x".repeat(1_000_000) });
    expect(message.length).toBeLessThan(300);
  });
});

describe("a member is left out with a reason", () => {
  const member = { name: "west", labels: { region: "eu" } };
  test.each([
    [{}, undefined],
    [{ "legation.dev/clusters": "west,east" }, undefined],
    [{ "legation.dev/clusters": "east" }, "not named by legation.dev/clusters"],
    [{ "legation.dev/cluster-selector": "region=eu" }, undefined],
    [
      { "legation.dev/cluster-selector": "region=us" },
      'its labels do not match legation.dev/cluster-selector "region=us"',
    ],
  ])("%j", (annotations, reason) => {
    const parsed = parsePlacement(annotations);
    expect(parsed.ok && placementExcludes(parsed.placement, member)).toBe(reason);
  });
});
