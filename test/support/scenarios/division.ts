import { GOLD, job, pod, replicated, SPOT } from "./objects.ts";
import { type Scenario, scenario } from "./scenario.ts";
import { says } from "./words.ts";

const BLUE = { labels: { team: "blue" } };
const divide = (clusters: object, rebalance = false): Record<string, string> => ({
  "legation.dev/scheduling-preferences": JSON.stringify({ rebalance, clusters }),
});
const TWO_TO_ONE = divide({ west: { weight: 2 }, east: { weight: 1 } });
const EVERYWHERE = { spec: { tolerations: [GOLD, SPOT] } };
const notDivided = "legation.dev/scheduling-preferences does not name it";

/** Scenarios of divided replicas, with annotations of Legation and of other projects. */
export const DIVISION: readonly Scenario[] = [
  scenario("weights of a Deployment", [replicated("two-to-one", 6, { annotations: TWO_TO_ONE })], {
    "two-to-one": { in: { west: 4, east: 2 } },
  }),
  scenario("weights of a StatefulSet", [replicated("stateful", 3, { annotations: TWO_TO_ONE }, "StatefulSet")], {
    stateful: { in: { west: 2, east: 1 } },
  }),
  scenario("weights of a Job", [job("batch", 6, { annotations: TWO_TO_ONE })], { batch: { in: { west: 4, east: 2 } } }),
  scenario(
    "weights of four members",
    [
      replicated("ten", 10, {
        ...EVERYWHERE,
        annotations: divide({ west: { weight: 4 }, east: { weight: 3 }, north: { weight: 2 }, south: { weight: 1 } }),
      }),
    ],
    { ten: { in: { west: 4, east: 3, north: 2, south: 1 } } },
    { namespace: BLUE },
  ),
  scenario(
    "* is for all that have no entry of their own",
    [
      replicated("starred", 8, {
        ...EVERYWHERE,
        annotations: divide({ "*": { weight: 1 }, west: { weight: 3, maxReplicas: 2 } }),
      }),
    ],
    { starred: { in: { west: 2, east: 2, north: 2, south: 2 } } },
    { namespace: BLUE },
  ),
  scenario(
    "minReplicas come first",
    [replicated("least", 5, { annotations: divide({ west: { minReplicas: 2 }, east: { weight: 1 } }) })],
    { least: { in: { west: 2, east: 3 } } },
  ),
  scenario(
    "maxReplicas bound, and the rest goes elsewhere",
    [replicated("most", 5, { annotations: divide({ west: { weight: 9, maxReplicas: 1 }, "*": { weight: 1 } }) })],
    { most: { in: { west: 1, east: 4 } } },
  ),
  scenario(
    "maxReplicas everywhere, and the rest waits",
    [
      replicated("too-many", 3, {
        annotations: divide({ west: { weight: 1, maxReplicas: 1 }, east: { weight: 1, maxReplicas: 1 } }),
      }),
    ],
    {
      "too-many": {
        in: { west: 1, east: 1 },
        waits: says({
          east: "has 1 of them, its maxReplicas",
          west: "has 1 of them, its maxReplicas",
        }),
      },
    },
  ),
  scenario("a weight of nothing", [pod("unwanted", { annotations: divide({ west: { weight: 0 } }) })], {
    unwanted: { waits: says({ west: "its weight in legation.dev/scheduling-preferences is 0", east: notDivided }) },
  }),
  scenario(
    "a member that is closed gets nothing, and the others its share",
    [
      replicated("shared-out", 6, {
        annotations: divide({ west: { weight: 1 }, east: { weight: 1 }, north: { weight: 4 } }),
      }),
    ],
    { "shared-out": { in: { west: 3, east: 3 } } },
  ),
  scenario(
    "what a limit leaves over goes to the others",
    [
      replicated("limited", 8, {
        ...EVERYWHERE,
        annotations: divide({ south: { weight: 8 }, west: { weight: 1 }, east: { weight: 1 } }),
      }),
    ],
    { limited: { in: { south: 4, west: 2, east: 2 } } },
    { namespace: BLUE },
  ),
  scenario(
    "preferences divide what names leave",
    [replicated("narrowed", 4, { annotations: { ...divide({}), "legation.dev/clusters": "east" } })],
    { narrowed: { in: { east: 4 } } },
  ),
  scenario(
    "Federation v1",
    [
      replicated("federated", 8, {
        silent: true,
        annotations: {
          "federation.kubernetes.io/deployment-preferences": JSON.stringify({
            rebalance: true,
            clusters: { west: { weight: 1 }, east: { minReplicas: 1, maxReplicas: 6, weight: 3 } },
          }),
        },
      }),
    ],
    { federated: { in: { west: 2, east: 6 } } },
  ),
  scenario(
    "Admiralty",
    [
      replicated("admiral", 3, {
        silent: true,
        annotations: {
          "multicluster.admiralty.io/elect": "",
          "multicluster.admiralty.io/proxy-pod-scheduling-constraints": "nodeSelector: {region: us}",
        },
      }),
    ],
    { admiral: { in: { east: 3 } } },
  ),
  scenario(
    "what of Admiralty's has no meaning here",
    [
      pod("astern", {
        annotations: { "multicluster.admiralty.io/use-constraints-from-spec-for-proxy-pod-scheduling": "" },
      }),
    ],
    { astern: { refused: /constraints of the pod's spec are for the nodes of its member; write .* and remove it/ } },
  ),
  scenario(
    "preferences that cannot be",
    [replicated("impossible", 1, { annotations: divide({ west: { minReplicas: 3, maxReplicas: 1 } }) })],
    { impossible: { refused: /clusters\.west: minReplicas is greater than maxReplicas/ } },
  ),
];
