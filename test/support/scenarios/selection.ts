import { GOLD, GPU, job, pod, replicated, SPOT } from "./objects.ts";
import { type Scenario, scenario } from "./scenario.ts";
import { allSay, CLOSED, NOT_NAMED, onlyNamed, says } from "./words.ts";

const BLUE = { labels: { team: "blue" } };
const clusters = (names: string): Record<string, string> => ({ "legation.dev/clusters": names });
const selector = (text: string): Record<string, string> => ({ "legation.dev/cluster-selector": text });
const json = (name: string, value: unknown): Record<string, string> => ({
  [`legation.dev/${name}`]: JSON.stringify(value),
});

const is = (key: string, ...values: string[]): object => ({ matchExpressions: [{ key, operator: "In", values }] });
const required = (...nodeSelectorTerms: object[]): Record<string, string> =>
  json("cluster-affinity", { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } });
const preferred = (...terms: [weight: number, preference: object][]): Record<string, string> =>
  json("cluster-affinity", {
    preferredDuringSchedulingIgnoredDuringExecution: terms.map(([weight, preference]) => ({ weight, preference })),
  });
const spread = (topologyKey: string, more: object = {}): Record<string, string> =>
  json("cluster-spread", [{ topologyKey, ...more }]);

const NO_TERM = "no term of legation.dev/cluster-affinity matches it";

/** Scenarios of authors' choices: names, labels, affinity, tolerations. */
export const SELECTION: readonly Scenario[] = [
  scenario("nothing said: any member that is open to the namespace", [replicated("silent", 4)], {
    silent: { among: { members: ["west", "east"], pods: 4 } },
  }),
  scenario("a name", [pod("named", { annotations: clusters("west") })], { named: { in: { west: 1 } } }),
  scenario(
    "a name without asking for delegation in other words",
    [pod("just-named", { annotations: clusters("east"), silent: true })],
    {
      "just-named": { in: { east: 1 } },
    },
  ),
  scenario("a name of a member that is closed to the pod", [pod("closed", { annotations: clusters("north,south") })], {
    closed: { waits: says({ east: NOT_NAMED, west: NOT_NAMED }) },
  }),
  scenario("a name that no Cluster has", [pod("nowhere", { annotations: clusters("nowhere") })], {
    nowhere: {
      waits: says({}, allSay(NOT_NAMED)).replace("; south", "; nowhere: no Cluster of that name has joined; south"),
    },
  }),
  scenario("a name that cannot be one", [pod("misnamed", { annotations: clusters("West!") })], {
    misnamed: { refused: /annotation legation\.dev\/clusters: "West!"/ },
  }),
  scenario("a selector over labels of Clusters", [pod("selects", { annotations: selector("region=us") })], {
    selects: { in: { east: 1 } },
  }),
  scenario(
    "a selector with sets",
    [pod("sets", { annotations: selector("region in (eu,us), provider notin (cloud), !tier") })],
    {
      sets: { in: { west: 1 } },
    },
  ),
  scenario("a selector that nothing matches", [pod("unmatched", { annotations: selector("tier=platinum") })], {
    unmatched: { waits: says(allSay('its labels do not match legation.dev/cluster-selector "tier=platinum"')) },
  }),
  scenario("a selector that is none", [pod("no-selector", { annotations: selector("region in eu") })], {
    "no-selector": { refused: /legation\.dev\/cluster-selector: "region in eu" is not a label selector/ },
  }),
  scenario(
    "required affinity: one of the terms",
    [replicated("required", 2, { annotations: required(is("tier", "none"), is("provider", "own")) })],
    {
      required: { in: { west: 2 } },
    },
  ),
  scenario("required affinity that nothing meets", [pod("unmet", { annotations: required(is("region", "asia")) })], {
    unmet: { waits: says(allSay(NO_TERM)) },
  }),
  scenario(
    "preferred affinity, by the sum of the weights",
    [
      replicated("prefers", 4, {
        annotations: preferred([10, is("region", "eu")], [6, is("region", "us")], [6, is("provider", "cloud")]),
      }),
    ],
    { prefers: { in: { east: 4 } } },
  ),
  scenario(
    "preferred affinity for what is closed is no more than a preference",
    [replicated("wishes", 2, { annotations: preferred([100, is("tier", "gold")], [1, is("region", "us")]) })],
    { wishes: { in: { east: 2 } } },
  ),
  scenario(
    "an annotation that Legation does not know",
    [pod("typo", { annotations: { "legation.dev/clusterz": "west" } })],
    {
      typo: { refused: /did you mean legation\.dev\/clusters\?/ },
    },
  ),

  scenario(
    "a taint of a Cluster that the pod tolerates",
    [pod("tolerant", { annotations: clusters("north"), spec: { tolerations: [GOLD] } })],
    { tolerant: { in: { north: 1 } } },
  ),
  scenario(
    "a toleration of another value",
    [pod("silver", { annotations: clusters("north"), spec: { tolerations: [{ ...GOLD, value: "silver" }] } })],
    { silver: { waits: onlyNamed({ north: CLOSED.north }) } },
  ),
  scenario(
    "a toleration of everything",
    [pod("anywhere", { annotations: selector("tier"), spec: { tolerations: [{ operator: "Exists" }] } })],
    { anywhere: { in: { north: 1 } } },
  ),
  scenario(
    "a taint of effect PreferNoSchedule is avoided",
    [replicated("avoids", 4)],
    {
      avoids: { among: { members: ["west", "east"], pods: 4 } },
    },
    { namespace: BLUE },
  ),
  scenario(
    "a taint of effect PreferNoSchedule keeps no pod off",
    [pod("insists", { annotations: clusters("south") })],
    {
      insists: { in: { south: 1 } },
    },
    { namespace: BLUE },
  ),
  scenario(
    "a taint of effect PreferNoSchedule, where it is tolerated, leaves it to affinity",
    [
      replicated("likes-spot", 3, {
        annotations: {
          ...preferred([1, { matchFields: [{ key: "metadata.name", operator: "In", values: ["south"] }] }]),
        },
        spec: { tolerations: [SPOT] },
      }),
    ],
    { "likes-spot": { in: { south: 3 } } },
    { namespace: BLUE },
  ),
];

/** Pods that keep apart, or together. */
export const SPREAD_AND_GROUPS: readonly Scenario[] = [
  scenario("spread over regions", [replicated("regional", 4, { annotations: spread("region", { maxSkew: 1 }) })], {
    regional: { in: { west: 2, east: 2 } },
  }),
  scenario(
    "spread over providers",
    [
      replicated("provided", 4, {
        annotations: { ...spread("provider"), ...clusters("west,north") },
        spec: { tolerations: [GOLD] },
      }),
    ],
    { provided: { in: { west: 2, north: 2 } } },
  ),
  scenario(
    "spread bounds what a preference may do",
    [
      replicated("bounded", 6, {
        annotations: { ...spread("region", { maxSkew: 2 }), ...preferred([9, is("region", "us")]) },
      }),
    ],
    { bounded: { in: { east: 4, west: 2 } } },
  ),
  scenario(
    "spread as a wish",
    [replicated("wishful", 4, { annotations: spread("region", { whenUnsatisfiable: "ScheduleAnyway" }) })],
    { wishful: { in: { west: 2, east: 2 } } },
  ),
  scenario(
    "spread as a wish gives way",
    [
      replicated("gives-way", 3, {
        annotations: { ...spread("region", { whenUnsatisfiable: "ScheduleAnyway" }), ...clusters("west") },
      }),
    ],
    { "gives-way": { in: { west: 3 } } },
  ),
  scenario("spread over a label that only one has", [replicated("tiered", 1, { annotations: spread("tier") })], {
    tiered: { waits: says({ east: "has no label tier to spread over", west: "has no label tier to spread over" }) },
  }),
  scenario(
    "spread waits for a domain whose only member is closed to the pod",
    [replicated("waits-for-cloud", 2, { annotations: { ...spread("provider"), ...clusters("west,north") } })],
    {
      "waits-for-cloud": {
        in: { west: 1 },
        waits: onlyNamed({
          north: CLOSED.north,
          west: "one more pod would be too many: provider=own has 1, the fewest is 0, and maxSkew is 1",
        }),
      },
    },
  ),
  scenario(
    "spread that honours taints does not",
    [
      replicated("honours", 2, {
        annotations: { ...spread("provider", { nodeTaintsPolicy: "Honor" }), ...clusters("west,north") },
      }),
    ],
    { honours: { in: { west: 2 } } },
  ),
  scenario(
    "spread over more domains than there are",
    [replicated("three-regions", 3, { annotations: spread("region", { minDomains: 3 }) })],
    {
      "three-regions": {
        in: { west: 1, east: 1 },
        waits: says({
          east: "one more pod would be too many: region=us has 1, the fewest is 0, and maxSkew is 1",
          west: "one more pod would be too many: region=eu has 1, the fewest is 0, and maxSkew is 1",
        }),
      },
    },
  ),
  {
    shows: "spread counts the pods of a selector, whoever owns them",
    steps: [
      {
        make: [replicated("first-crew", 2, { annotations: clusters("west"), labels: { crew: "a" } })],
        expect: { "first-crew": { in: { west: 2 } } },
      },
      {
        make: [
          replicated("second-crew", 2, {
            annotations: spread("region", { labelSelector: { matchLabels: { crew: "a" } } }),
            labels: { crew: "a" },
          }),
        ],
        expect: { "second-crew": { in: { east: 2 } } },
      },
    ],
  },

  scenario("a group stays together", [replicated("band", 5, { annotations: { "legation.dev/group": "band" } })], {
    band: { together: 5 },
  }),
  {
    shows: "a group follows its first pod",
    steps: [
      {
        make: [pod("leader", { annotations: { ...clusters("east"), "legation.dev/group": "follow" } })],
        expect: { leader: { in: { east: 1 } } },
      },
      {
        make: [replicated("followers", 3, { annotations: { "legation.dev/group": "follow" } })],
        expect: { followers: { in: { east: 3 } } },
      },
      {
        make: [pod("deserter", { annotations: { ...clusters("west"), "legation.dev/group": "follow" } })],
        expect: { deserter: { waits: onlyNamed({ west: "group follow runs in east" }) } },
      },
    ],
  },
  scenario(
    "a pod of a group that no member may have does not hold up the group",
    [
      pod("lost-leader", { annotations: { ...clusters("north"), "legation.dev/group": "stuck" } }),
      pod("free", { annotations: { "legation.dev/group": "stuck" } }),
    ],
    { "lost-leader": { waits: /north: / }, free: { among: { members: ["west", "east"], pods: 1 } } },
  ),
  scenario(
    "groups by owner, as the namespace says",
    [job("flow", 4, { silent: true })],
    { flow: { together: 4 } },
    {
      namespace: {
        annotations: { "legation.dev/group-by": "owner" },
        labels: { "legation.dev/delegation": "all" },
      },
    },
  ),
  scenario(
    "groups by a label, as the namespace says",
    [replicated("run-a", 3, { labels: { run: "a" } }), replicated("run-b", 3, { labels: { run: "b" } })],
    { "run-a": { together: 3 }, "run-b": { together: 3 } },
    { namespace: { annotations: { "legation.dev/group-by": "label:run" } } },
  ),
  scenario(
    "every pod of a namespace, though none asks",
    [pod("engine-made", { silent: true })],
    {
      "engine-made": { among: { members: ["west", "east"], pods: 1 } },
    },
    { namespace: { labels: { "legation.dev/delegation": "all" } } },
  ),
  scenario(
    "a namespace's default, and a pod that says otherwise",
    [pod("defaulted"), pod("contrary", { annotations: clusters("west") })],
    { defaulted: { in: { east: 1 } }, contrary: { in: { west: 1 } } },
    { namespace: { annotations: clusters("east") } },
  ),
  scenario(
    "a GPU pod that tolerates everything on its way",
    [
      job("training", 2, {
        requests: { "nvidia.com/gpu": "1" },
        spec: { restartPolicy: "Never", tolerations: [GOLD, GPU] },
      }),
    ],
    { training: { in: { north: 2 } } },
  ),
];
