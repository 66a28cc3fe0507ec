import type { Cluster } from "../../../src/api/cluster.ts";
import type { KubeNode } from "../../../src/api/kubernetes.ts";
import type { PlacementDefaults } from "../../../src/api/placement-defaults.ts";
import { KWOK_NODE_ANNOTATION } from "../clusters/flags.ts";

/** The members of all scenarios. */
export const MEMBER_NAMES = ["west", "east", "north", "south"] as const;
export type MemberName = (typeof MEMBER_NAMES)[number];

/** A member, as its operator describes it. */
export interface ScenarioMember {
  readonly labels: Readonly<Record<string, string>>;
  readonly spec: Omit<Cluster["spec"], "credentialsSecret">;
  readonly nodes: readonly KubeNode[];
}

interface NodeParts {
  readonly sizes: Readonly<Record<string, string>>;
  readonly labels?: Readonly<Record<string, string>>;
  readonly taints?: { key: string; value?: string; effect: string }[];
}

function node(name: string, { sizes, labels, taints }: NodeParts): KubeNode {
  return {
    apiVersion: "v1",
    kind: "Node",
    metadata: {
      name,
      annotations: { [KWOK_NODE_ANNOTATION]: "fake" },
      labels: { "kubernetes.io/hostname": name, "kubernetes.io/os": "linux", ...labels },
    },
    ...(taints === undefined ? {} : { spec: { taints } }),
    status: { capacity: { ...sizes }, allocatable: { ...sizes } },
  };
}

const LARGE = { cpu: "64", memory: "256Gi", pods: "5000" };
const large = (cluster: string): KubeNode[] =>
  [1, 2, 3].map((number) => node(`${cluster}-node-${number}`, { sizes: LARGE }));
const GPU: NodeParts = {
  sizes: { cpu: "16", memory: "64Gi", pods: "110", "nvidia.com/gpu": "4" },
  labels: { pool: "gpu" },
  taints: [{ key: "gpu", effect: "NoSchedule" }],
};
const SMALL: NodeParts = {
  sizes: { cpu: "2", memory: "4Gi", pods: "20", "example.com/licence": "3" },
  labels: { disk: "ssd" },
};

// Long enough for a scheduler, short enough for those who wait for it to give up.
const IMPATIENT = { scheduleTimeoutSeconds: 5 };

/** Members: two large and open, one with GPUs for gold, a small one for team blue with limits. */
export const MEMBERS: Readonly<Record<MemberName, ScenarioMember>> = {
  west: { labels: { region: "eu", provider: "own" }, spec: IMPATIENT, nodes: large("west") },
  east: { labels: { region: "us", provider: "cloud" }, spec: IMPATIENT, nodes: large("east") },
  north: {
    labels: { region: "eu", provider: "cloud", tier: "gold" },
    spec: { ...IMPATIENT, taints: [{ key: "team", value: "gold", effect: "NoSchedule" }] },
    nodes: [
      node("north-gpu-1", GPU),
      node("north-gpu-2", GPU),
      node("north-disk-1", {
        sizes: { cpu: "8", memory: "128Gi", pods: "110", "example.com/fpga": "2" },
        labels: { disk: "ssd" },
      }),
    ],
  },
  south: {
    labels: { region: "us", provider: "own" },
    spec: {
      ...IMPATIENT,
      namespaceSelector: { matchLabels: { team: "blue" } },
      taints: [{ key: "spot", effect: "PreferNoSchedule" }],
      limits: {
        total: { "example.com/licence": "2" },
        perNamespace: { cpu: "2", memory: "2Gi", pods: "4" },
      },
    },
    nodes: [
      node("south-small-1", { ...SMALL, sizes: { ...SMALL.sizes, "example.com/fpga": "1" } }),
      node("south-small-2", SMALL),
    ],
  },
};

/** A PriorityClass that the host has, and of the members those only that are named. */
export const PRIORITY_CLASSES: Readonly<Record<string, readonly MemberName[]>> = {
  "scenarios-east": ["east"],
  "scenarios-nowhere": [],
};

/** The members in trouble: north is lost, south is cordoned, and the operator prefers the own members. */
export const TROUBLE: {
  readonly lost: MemberName;
  readonly cordoned: MemberName;
  readonly defaults: PlacementDefaults;
} = {
  lost: "north",
  cordoned: "south",
  defaults: {
    apiVersion: "legation.dev/v1alpha1",
    kind: "PlacementDefaults",
    metadata: { name: "default" },
    spec: { clusterSelector: { matchLabels: { provider: "own" } } },
  },
};
