import { GOLD, GPU, job, pod, replicated, SPOT } from "./objects.ts";
import { type Scenario, scenario } from "./scenario.ts";
import { allSay, CLOSED, NOT_NAMED, onlyNamed, SCHEDULER, says } from "./words.ts";

const BLUE = { labels: { team: "blue" } };
const clusters = (names: string): Record<string, string> => ({ "legation.dev/clusters": names });
const overrides = (...entries: object[]): Record<string, string> => ({
  "legation.dev/overrides": JSON.stringify(entries),
});
const put = (path: string, value: unknown, op = "add"): object => ({ op, path: `/spec/${path}`, value });
const preferring = (name: string): Record<string, string> => ({
  "legation.dev/cluster-affinity": JSON.stringify({
    preferredDuringSchedulingIgnoredDuringExecution: [
      { weight: 1, preference: { matchFields: [{ key: "metadata.name", operator: "In", values: [name] }] } },
    ],
  }),
});
const SOUTH = { annotations: clusters("south") };
const NOT_SELECTED = "none of its 3 nodes is one that the pod selects";

/** Scenarios of members' nodes. */
export const NODES: readonly Scenario[] = [
  scenario(
    "GPUs whose taints are tolerated, of the Cluster and of the node",
    [pod("gpu", { requests: { "nvidia.com/gpu": "2" }, spec: { tolerations: [GOLD, GPU] } })],
    { gpu: { in: { north: 1 } } },
  ),
  scenario(
    "a GPU on nodes whose taint is not tolerated",
    [
      pod("no-toleration", {
        requests: { "nvidia.com/gpu": "1" },
        annotations: clusters("north"),
        spec: { tolerations: [GOLD] },
      }),
    ],
    {
      "no-toleration": {
        waits: onlyNamed({
          north: "nvidia.com/gpu: 1 requested, the largest node that the pod may go to has 0",
        }),
      },
    },
  ),
  scenario(
    "more GPUs than a node has",
    [
      pod("eight-gpus", {
        requests: { "nvidia.com/gpu": "8" },
        annotations: { ...preferring("east"), ...clusters("east,north") },
        spec: { tolerations: [GOLD, GPU] },
      }),
    ],
    {
      "eight-gpus": {
        waits: onlyNamed({ east: SCHEDULER, north: "nvidia.com/gpu: 8 requested, the largest node has 4" }),
      },
    },
  ),
  scenario(
    "a GPU and more memory than its nodes have",
    [
      pod("gpu-and-memory", {
        requests: { "nvidia.com/gpu": "1", memory: "100Gi" },
        annotations: clusters("north,west"),
        spec: { tolerations: [GOLD, GPU] },
      }),
    ],
    {
      "gpu-and-memory": {
        waits: onlyNamed({ west: SCHEDULER, north: "no one node has all that is requested" }),
      },
    },
  ),
  scenario(
    "a nodeSelector that no node of open members has",
    [pod("fast-disk", { spec: { nodeSelector: { disk: "ssd" } } })],
    {
      "fast-disk": { waits: says({ east: NOT_SELECTED, west: NOT_SELECTED }) },
    },
  ),
  scenario(
    "a nodeSelector and tolerations of the nodes",
    [
      pod("on-pool", { spec: { nodeSelector: { pool: "gpu" }, tolerations: [GOLD, GPU] } }),
      pod("off-pool", { annotations: clusters("north"), spec: { nodeSelector: { pool: "gpu" }, tolerations: [GOLD] } }),
    ],
    {
      "on-pool": { in: { north: 1 } },
      "off-pool": {
        waits: onlyNamed({
          north: "none of its 3 nodes takes the pod: 2 with taint gpu:NoSchedule, 1 not selected by the pod",
        }),
      },
    },
  ),
  scenario(
    "required node affinity",
    [
      job("near-disk", 2, {
        spec: {
          restartPolicy: "Never",
          tolerations: [GOLD],
          affinity: {
            nodeAffinity: {
              requiredDuringSchedulingIgnoredDuringExecution: {
                nodeSelectorTerms: [
                  { matchExpressions: [{ key: "pool", operator: "In", values: ["none"] }] },
                  {
                    matchExpressions: [
                      { key: "disk", operator: "Exists" },
                      { key: "pool", operator: "DoesNotExist" },
                    ],
                  },
                ],
              },
            },
          },
        },
      }),
    ],
    { "near-disk": { in: { north: 2 } } },
  ),
  scenario(
    "larger than any node",
    [
      pod("giant", {
        requests: { cpu: "100" },
        annotations: preferring("east"),
        spec: { tolerations: [GOLD] },
      }),
    ],
    {
      giant: {
        waits: says({
          east: SCHEDULER,
          west: "cpu: 100 requested, the largest node has 64",
          north: "cpu: 100 requested, the largest node has 16",
        }),
      },
    },
  ),
  scenario(
    "larger than the nodes of all members but one",
    [
      pod("large", {
        requests: { cpu: "3" },
        annotations: clusters("north,south"),
        spec: { tolerations: [GOLD] },
      }),
    ],
    { large: { in: { north: 1 } } },
    { namespace: BLUE },
  ),
  scenario(
    "whole nodes: what is left on all of them together is none",
    [
      job("whole", 3, {
        requests: { cpu: "9" },
        annotations: { ...preferring("north"), ...clusters("north,west") },
        spec: { restartPolicy: "Never", tolerations: [GOLD, GPU] },
      }),
    ],
    { whole: { in: { north: 2, west: 1 } } },
  ),
  {
    shows: "nothing left anywhere: it waits in the best, and says so",
    namespace: BLUE,
    steps: [
      {
        make: [
          job("fpgas", 3, {
            requests: { "example.com/fpga": "1" },
            spec: { restartPolicy: "Never", tolerations: [GOLD] },
          }),
        ],
        expect: { fpgas: { in: { north: 2, south: 1 } } },
      },
      {
        make: [pod("one-more", { requests: { "example.com/fpga": "1" }, spec: { tolerations: [GOLD] } })],
        expect: {
          "one-more": {
            waits: says(
              {
                east: "no schedulable node offers example.com/fpga",
                west: "no schedulable node offers example.com/fpga",
                north: SCHEDULER,
                south: "example.com/fpga: 1 requested, 0 left",
              },
              {},
            ),
          },
        },
      },
    ],
  },
];

/** Scenarios of operators' policy. */
export const POLICY: readonly Scenario[] = [
  scenario("a namespace that a member does not admit", [pod("red", SOUTH)], {
    red: { waits: onlyNamed({ south: CLOSED.south }) },
  }),
  scenario(
    "a limit of cpu for a namespace",
    [job("cores", 3, { ...SOUTH, requests: { cpu: "1" } })],
    {
      cores: {
        in: { south: 2 },
        waits: onlyNamed({ south: "its limit for namespace {namespace} of cpu: 1 requested, 0 of 2 left" }),
      },
    },
    { namespace: BLUE },
  ),
  scenario(
    "a limit of memory for a namespace",
    [job("bytes", 3, { ...SOUTH, requests: { memory: "1Gi" } })],
    {
      bytes: {
        in: { south: 2 },
        waits: onlyNamed({ south: "its limit for namespace {namespace} of memory: 1Gi requested, 0 of 2Gi left" }),
      },
    },
    { namespace: BLUE },
  ),
  scenario(
    "a limit of pods for a namespace",
    [replicated("heads", 6, SOUTH)],
    {
      heads: {
        in: { south: 4 },
        waiting: 2,
        waits: onlyNamed({ south: "its limit for namespace {namespace} of pods: 1 requested, 0 of 4 left" }),
      },
    },
    { namespace: BLUE },
  ),
  scenario(
    "a limit for all namespaces",
    [job("licensed", 3, { ...SOUTH, requests: { "example.com/licence": "1" } })],
    {
      licensed: {
        in: { south: 2 },
        waits: onlyNamed({ south: "its limit of example.com/licence: 1 requested, 0 of 2 left" }),
      },
    },
    { namespace: BLUE },
  ),
  scenario(
    "beyond a limit pods go elsewhere",
    [
      replicated("spills", 6, {
        annotations: { ...preferring("south"), ...clusters("south,west") },
        spec: { tolerations: [SPOT] },
      }),
    ],
    { spills: { in: { south: 4, west: 2 } } },
    { namespace: BLUE },
  ),

  scenario(
    "a member whose API server refuses the shape is passed over by all of it",
    [replicated("prior", 3, { annotations: { ...preferring("west") }, spec: { priorityClassName: "scenarios-east" } })],
    { prior: { in: { east: 3 } } },
  ),
  scenario(
    "a shape that every API server refuses",
    [pod("unprior", { spec: { priorityClassName: "scenarios-nowhere" } })],
    {
      unprior: {
        waits: says({
          east: "its API server refused the pod: no PriorityClass with name scenarios-nowhere was found",
          west: "its API server refused the pod: no PriorityClass with name scenarios-nowhere was found",
        }),
      },
    },
  ),

  scenario(
    "an override that lets a pod go where its own nodeSelector would not",
    [
      replicated("translated", 2, {
        annotations: overrides({
          clusterSelector: "tier=gold",
          patch: [put("nodeSelector", { disk: "ssd" }, "replace")],
        }),
        spec: { nodeSelector: { storage: "fast" }, tolerations: [GOLD] },
      }),
    ],
    { translated: { in: { north: 2 } } },
  ),
  scenario(
    "an override that keeps a pod from the nodes of a member",
    [
      replicated("pinned", 2, {
        annotations: overrides({ clusters: ["west"], patch: [put("nodeSelector", { pool: "gpu" })] }),
      }),
    ],
    { pinned: { in: { east: 2 } } },
  ),
  scenario(
    "an override of nodes, where no member is left",
    [
      pod("pinned-away", {
        annotations: { ...overrides({ patch: [put("nodeSelector", { pool: "gpu" })] }), ...clusters("west,north") },
        spec: { tolerations: [GOLD] },
      }),
    ],
    {
      "pinned-away": {
        waits: onlyNamed({
          west: NOT_SELECTED,
          north: "none of its 3 nodes takes the pod: 2 with taint gpu:NoSchedule, 1 not selected by the pod",
        }),
      },
    },
  ),
  scenario(
    "an override of tolerations",
    [
      pod("tolerated-there", {
        requests: { "nvidia.com/gpu": "1" },
        annotations: overrides({ clusters: ["north"], patch: [put("tolerations", [GOLD, GPU])] }),
        spec: { tolerations: [GOLD] },
      }),
    ],
    { "tolerated-there": { in: { north: 1 } } },
  ),
  scenario(
    "an override of resources",
    [
      replicated("smaller", 2, {
        requests: { cpu: "100" },
        annotations: overrides({
          clusters: ["west"],
          patch: [put("containers/0/resources", { requests: { cpu: "1" } })],
        }),
      }),
    ],
    { smaller: { in: { west: 2 } } },
  ),
  scenario(
    "an override of resources counts against limits",
    [
      job("grown", 2, {
        ...SOUTH,
        requests: { memory: "64Mi" },
        annotations: {
          ...SOUTH.annotations,
          ...overrides({
            clusters: ["south"],
            patch: [put("containers/0/resources", { requests: { memory: "1536Mi" } })],
          }),
        },
      }),
    ],
    {
      grown: {
        in: { south: 1 },
        waits: onlyNamed({
          south: "its limit for namespace {namespace} of memory: 1536Mi requested, 512Mi of 2Gi left",
        }),
      },
    },
    { namespace: BLUE },
  ),
  scenario(
    "an override that does not fit the pod",
    [
      pod("misfit", {
        annotations: {
          ...overrides({ clusters: ["west"], patch: [{ op: "remove", path: "/spec/hostname" }] }),
          ...clusters("west"),
        },
      }),
    ],
    {
      misfit: {
        waits: says(
          { west: "legation.dev/overrides: [0].patch[0]: remove /spec/hostname: the pod has nothing there" },
          allSay(NOT_NAMED),
        ),
      },
    },
  ),
  scenario("an override that is none", [pod("no-override", { annotations: overrides({ patch: [] }) })], {
    "no-override": { refused: /legation\.dev\/overrides: \[0\]\.patch/ },
  }),
];
