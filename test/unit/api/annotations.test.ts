import { describe, expect, test } from "vitest";
import { asksForDelegation, parsePlacement, placementExcludes } from "../../../src/api/annotations.ts";
import { processorMs } from "../../support/harness/processor-time.ts";

function problemsOf(annotations: Record<string, string>, defaults?: Record<string, string>): string[] {
  const parsed = parsePlacement(annotations, defaults);
  return parsed.ok ? [] : parsed.problems.map(({ message }) => message);
}

describe("parsePlacement", () => {
  test("reads every key, and trims and deduplicates names", () => {
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
        selectorText: 'legation.dev/cluster-selector "region in (eu), !spot"',
        api: "member",
      },
    });
  });

  test("reads affinity, spread and groups", () => {
    const parsed = parsePlacement({
      "legation.dev/cluster-affinity":
        "preferredDuringSchedulingIgnoredDuringExecution:\n- weight: 5\n  preference:\n    matchFields: [{key: metadata.name, operator: In, values: [west]}]\n",
      "legation.dev/cluster-spread": '[{"topologyKey":"region","labelSelector":{"matchLabels":{"app":"web"}}}]',
      "legation.dev/group": "flow-1",
      "legation.dev/group-by": "label:app.kubernetes.io/name",
    });
    const preference = { matchFields: [{ key: "metadata.name", operator: "In", values: ["west"] }] };
    expect(parsed).toEqual({
      ok: true,
      placement: {
        affinity: { preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 5, preference }] },
        spread: [{ topologyKey: "region", labelSelector: { matchLabels: { app: "web" } } }],
        group: "flow-1",
        groupBy: { by: "label", key: "app.kubernetes.io/name" },
      },
    });
  });

  test("prefers the pod's value over the namespace's, key by key", () => {
    const parsed = parsePlacement(
      { "legation.dev/clusters": "west" },
      { "legation.dev/clusters": "east", "legation.dev/cluster-selector": "gpu" },
    );
    expect(parsed).toMatchObject({
      placement: { clusters: ["west"], selectorText: 'legation.dev/cluster-selector "gpu"' },
    });
  });

  test("ignores Legation's own annotations on a proxy", () => {
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
  ])("asks for delegation with %j: %j", (annotations, expected) => {
    const parsed = parsePlacement(annotations);
    expect(parsed.ok && asksForDelegation(parsed.placement)).toBe(expected);
  });
});

describe("a malformed value is reported with key, fault and remedy", () => {
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
      "delegation",
      "annotated",
      'annotation legation.dev/delegation: is a label of namespaces, not an annotation; write `kubectl label namespace NAME legation.dev/delegation=annotated`, and on pods and workloads the annotation legation.dev/delegate: "true"',
    ],
    [
      "something",
      "west",
      "annotation legation.dev/something: is not an annotation that Legation knows; write one of legation.dev/delegate, legation.dev/clusters, legation.dev/cluster-selector, legation.dev/cluster-affinity, legation.dev/cluster-spread, legation.dev/group, legation.dev/group-by, legation.dev/scheduling-preferences, legation.dev/overrides, legation.dev/failover, legation.dev/api, legation.dev/mode, legation.dev/overflow-after, legation.dev/whole, legation.dev/on-conflict, legation.dev/on-delete",
    ],
    [
      "group",
      "a b",
      'annotation legation.dev/group: "a b" names no group; write up to 63 of a-z, A-Z, 0-9, -, _ and ., not first or last -, _ or .',
    ],
    [
      "group-by",
      "label:",
      'annotation legation.dev/group-by: "label:" makes no groups; write "owner", or "label:" and the key of a label, e.g. "label:app"',
    ],
    [
      "failover",
      "always",
      'annotation legation.dev/failover: "always" is not "never"; write that, or remove it to have pods replaced as on a lost node',
    ],
    ["api", "Host", 'annotation legation.dev/api: "Host" is no API server; write "host", "member" or "none"'],
    [
      "mode",
      "[]",
      'annotation legation.dev/mode: "[]" is no mode; write "overflow" (delegated when this cluster has no room) or "always"',
    ],
    [
      "overflow-after",
      "30",
      'annotation legation.dev/overflow-after: "30" is no time up to 24h; write hours, minutes and seconds, e.g. "30s", "5m" or "1h30m"',
    ],
  ])("legation.dev/%s: %j", (name, value, message) => {
    expect(problemsOf({ [`legation.dev/${name}`]: value })).toEqual([message]);
  });

  const affinityRemedy = "; write what a pod's nodeAffinity takes, as JSON or YAML";
  const required = (terms: string): string =>
    `{requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [${terms}]}}`;
  test.each([
    ["text", "Invalid input: expected object, received string"],
    ["{required: []}", 'Unrecognized key: "required"'],
    [
      required("{matchExpressions: [{key: gpu, operator: In}]}"),
      "requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0]: In needs values",
    ],
    [
      required("{matchFields: [{key: metadata.uid, operator: In, values: [a]}]}"),
      "requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchFields: only metadata.name with In or NotIn is known",
    ],
    [
      required('{matchExpressions: [{key: _, operator: Exists, values: [a]}, {key: a, operator: Gt, values: ["x"]}]}'),
      'requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0]: key "_" is no label key: at most 63 of a-z, A-Z, 0-9, -, _ and ., not first or last -, _ or .; ' +
        "requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0]: Exists takes no values; remove them; " +
        "requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[1]: Gt takes one value, an integer in quotes",
    ],
  ])("reports every problem of the affinity %j with its field", (value, problems) => {
    expect(problemsOf({ "legation.dev/cluster-affinity": value })).toEqual([
      `annotation legation.dev/cluster-affinity: ${problems}${affinityRemedy}`,
    ]);
  });

  test.each([
    ["[]", "Too small: expected array to have >=1 items"],
    ["[{topologyKey: region, maxSkew: 0}]", "[0].maxSkew: Too small: expected number to be >=1"],
    [
      "[{topologyKey: region, whenUnsatisfiable: ScheduleAnyway, minDomains: 2}]",
      "[0]: minDomains needs whenUnsatisfiable: DoNotSchedule",
    ],
    ["[{topologyKey: a b}]", "[0].topologyKey: is no label key: at most 63"],
    ["{", "is neither JSON nor YAML: "],
  ])("reports every problem of the spread %j with its field", (value, problem) => {
    const [message] = problemsOf({ "legation.dev/cluster-spread": value });
    expect(message).toContain(`annotation legation.dev/cluster-spread: ${problem}`);
    expect(message).toContain("; write a list as a pod's topologySpreadConstraints");
  });

  test("does not parse overlong values, and limits the number of reported problems", () => {
    const long = "a,".repeat(1_500_000);
    for (const key of ["clusters", "cluster-selector", "cluster-affinity", "group"]) {
      expect(problemsOf({ [`legation.dev/${key}`]: long })).toEqual([
        `annotation legation.dev/${key}: has 3000000 characters; write no more than 16384`,
      ]);
    }
    const many = Object.fromEntries(Array.from({ length: 100_000 }, (_, i) => [`legation.dev/xxxxx-${i}`, ""]));
    expect(problemsOf(many)).toHaveLength(10);
    const [message = ""] = problemsOf({ "legation.dev/clusters": "UPPER,".repeat(2_000) });
    expect(message).toMatch(/ and \d+ more; write names/);
    expect(message.length).toBeLessThan(4_000);
  });

  test("lists all problems, those of the namespace's defaults included", () => {
    const problems = problemsOf(
      { "legation.dev/delegate": "", "legation.dev/clusters": "-" },
      { "legation.dev/cluster-selector": "(" },
    );
    expect(problems).toHaveLength(3);
  });

  test("truncates a long value in the message", () => {
    const [message = ""] = problemsOf({ "legation.dev/delegate": "x".repeat(1_000_000) });
    expect(message.length).toBeLessThan(300);
  });
});

describe("placementExcludes gives a reason", () => {
  const member = { name: "west", labels: { region: "eu" } };
  const anyOf = (...expressions: string[]): string => {
    const terms = expressions.map((all) => `{matchExpressions: ${all}}`);
    return `{requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [${terms}]}}`;
  };
  test.each([
    [{}, undefined],
    [{ "legation.dev/clusters": "west,east" }, undefined],
    [{ "legation.dev/clusters": "east" }, "not named by legation.dev/clusters"],
    [{ "legation.dev/cluster-selector": "region=eu" }, undefined],
    [
      { "legation.dev/cluster-selector": "region=us" },
      'its labels do not match legation.dev/cluster-selector "region=us"',
    ],
    [{ "legation.dev/cluster-affinity": anyOf("[{key: region, operator: In, values: [eu]}]") }, undefined],
    [
      { "legation.dev/cluster-affinity": anyOf("[{key: region, operator: NotIn, values: [eu]}]") },
      "no term of legation.dev/cluster-affinity matches it",
    ],
    [
      {
        "legation.dev/cluster-affinity": anyOf("[]", "[{key: region, operator: Exists}, {key: gpu, operator: Exists}]"),
      },
      "no term of legation.dev/cluster-affinity matches it",
    ],
  ])("%j", (annotations, reason) => {
    const parsed = parsePlacement(annotations);
    expect(parsed.ok && placementExcludes(parsed.placement, member)).toBe(reason);
  });
});

test.each(["overrides", "scheduling-preferences", "cluster-affinity", "cluster-spread"])(
  "%s that is too long to be read beside others' is refused before it is read",
  (key) => {
    const nested = "[".repeat(100_000) + "]".repeat(100_000);
    const parse = (): ReturnType<typeof parsePlacement> => parsePlacement({ [`legation.dev/${key}`]: nested });
    expect(processorMs(parse)).toBeLessThan(2_000);
    expect(parse()).toMatchObject({
      ok: false,
      problems: [{ message: expect.stringContaining("has 200000 characters; write no more than 16384") }],
    });
  },
);
