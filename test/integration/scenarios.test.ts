import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { DELEGATION_LABEL, PREFERENCES_ANNOTATION } from "../../src/api/keys.ts";
import type { Pod, Stored } from "../../src/api/kubernetes.ts";
import { clusters, placementDefaults } from "../../src/api/resources.ts";
import { pods } from "../../src/kube/resources.ts";
import { divide } from "../../src/placement/division.ts";
import { conditionOf, isDeleting } from "../../src/pods/pod-state.ts";
import { memberOf } from "../../src/pods/proxy.ts";
import { realClock } from "../../src/runtime/clock.ts";
import { Reflector } from "../../src/runtime/reflector.ts";
import { createLogger } from "../../src/telemetry/logger.ts";
import { auditEvents } from "../support/clusters/audit.ts";
import { freePort } from "../support/clusters/ports.ts";
import { startClusters } from "../support/clusters/start.ts";
import type { Clusters } from "../support/clusters/types.ts";
import { afterFile, cleanUpFile } from "../support/harness/after-file.ts";
import { clientOf, useClients } from "../support/harness/clients.ts";
import { hostCluster } from "../support/harness/clusters.ts";
import { kubectl } from "../support/harness/kubectl.ts";
import { useLegation } from "../support/harness/legation.ts";
import { freshNamespace } from "../support/harness/namespace.ts";
import { eventuallyPasses } from "../support/harness/wait.ts";
import { createIn, deleteFrom } from "../support/harness/workloads.ts";
import { legation as runLegation } from "../support/legation/cli.ts";
import { BrokenPremise, takeAll } from "../support/scenarios/attempts.ts";
import { isUnanswered, LateAnswers } from "../support/scenarios/late-answers.ts";
import { MEMBER_NAMES, type MemberName, TROUBLE } from "../support/scenarios/members.ts";
import { GOLD, OBJECT_LABEL, replicated, SPOT } from "../support/scenarios/objects.ts";
import { expectOutcome } from "../support/scenarios/outcome.ts";
import {
  clear,
  describeMember,
  endTrouble,
  furnish,
  makeTrouble,
  type ScenarioClients,
} from "../support/scenarios/real-members.ts";
import type { Scenario, Stage, Step } from "../support/scenarios/scenario.ts";
import { SCENARIOS } from "../support/scenarios/table.ts";

// They start while Legation is installed.
let more: Promise<Clusters> | undefined;
beforeAll(() => {
  const none = { nodes: [{ count: 0 }] };
  more = startClusters({ names: ["north", "south"], clusters: { north: none, south: none } });
  more.catch(() => {});
});
const metricsPort = await freePort();
const legation = useLegation({ controllerFlags: [`--health-listen=127.0.0.1:${metricsPort}`] });
const shared = useClients();
const OPTED_IN = { [DELEGATION_LABEL]: "annotated" };
const patient = { timeoutMs: 90_000, intervalMs: 200 };
// More at once would slow the API servers' responses, and slow members get fewer pods.
const AT_ONCE = 16;
// A scenario takes seconds; one that takes longer may have met a late answer.
const LOOK_MS = 20_000;
const all = SCENARIOS.flatMap(([, scenarios]) => scenarios);
const namespaces = new Map<Scenario, string>();
let own: Clusters;
let clients: ScenarioClients;
let seen: Reflector<Pod>;
let answers: LateAnswers;

beforeAll(async () => {
  if (more === undefined) throw new Error("no clusters");
  own = await more;
  clients = { ...shared(), north: clientOf(own.get("north")), south: clientOf(own.get("south")) };
  answers = new LateAnswers(metricsPort, clients.host);
  await Promise.all([legation().join("north", own.get("north")), legation().join("south", own.get("south"))]);
  await furnish(clients);
  seen = new Reflector<Pod>({
    client: clients.host,
    resource: pods,
    labelSelector: OBJECT_LABEL,
    clock: realClock,
    log: createLogger({ level: "silent" }),
    onEvent: () => {},
  });
  seen.start();
  await seen.whenSynced();
  const make = (labels = {}, annotations = {}): Promise<string> =>
    freshNamespace(hostCluster(), {
      prefix: "scenarios",
      labels: { ...OPTED_IN, ...labels },
      annotations,
      onFinished: afterFile,
    });
  const common = await make();
  await Promise.all(
    all.map(async (scenario) => {
      const { namespace } = scenario;
      namespaces.set(scenario, namespace === undefined ? common : await make(namespace.labels, namespace.annotations));
    }),
  );
});

afterAll(async () => {
  await seen?.stop();
  await clear(clients);
  await cleanUpFile();
  // The members' clusters end with this file, so their objects need not be awaited.
  const flags = ["--force", `--kubeconfig=${hostCluster().kubeconfig}`];
  for (const name of ["north", "south"]) {
    if ((await clients.host.find(clusters, { name })) !== undefined) await runLegation(["unjoin", name, ...flags]);
  }
  await Promise.all([clients.north.close(), clients.south.close()]);
  await own.stop();
});

function podsIn(namespace: string): Stored<Pod>[] {
  return seen.store.list().filter((pod) => pod.metadata.namespace === namespace && !isDeleting(pod));
}

function stepsIn(stage: Stage, { steps }: Scenario): Step[] {
  return steps.filter((step) => (step.stage ?? "well") === stage);
}

/** Checks each object's outcome against the step. */
function expectStep(scenario: Scenario, { expect: expected }: Step): void {
  const found = podsIn(namespaces.get(scenario) ?? "");
  for (const [object, outcome] of Object.entries(expected)) expectOutcome(found, object, outcome);
}

async function make(scenario: Scenario, { make: objects = [], expect: expected }: Step): Promise<void> {
  for (const object of objects) {
    const { refused } = expected[object.metadata?.name ?? ""] ?? {};
    const made = createIn(clients.host, namespaces.get(scenario) ?? "", [object]).catch((error: unknown) => {
      if (refused === undefined || isUnanswered(error)) throw error;
      expect(String(error)).toMatch(refused);
    });
    if ((await made) !== undefined) expect(refused).toBeUndefined();
  }
}

/** Waits for a step's outcome, which is another one where an answer comes late. */
async function outcomeOf(scenario: Scenario, step: Step, late: () => Promise<string | undefined>): Promise<void> {
  const { timeoutMs, intervalMs } = patient;
  for (let leftMs = timeoutMs; ; leftMs -= LOOK_MS) {
    try {
      await eventuallyPasses(() => expectStep(scenario, step), { timeoutMs: Math.min(leftMs, LOOK_MS), intervalMs });
      return;
    } catch (error) {
      const reason = await late();
      if (reason !== undefined) throw new BrokenPremise(`${reason}; ${error}`);
      if (leftMs <= LOOK_MS) throw error;
    }
  }
}

function membersIn(stage: Stage): MemberName[] {
  return MEMBER_NAMES.filter((name) => stage === "well" || name !== TROUBLE.lost);
}

async function take(stage: Stage, scenario: Scenario): Promise<void> {
  const begun = await answers.now();
  for (const step of stepsIn(stage, scenario)) {
    try {
      await make(scenario, step);
      await outcomeOf(scenario, step, () => answers.since(begun, membersIn(stage)));
    } catch (error) {
      const broken = isUnanswered(error) ? new BrokenPremise(String(error)) : error;
      if (broken instanceof BrokenPremise) console.warn(`"${scenario.shows}" comes again: ${broken.message}`);
      throw broken;
    }
  }
}

/** Deletes what scenarios have made in a stage, and waits until all clusters answer in time. */
async function undo(stage: Stage, scenarios: readonly Scenario[]): Promise<void> {
  const made = scenarios.map((scenario) => ({
    namespace: namespaces.get(scenario) ?? "",
    objects: stepsIn(stage, scenario).flatMap(({ make: objects = [] }) => objects),
  }));
  await eventuallyPasses(async () => {
    const begun = await answers.now();
    for (const { namespace, objects } of made) {
      // A create without an answer may be done later than its deletion.
      await deleteFrom(clients.host, namespace, objects);
      const names = new Set(objects.map(({ metadata }) => metadata?.name));
      const left = podsIn(namespace).filter(({ metadata }) => names.has(metadata.labels?.[OBJECT_LABEL]));
      expect(left.map(({ metadata }) => metadata.name)).toEqual([]);
    }
    await sleep(2_000);
    expect(await answers.since(begun, membersIn(stage))).toBeUndefined();
  }, patient);
}

const STAGES = [
  { stage: "well", when: "healthy members", begin: async () => {} },
  {
    stage: "trouble",
    when: "members in trouble",
    begin: () => makeTrouble(clients, own.get(TROUBLE.lost)),
  },
] as const;

describe.each(STAGES)("$when", ({ stage, begin }) => {
  let failures: ReadonlyMap<Scenario, unknown> = new Map();
  beforeAll(async () => {
    await begin();
    failures = await takeAll(
      all.filter((scenario) => stepsIn(stage, scenario).length > 0),
      {
        atOnce: AT_ONCE,
        take: (scenario) => take(stage, scenario),
        undo: (scenarios) => undo(stage, scenarios),
      },
    );
  }, 900_000);

  const staged = SCENARIOS.map(
    ([about, scenarios]) => [about, scenarios.filter((scenario) => stepsIn(stage, scenario).length > 0)] as const,
  );
  describe.each(staged.filter(([, scenarios]) => scenarios.length > 0))("%s", (_, scenarios) => {
    test.for(scenarios)("$shows", (scenario) => {
      if (failures.has(scenario)) throw failures.get(scenario);
      // Later scenarios have not changed it.
      for (const step of stepsIn(stage, scenario).slice(-1)) expectStep(scenario, step);
    });
  });

  test("match the host's status of pods", async () => {
    for (const name of MEMBER_NAMES) {
      await eventuallyPasses(async () => {
        const { items } = await clients[name].list(pods, { labelSelector: OBJECT_LABEL });
        const there = items.filter(
          ({ spec, metadata }) => spec?.nodeName !== undefined && metadata.deletionTimestamp === undefined,
        );
        const said = seen.store.list().filter((pod) => memberOf(pod) === name && !isDeleting(pod));
        const names = (found: readonly Stored<Pod>[]): string[] =>
          found.map(({ metadata }) => `${metadata.namespace}/${metadata.name}`).sort();
        // A lost member still runs pods that the host has given up.
        if (stage === "trouble" && name === TROUBLE.lost)
          expect(names(there)).toEqual(expect.arrayContaining(names(said)));
        else expect(names(there)).toEqual(names(said));
      });
    }
  });
});

/** Restores the state after the stage of trouble, whatever an earlier attempt has done. */
async function inTrouble(): Promise<void> {
  const { host } = clients;
  await host.patch(clusters, { name: "north" }, { type: "merge", body: { spec: { limits: null } } });
  if ((await host.find(clusters, { name: "south" })) === undefined) {
    await legation().join("south", own.get("south"));
    await describeMember(host, "south");
  }
  const { name = "default" } = TROUBLE.defaults.metadata;
  if ((await host.find(placementDefaults, { name })) === undefined) await makeTrouble(clients, own.get(TROUBLE.lost));
}

describe("members that return, leave and fill up", () => {
  beforeEach(inTrouble);

  const title = "keep the division of a Deployment that grows and shrinks, and evict nothing without a replacement";
  test(title, { timeout: 900_000 }, async () => {
    const { host } = clients;
    const preferences = { rebalance: true, clusters: { "*": { weight: 1, minReplicas: 0 } } };
    const namespace = await freshNamespace(hostCluster(), {
      prefix: "churn",
      labels: { ...OPTED_IN, team: "blue" },
      onFinished: onTestFinished,
    });
    const scale = (replicas: number): Promise<string> =>
      kubectl(hostCluster(), ["-n", namespace, "scale", "deployment/churn", `--replicas=${replicas}`]);
    const settled = (
      replicas: number,
      members: readonly string[],
      capacities: Record<string, number> = {},
    ): Promise<void> => {
      const key = `${namespace}/churn`;
      const ideal = divide({ total: replicas, preferences, clusters: members, capacities, key }).replicas;
      return eventuallyPasses(
        () => {
          const found = podsIn(namespace);
          const ready = found.filter((pod) => conditionOf(pod, "Ready")?.status === "True");
          expect(ready).toHaveLength(replicas);
          expect(found).toHaveLength(replicas);
          const counts = Object.fromEntries(
            MEMBER_NAMES.map((name) => [name, found.filter((pod) => memberOf(pod) === name).length]),
          );
          const off = MEMBER_NAMES.map((name) => Math.abs((counts[name] ?? 0) - (ideal[name] ?? 0)));
          expect(Math.max(...off), JSON.stringify({ counts, ideal })).toBeLessThanOrEqual(1);
        },
        { ...patient, timeoutMs: 120_000 },
      );
    };
    const annotations = { [PREFERENCES_ANNOTATION]: JSON.stringify(preferences), "legation.dev/cluster-selector": "" };
    await createIn(host, namespace, [replicated("churn", 10, { annotations, spec: { tolerations: [GOLD, SPOT] } })]);
    await settled(10, ["west", "east"]);

    // The lost member returns and another one is uncordoned while the Deployment grows.
    await Promise.all([endTrouble(clients, own.get(TROUBLE.lost)), scale(16)]);
    await settled(16, MEMBER_NAMES);

    // A member reaches its limit and another one leaves by draining while the Deployment grows.
    const limits = { perNamespace: { pods: "4" } };
    await host.patch(clusters, { name: "north" }, { type: "merge", body: { spec: { limits } } });
    const leave = ["unjoin", "south", "--drain", "--timeout=180s", `--kubeconfig=${hostCluster().kubeconfig}`];
    await Promise.all([runLegation(leave, { timeoutMs: 200_000 }), scale(20)]);
    await settled(20, ["west", "east", "north"], { north: 4 });
    await scale(9);
    await settled(9, ["west", "east", "north"], { north: 4 });

    const events = await auditEvents(
      hostCluster(),
      ({ objectRef, responseStatus }) =>
        objectRef?.namespace === namespace && objectRef.resource === "pods" && (responseStatus?.code ?? 0) < 300,
      [namespace],
    );
    let evicted = 0;
    let owed = 0;
    for (const { verb, objectRef } of events) {
      const { subresource = "" } = objectRef ?? {};
      if (verb === "create" && subresource === "eviction") {
        evicted += 1;
        owed += 1;
      } else if (verb === "create" && subresource === "") owed = Math.max(0, owed - 1);
      // Pods in motion: one of ten at a time, and drained ones.
      expect(owed).toBeLessThanOrEqual(6);
    }
    expect(evicted).toBeGreaterThan(0);
    expect(owed).toBe(0);
  });
});
