import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { PREFERENCES_ANNOTATION } from "../../src/api/keys.ts";
import type { Pod } from "../../src/api/kubernetes.ts";
import type { SchedulingPreferences } from "../../src/api/preferences.ts";
import { divide } from "../../src/placement/division.ts";
import { conditionOf, isLive } from "../../src/pods/pod-state.ts";
import { whyNotPlaced } from "../../src/pods/proxy-conditions.ts";
import { watchPods } from "../support/delegated/histories.ts";
import { useClients } from "../support/harness/clients.ts";
import { hostCluster, memberCluster } from "../support/harness/clusters.ts";
import { kubectl } from "../support/harness/kubectl.ts";
import { useLegation } from "../support/harness/legation.ts";
import { freshNamespace } from "../support/harness/namespace.ts";
import { podsOf } from "../support/harness/pods-of.ts";
import { eventuallyPasses } from "../support/harness/wait.ts";

const legation = useLegation();
const clients = useClients();

const patient = { timeoutMs: 120_000, intervalMs: 200 };
const TWO_TO_ONE = { clusters: { west: { weight: 2 }, east: { weight: 1 } } };
let namespace: string;

const run = (...args: string[]): Promise<string> =>
  kubectl(hostCluster(), ["-n", namespace, ...args], { timeoutMs: 120_000 });

function patchWest(spec: object): Promise<string> {
  return kubectl(hostCluster(), [
    "patch",
    "clusters.legation.dev",
    "west",
    "--type=merge",
    `--patch=${JSON.stringify({ spec })}`,
  ]);
}

// A lost member is detected sooner than in production; a busy machine may take a second to answer.
beforeAll(() => patchWest({ probe: { periodSeconds: 2, timeoutSeconds: 4, failureThreshold: 2 } }));
afterAll(() => patchWest({ probe: null }));

beforeEach(async () => {
  namespace = await fresh();
});

function fresh(annotations: Readonly<Record<string, string>> = {}): Promise<string> {
  const labels = { "legation.dev/delegation": "annotated" };
  return freshNamespace([hostCluster(), memberCluster("west"), memberCluster("east")], {
    prefix: "preferences",
    labels,
    annotations,
  });
}

interface Parts {
  readonly kind?: string;
  readonly apiVersion?: string;
  readonly name?: string;
  readonly preferences?: object;
  /** Replaces the annotations for the preferences. */
  readonly annotations?: object;
  readonly spec?: object;
  readonly podSpec?: object;
}

function workload(parts: Parts): string {
  const { kind = "Deployment", apiVersion = "apps/v1", name = "web", preferences, spec, podSpec } = parts;
  const asked =
    preferences === undefined
      ? { "legation.dev/delegate": "true" }
      : { [PREFERENCES_ANNOTATION]: JSON.stringify(preferences) };
  const main = { name: "main", image: "web:1", resources: { requests: { cpu: "10m" } } };
  return JSON.stringify({
    apiVersion,
    kind,
    metadata: { name, annotations: parts.annotations ?? asked },
    spec: {
      ...(kind === "Job" ? {} : { selector: { matchLabels: { app: name } } }),
      template: { metadata: { labels: { app: name } }, spec: { containers: [main], ...podSpec } },
      ...spec,
    },
  });
}

async function apply(parts: Parts): Promise<void> {
  await kubectl(hostCluster(), ["-n", namespace, "apply", "-f", "-"], { input: workload(parts) });
}

function isReady(pod: Pod): boolean {
  return conditionOf(pod, "Ready")?.status === "True" && isLive(pod);
}

/** Counts live pods by member; those without one under `none`. */
async function division(of: (pod: Pod) => boolean = () => true): Promise<Record<string, number>> {
  return countsOf(await podsOf(clients().host, namespace), (pod) => isLive(pod) && of(pod));
}

function countsOf(all: readonly Pod[], of: (pod: Pod) => boolean): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const pod of all.filter(of)) {
    const on = pod.spec?.nodeName?.replace("legation-", "") ?? "none";
    counts[on] = (counts[on] ?? 0) + 1;
  }
  return counts;
}

function divided(wanted: Record<string, number>, of?: (pod: Pod) => boolean): Promise<void> {
  return eventuallyPasses(async () => expect(await division(of)).toEqual(wanted), patient);
}

const image = (wanted: string) => (pod: Pod) => pod.spec?.containers[0]?.image === wanted;

describe("a Deployment with weights", () => {
  test("is divided by them as it grows, shrinks and is updated", async () => {
    await apply({ preferences: TWO_TO_ONE, spec: { replicas: 12 } });
    await divided({ west: 8, east: 4 });
    await run("scale", "deployment/web", "--replicas=30");
    await divided({ west: 20, east: 10 });
    await run("rollout", "status", "deployment/web", "--timeout=90s");
    await run("scale", "deployment/web", "--replicas=9");
    await divided({ west: 6, east: 3 });
    await run("set", "image", "deployment/web", "main=web:2");
    await run("rollout", "status", "deployment/web", "--timeout=90s");
    await divided({ west: 6, east: 3 });
    await divided({ west: 6, east: 3 }, image("web:2"));
    await run("scale", "deployment/web", "--replicas=3");
    await divided({ west: 2, east: 1 });
  });

  test("keeps its division at every moment of an update, and of its rollback", async () => {
    const preferences: SchedulingPreferences = {
      rebalance: true,
      clusters: { west: { weight: 1, minReplicas: 4 }, east: { weight: 3, minReplicas: 0 } },
    };
    const strategy = { rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } };
    await apply({ preferences, spec: { replicas: 8, strategy } });
    await divided({ west: 5, east: 3 });
    await run("rollout", "status", "deployment/web", "--timeout=90s");

    const moments = new Set<string>();
    const ready: Record<string, number> = {};
    const { stop } = await watchPods(clients().host, namespace, (all) => {
      const placed = countsOf(all, (pod) => isLive(pod) && pod.spec?.nodeName !== undefined);
      const total = Object.values(placed).reduce((sum, one) => sum + one, 0);
      const { replicas } = divide({ total, preferences, clusters: ["west", "east"], key: `${namespace}/web` });
      const off = Math.abs((placed.west ?? 0) - (replicas.west ?? 0));
      moments.add(JSON.stringify({ off, placed }));
      const newest = all.filter((pod) => isReady(pod) && image("web:3")(pod)).length;
      ready["web:3"] = Math.max(ready["web:3"] ?? 0, newest);
    });
    onTestFinished(stop);
    await run("set", "image", "deployment/web", "main=web:2");
    await run("rollout", "status", "deployment/web", "--timeout=90s");
    await divided({ west: 5, east: 3 }, image("web:2"));
    await run("set", "image", "deployment/web", "main=web:3");
    await eventuallyPasses(async () => expect(ready["web:3"]).toBeGreaterThanOrEqual(3), {
      ...patient,
      intervalMs: 50,
    });
    await run("rollout", "undo", "deployment/web");
    await run("rollout", "status", "deployment/web", "--timeout=90s");
    await divided({ west: 5, east: 3 }, image("web:2"));
    // Between eight and nine of them.
    expect(moments.size).toBeGreaterThan(2);
    expect([...moments].filter((moment) => !/^{"off":[01],/.test(moment))).toEqual([]);
  });

  test("never has more than maxReplicas in a member, and says why the rest waits", async () => {
    const preferences = { clusters: { "*": { weight: 1, maxReplicas: 2 } } };
    await apply({ preferences, spec: { replicas: 6 } });
    await divided({ west: 2, east: 2, none: 2 });
    await eventuallyPasses(async () => {
      const waiting = (await podsOf(clients().host, namespace)).filter(({ spec }) => spec?.nodeName === undefined);
      for (const pod of waiting) {
        const condition = whyNotPlaced(pod);
        expect(condition?.message).toBe("east: has 2 of them, its maxReplicas; west: has 2 of them, its maxReplicas");
      }
      expect(waiting).toHaveLength(2);
    }, patient);
    await run("scale", "deployment/web", "--replicas=3");
    await eventuallyPasses(async () => expect(Object.values(await division()).sort()).toEqual([1, 2]), patient);
  });

  test("keeps its division if the controller is killed while it grows", async () => {
    await apply({ preferences: TWO_TO_ONE, spec: { replicas: 60 } });
    await eventuallyPasses(async () => expect((await division()).west ?? 0).toBeGreaterThan(5), {
      ...patient,
      intervalMs: 20,
    });
    await legation().controller.stop("SIGKILL");
    await legation().controller.start();
    await divided({ west: 40, east: 20 });
  });
});

describe("a running Deployment", () => {
  const settled = async (replicas: number): Promise<void> => {
    await run("rollout", "status", "deployment/web", "--timeout=90s");
    await eventuallyPasses(async () => {
      const all = await podsOf(clients().host, namespace);
      expect(all.filter(isReady)).toHaveLength(replicas);
    }, patient);
  };
  const cordon = (verb: "cordon" | "uncordon"): Promise<string> => run(verb, "legation-east");

  test("is moved under rebalance when weights change, as its PodDisruptionBudget allows", async () => {
    const weights = (west: number): string =>
      JSON.stringify({ rebalance: true, clusters: { west: { weight: west }, "*": { weight: 1 } } });
    namespace = await fresh({ [PREFERENCES_ANNOTATION]: weights(1) });
    await apply({ spec: { replicas: 8 } });
    await divided({ west: 4, east: 4 });
    await settled(8);
    await run("create", "poddisruptionbudget", "web", "--selector=app=web", "--min-available=7");
    let fewest = 8;
    const { stop } = await watchPods(clients().host, namespace, (all) => {
      fewest = Math.min(fewest, all.filter(isReady).length);
    });
    onTestFinished(stop);
    await run("annotate", "namespace", namespace, `${PREFERENCES_ANNOTATION}=${weights(3)}`, "--overwrite");
    await divided({ west: 6, east: 2 });
    await settled(8);
    expect(fewest).toBe(7);
  });

  test("is moved to a member that returns only under rebalance", async () => {
    onTestFinished(async () => void (await cordon("uncordon")));
    await cordon("cordon");
    await apply({ preferences: { clusters: {} }, spec: { replicas: 4 } });
    const moving = await fresh();
    const staying = namespace;
    namespace = moving;
    await apply({ preferences: { rebalance: true }, spec: { replicas: 4 } });
    await divided({ west: 4 });
    await settled(4);
    await cordon("uncordon");
    await divided({ west: 2, east: 2 });
    namespace = staying;
    await divided({ west: 4 });
    // New replicas go to the member below its share.
    await run("scale", "deployment/web", "--replicas=8");
    await divided({ west: 4, east: 4 });
  });
});

describe("a changed wish of a running workload", () => {
  interface Changed {
    /** Returns how many of the pods that ran before run still. */
    readonly kept: () => Promise<number>;
    readonly fewestReady: () => number;
    readonly templates: () => Promise<string>;
  }

  async function settled(kind: string, replicas: number): Promise<Changed> {
    await allReady(replicas);
    const found = (await podsOf(clients().host, namespace)).map(({ metadata }) => metadata.uid);
    let fewest = replicas;
    const { stop } = await watchPods(clients().host, namespace, (all) => {
      fewest = Math.min(fewest, all.filter(isReady).length);
    });
    onTestFinished(stop);
    const path = kind === "deployment" ? "{.items[*].metadata.name}" : "{.items[*].status.updateRevision}";
    return {
      kept: async () => {
        const all = await podsOf(clients().host, namespace);
        return all.filter(({ metadata }) => found.includes(metadata.uid)).length;
      },
      fewestReady: () => fewest,
      templates: () => run("get", kind === "deployment" ? "replicasets" : kind, `-o=jsonpath=${path}`),
    };
  }

  const allReady = (replicas: number): Promise<void> =>
    eventuallyPasses(async () => {
      expect((await podsOf(clients().host, namespace)).filter(isReady)).toHaveLength(replicas);
    }, patient);
  const weights = (west: number): object => ({
    rebalance: true,
    clusters: { west: { weight: west }, east: { weight: 1 } },
  });
  /** Returns what applying the manifest would change, for client-side and server-side apply. */
  const differences = (manifest: string): Promise<string[]> =>
    Promise.all(
      [[], ["--server-side", "--force-conflicts"]].map((more) =>
        kubectl(hostCluster(), ["-n", namespace, "diff", ...more, "-f", "-"], { input: manifest }),
      ),
    );

  test("moves only the pods of a Deployment that have to, and replaces no template", async () => {
    await apply({ preferences: weights(1), spec: { replicas: 8 } });
    await divided({ west: 4, east: 4 });
    const before = await settled("deployment", 8);
    const templates = await before.templates();
    const changed: Parts = { preferences: weights(3), spec: { replicas: 8 } };
    await apply(changed);
    await divided({ west: 6, east: 2 });
    await allReady(8);
    expect(await before.kept()).toBe(6);
    expect(await before.templates()).toBe(templates);
    expect(before.fewestReady()).toBe(7);
    expect(await differences(workload(changed))).toEqual(["", ""]);
  });

  test("takes the pods of a StatefulSet out of a member that it excludes, one after another", async () => {
    const parts = (clusters: string): Parts => ({
      ...{ kind: "StatefulSet", name: "db" },
      annotations: { "legation.dev/clusters": clusters },
      spec: { replicas: 3, serviceName: "db", podManagementPolicy: "Parallel" },
    });
    await apply(parts("west"));
    await divided({ west: 3 });
    const before = await settled("statefulset", 3);
    const templates = await before.templates();
    await apply(parts("west,east"));
    await apply(parts("east"));
    await divided({ east: 3 });
    await allReady(3);
    expect(await before.templates()).toBe(templates);
    expect(before.fewestReady()).toBe(2);
    expect(await differences(workload(parts("east")))).toEqual(["", ""]);
  });
});

describe("a Deployment in a member that has reached its limit", () => {
  test("keeps its replicas there under rebalance, and grows elsewhere", async () => {
    onTestFinished(async () => void (await patchWest({ limits: null })));
    await apply({ preferences: { rebalance: true }, spec: { replicas: 6 } });
    await divided({ west: 3, east: 3 });
    await run("rollout", "status", "deployment/web", "--timeout=90s");
    const uids = async (): Promise<string[]> =>
      (await podsOf(clients().host, namespace)).map(({ metadata }) => metadata.uid);
    const before = await uids();
    await patchWest({ limits: { perNamespace: { pods: "3" } } });
    await run("scale", "deployment/web", "--replicas=8");
    await divided({ west: 3, east: 5 });
    await run("rollout", "status", "deployment/web", "--timeout=90s");
    // The delay before surplus replicas are moved.
    await sleep(10_000);
    expect(await uids()).toEqual(expect.arrayContaining(before));
    await divided({ west: 3, east: 5 });
  });
});

describe("a Deployment whose member is lost", () => {
  test("is replaced where its limits allow, and divided again when the member returns", async () => {
    const west = memberCluster("west");
    onTestFinished(() => west.proxy.heal());
    const tolerations = ["not-ready", "unreachable"].map((state) => ({
      key: `node.kubernetes.io/${state}`,
      operator: "Exists",
      effect: "NoExecute",
      tolerationSeconds: 2,
    }));
    await apply({ preferences: { rebalance: true }, spec: { replicas: 6 }, podSpec: { tolerations } });
    await divided({ west: 3, east: 3 });
    await run("rollout", "status", "deployment/web", "--timeout=60s");
    await west.proxy.cut();
    await divided({ east: 6 });
    await west.proxy.heal();
    await divided({ west: 3, east: 3 });
    await eventuallyPasses(async () => expect(await podsOf(clients().west, namespace)).toHaveLength(3), patient);
  });
});

describe("other workloads with weights", () => {
  test("are divided: a StatefulSet, and a Job as it progresses", async () => {
    const spec = { replicas: 6, serviceName: "db", podManagementPolicy: "Parallel" };
    await apply({ kind: "StatefulSet", name: "db", preferences: TWO_TO_ONE, spec });
    const batch = { parallelism: 6, completions: 6 };
    await apply({
      kind: "Job",
      apiVersion: "batch/v1",
      name: "sum",
      preferences: { clusters: { west: { minReplicas: 1 }, east: { weight: 1 } } },
      spec: batch,
      podSpec: { restartPolicy: "Never" },
    });
    await divided({ west: 4, east: 2 }, ({ metadata }) => metadata?.labels?.app === "db");
    await eventuallyPasses(async () => {
      const all = (await podsOf(clients().host, namespace)).filter(({ metadata }) => metadata.labels?.app === "sum");
      expect(all.map(({ spec: own }) => own?.nodeName).sort()).toEqual([
        ...Array(5).fill("legation-east"),
        "legation-west",
      ]);
    }, patient);
  });

  test("are delegated and divided by other projects' annotations", async () => {
    const annotate = (name: string, kind: string, annotations: object, replicas: number): Promise<void> =>
      apply({ kind, name, annotations, spec: { replicas } });
    const app = (name: string) => (pod: Pod) => pod.metadata?.labels?.app === name;
    const federated = '{"clusters": {"west": {"weight": 1}, "east": {"weight": 3}}}';
    await annotate("fed", "ReplicaSet", { "federation.kubernetes.io/replica-set-preferences": federated }, 4);
    const constraints = "nodeSelector: {region: us}";
    const elected = {
      "multicluster.admiralty.io/elect": "",
      "multicluster.admiralty.io/proxy-pod-scheduling-constraints": constraints,
    };
    await annotate("elected", "Deployment", elected, 2);
    await divided({ west: 1, east: 3 }, app("fed"));
    await divided({ east: 2 }, app("elected"));
    await expect(
      annotate(
        "odd",
        "Deployment",
        { "multicluster.admiralty.io/use-constraints-from-spec-for-proxy-pod-scheduling": "" },
        1,
      ),
    ).rejects.toThrow(/constraints of the pod's spec are for the nodes of its member/);
  });

  test("are refused, with the field, if their preferences are wrong", async () => {
    const preferences = { clusters: { west: { weight: -1, most: 3 } } };
    await expect(apply({ preferences, spec: { replicas: 1 } })).rejects.toThrow(
      /scheduling-preferences: clusters\.west\.weight: must not be negative, clusters\.west\.most: is no field here/,
    );
    expect(await podsOf(clients().host, namespace)).toEqual([]);
  });
});
