import type { Toleration } from "../../../src/api/kubernetes.ts";
import { GOLD, pod, replicated } from "./objects.ts";
import { type Scenario, scenario } from "./scenario.ts";

const clusters = (names: string): Record<string, string> => ({ "legation.dev/clusters": names });
const TROUBLE = { stage: "trouble" } as const;
// Kubernetes gives pods five minutes; a scenario has a second.
const BRIEFLY: Toleration[] = ["not-ready", "unreachable"].map((state) => ({
  key: `node.kubernetes.io/${state}`,
  operator: "Exists",
  effect: "NoExecute",
  tolerationSeconds: 1,
}));
/** Overrides what PlacementDefaults say. */
const ANY = { "legation.dev/cluster-selector": "" };
const LOST = /north: its API server does not answer: /;

/** Scenarios with a lost member, a cordoned one and operator defaults. */
export const IN_TROUBLE: readonly Scenario[] = [
  {
    shows: "pods of a lost member are replaced where they may be",
    steps: [
      {
        make: [
          replicated("moves", 3, {
            annotations: { "legation.dev/cluster-affinity": NORTH_FIRST() },
            spec: { tolerations: [GOLD, ...BRIEFLY] },
          }),
        ],
        expect: { moves: { in: { north: 3 } } },
      },
      { stage: "trouble", expect: { moves: { in: { west: 3 } } } },
    ],
  },
  {
    shows: "pods that are never to be replaced elsewhere stay in a lost member",
    steps: [
      {
        make: [
          replicated("stays", 2, {
            annotations: {
              ...clusters("north,west"),
              "legation.dev/cluster-affinity": NORTH_FIRST(),
              "legation.dev/failover": "never",
            },
            spec: { tolerations: [GOLD, ...BRIEFLY] },
          }),
        ],
        expect: { stays: { in: { north: 2 } } },
      },
      { stage: "trouble", expect: { stays: { in: { north: 2 } } } },
    ],
  },
  scenario(
    "a lost member gets no pod",
    [pod("to-lost", { annotations: { ...clusters("north"), ...ANY }, spec: { tolerations: [GOLD] } })],
    {
      "to-lost": { waits: LOST },
    },
    TROUBLE,
  ),
  scenario(
    "a cordoned member gets no pod",
    [pod("to-cordoned", { annotations: clusters("south") })],
    {
      "to-cordoned": { waits: /south: its virtual node is cordoned/ },
    },
    { ...TROUBLE, namespace: { labels: { team: "blue" } } },
  ),
  {
    shows: "a group whose member is lost does not part",
    steps: [
      {
        make: [
          pod("anchor", {
            annotations: { ...clusters("north"), "legation.dev/group": "loyal" },
            spec: { tolerations: [GOLD] },
          }),
        ],
        expect: { anchor: { in: { north: 1 } } },
      },
      {
        stage: "trouble",
        make: [
          pod("late", {
            annotations: { "legation.dev/group": "loyal", ...ANY },
            spec: { tolerations: [GOLD] },
          }),
        ],
        expect: {
          late: {
            waits: /^east: group loyal runs in north; north: its API server .*; west: group loyal runs in north$/,
          },
        },
      },
    ],
  },
  scenario(
    "PlacementDefaults apply to pods without a placement of their own",
    [replicated("by-default", 2)],
    {
      "by-default": { in: { west: 2 } },
    },
    TROUBLE,
  ),
  scenario(
    "PlacementDefaults and names, of which nothing is left",
    [pod("between", { annotations: clusters("east") })],
    {
      between: {
        waits: /^east: its labels do not match the clusterSelector of PlacementDefaults; north: not named /,
      },
    },
    TROUBLE,
  ),
  scenario(
    "an author replaces what PlacementDefaults say",
    [replicated("own-words", 2, { annotations: { "legation.dev/cluster-selector": "region=us" } })],
    { "own-words": { in: { east: 2 } } },
    TROUBLE,
  ),
  scenario(
    "a namespace replaces what PlacementDefaults say",
    [replicated("house-rules", 2)],
    {
      "house-rules": { in: { east: 2 } },
    },
    { ...TROUBLE, namespace: { annotations: { "legation.dev/cluster-selector": "provider=cloud" } } },
  ),
  scenario(
    "weights of what is left",
    [
      replicated("remaining", 4, {
        annotations: {
          "legation.dev/scheduling-preferences": '{"clusters": {"*": {"weight": 1}}}',
          ...ANY,
        },
        spec: { tolerations: [GOLD] },
      }),
    ],
    { remaining: { in: { west: 2, east: 2 } } },
    { ...TROUBLE, namespace: { labels: { team: "blue" } } },
  ),
];

function NORTH_FIRST(): string {
  return JSON.stringify({
    preferredDuringSchedulingIgnoredDuringExecution: [
      { weight: 1, preference: { matchExpressions: [{ key: "tier", operator: "Exists" }] } },
    ],
  });
}
