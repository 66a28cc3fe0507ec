import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { CLUSTERS_ANNOTATION, PLACED_CONDITION } from "../../src/api/keys.ts";
import type { Pod } from "../../src/api/kubernetes.ts";
import { events, pods } from "../../src/kube/resources.ts";
import { conditionOf } from "../../src/pods/phase.ts";
import { apiRequest } from "../support/clusters/api-request.ts";
import { type AuditEvent, auditEvents } from "../support/clusters/audit.ts";
import { KWOK_ANNOTATIONS } from "../support/clusters/stages.ts";
import { watchPods } from "../support/delegated/histories.ts";
import { delegatedPod } from "../support/delegated/pods.ts";
import { useClients } from "../support/harness/clients.ts";
import { hostCluster, memberCluster } from "../support/harness/clusters.ts";
import { freshNamespace } from "../support/harness/namespace.ts";
import { podLives } from "../support/harness/pod-lives.ts";
import { inPhase, podGone, podThat } from "../support/harness/pods-of.ts";
import { useQuickProbes } from "../support/harness/quick-probes.ts";
import { eventually } from "../support/harness/wait.ts";
import { useGatedLegation } from "../support/write-gate/gated-legation.ts";
import type { Trap, Write } from "../support/write-gate/write-gate.ts";

const gated = useGatedLegation();
const clients = useClients();

const NAME = "one";
const patient = { timeoutMs: 90_000 };
// Less than the controller waits for what a write that was done must show.
const SOON_MS = 8_000;

interface Life {
  readonly annotations: Readonly<Record<string, string>>;
  /** What its author waits for before it is deleted. */
  readonly until: (proxy: Pod) => boolean;
  /** Reason of an event that its author waits for too. */
  readonly event?: string;
  /** Every phase that it may be seen in, in this order. */
  readonly phases: readonly string[];
  readonly delegates: number;
}

const lives = {
  "ends by itself and is deleted": {
    annotations: { [KWOK_ANNOTATIONS.outcome]: "succeeded", [KWOK_ANNOTATIONS.endsAfter]: "500ms" },
    until: (proxy) =>
      inPhase("Succeeded")(proxy) && proxy.status?.containerStatuses?.[0]?.state?.terminated?.exitCode === 0,
    phases: ["Pending", "Running", "Succeeded"],
    delegates: 1,
  },
  "is deleted while it runs": {
    annotations: { [KWOK_ANNOTATIONS.stopsAfter]: "500ms" },
    until: inPhase("Running"),
    phases: ["Pending", "Running", "Failed"],
    delegates: 1,
  },
  "finds no member and is deleted": {
    annotations: { [CLUSTERS_ANNOTATION]: "atlantis" },
    until: (proxy) => conditionOf(proxy, PLACED_CONDITION)?.status === "False",
    event: "NotPlaced",
    // The pod garbage collector of Kubernetes fails what is being deleted and has no node.
    phases: ["Pending", "Failed"],
    delegates: 0,
  },
} as const satisfies Readonly<Record<string, Life>>;

interface Point {
  readonly write: string;
  readonly of: keyof typeof lives;
  readonly where: "host" | "member";
  readonly method: "POST" | "PATCH" | "DELETE";
  /** What follows `/api/v1/namespaces` and, after it, the test's own namespace. */
  readonly path: string;
  readonly body?: RegExp;
  /** Of its delegate, for which the write comes too late otherwise. */
  readonly endsAfter?: string;
}

const proxy = `/pods/${NAME}`;
const status = { where: "host", method: "PATCH", path: `${proxy}/status` } as const;
const ends = "ends by itself and is deleted";
const killed = "is deleted while it runs";
const waits = "finds no member and is deleted";
const points: readonly Point[] = [
  { write: "its namespace is created", of: ends, where: "member", method: "POST", path: "" },
  { write: "its delegate is created", of: ends, where: "member", method: "POST", path: "/pods" },
  { write: "it is bound", of: ends, where: "host", method: "POST", path: `${proxy}/binding` },
  { write: "it is told to run", of: ends, ...status, body: /"phase":"Running"/, endsAfter: "5s" },
  { write: "it is told to have ended", of: ends, ...status, body: /"phase":"Succeeded"/ },
  { write: "its delegate is deleted", of: ends, where: "member", method: "DELETE", path: proxy },
  { write: "its finalizer is removed", of: ends, where: "host", method: "PATCH", path: proxy },
  { write: "its delegate is deleted", of: killed, where: "member", method: "DELETE", path: proxy },
  { write: "its last status is told", of: killed, ...status, body: /"phase":"Failed"/ },
  { write: "it is deleted with grace 0", of: killed, where: "host", method: "DELETE", path: proxy },
  { write: "its finalizer is removed", of: killed, where: "host", method: "PATCH", path: proxy },
  { write: "it is told to wait", of: waits, ...status, body: /legation.dev\/Placed/ },
  { write: "its waiting is an event", of: waits, where: "host", method: "POST", path: "/events" },
];

function isAt({ method, path, body = /^/ }: Point, namespace: string): (write: Write) => boolean {
  const collection = "/api/v1/namespaces";
  const whole = path === "" ? collection : `${collection}/${namespace}${path}`;
  return (write) =>
    write.method === method &&
    write.path === whole &&
    body.test(write.body) &&
    (path !== "" || write.body.includes(`"${namespace}"`));
}

async function live(namespace: string, { annotations, until, event }: Life, endsAfter?: string): Promise<void> {
  const { host, west, east } = clients();
  const lasting = endsAfter === undefined ? {} : { [KWOK_ANNOTATIONS.endsAfter]: endsAfter };
  await host.create(pods, delegatedPod(namespace, NAME, { annotations: { ...annotations, ...lasting } }));
  await podThat(host, namespace, NAME, until, patient);
  if (event !== undefined) await eventually(() => isTold(namespace, event), patient);
  await host.delete(pods, { namespace, name: NAME });
  await Promise.all([host, west, east].map((client) => podGone(client, namespace, NAME, undefined, patient)));
}

// One that was killed in a test that failed.
beforeEach(() => gated().legation.controller.start());

async function isTold(namespace: string, wanted: string): Promise<boolean> {
  const { items } = await clients().host.list(events, { namespace });
  return items.some(({ involvedObject, reason }) => involvedObject.name === NAME && reason === wanted);
}

/** Lives a pod's life with a trap for one of its writes, and expects of it what every pod is to see. */
async function liveThrough(
  point: Point,
  how: { readonly when: Trap["when"]; readonly status?: number; readonly onFinished: typeof onTestFinished },
  onCaught: (namespace: string) => Promise<void>,
  meanwhile: () => Promise<void>,
): Promise<void> {
  const { onFinished, ...when } = how;
  const members = [memberCluster("west"), memberCluster("east")];
  const labels = { "legation.dev/delegation": "annotated" };
  const there = point.path === "" ? [hostCluster()] : [hostCluster(), ...members];
  const namespace = await freshNamespace(there, { prefix: "crash", labels, onFinished });
  const { histories, stop } = await watchPods(clients().host, namespace);
  onFinished(stop);
  const catches = isAt(point, namespace);
  gated().trap(point.where, { ...when, namespace, catches, onCaught: () => onCaught(namespace) });
  const life = lives[point.of];
  await Promise.all([live(namespace, life, point.endsAfter), meanwhile()]);

  const delegates = (await Promise.all(members.map((member) => podLives(member, namespace)))).flat();
  expect(delegates).toHaveLength(life.delegates);
  expect(histories.size).toBe(1);
  for (const history of histories.values()) {
    const phases = history.phases.map(({ phase }) => phase);
    expect(life.phases.filter((phase) => phases.includes(phase))).toEqual(phases);
  }
}

describe.each(["before", "after"] as const)("a controller that is killed just %s the write", (when) => {
  test.each(points)("with which $write, of a pod that $of, is followed by one that ends the same", async (point) => {
    const { legation, release } = gated();
    const { controller } = legation;
    onTestFinished(release);
    let killed = false;
    const kill = async (): Promise<void> => {
      await controller.stop("SIGKILL");
      killed = true;
    };
    await liveThrough(point, { when, onFinished: onTestFinished }, kill, async () => {
      await eventually(() => killed, { ...patient, what: "the write" });
      await controller.start();
    });
  });
});

describe.concurrent("a write that an API server refuses for a moment, as a conflict with another,", () => {
  test.for(points)("with which $write, of a pod that $of, is made again soon", async (point, context) => {
    const at: number[] = [];
    const note = async (namespace: string): Promise<void> => {
      at.push(performance.now());
      if (at.length > 1) return;
      const catches = isAt(point, namespace);
      gated().trap(point.where, { namespace, when: "late", catches, onCaught: () => note(namespace) });
    };
    const onFinished = context.onTestFinished;
    await liveThrough(point, { when: "refused", status: 409, onFinished }, note, async () => {});
    const [refusedAt = 0, againAt = Number.POSITIVE_INFINITY] = at;
    expect(againAt - refusedAt).toBeLessThan(SOON_MS);
  });
});

describe("a member that is soon missed", () => {
  useQuickProbes();

  test("a delegate that was made, and not seen before its member went silent, is not made in another one", async () => {
    const { trap, release } = gated();
    const { host } = clients();
    const members = { west: memberCluster("west"), east: memberCluster("east") };
    const labels = { "legation.dev/delegation": "annotated" };
    const namespace = await freshNamespace([hostCluster(), ...Object.values(members)], { prefix: "unseen", labels });
    let silent: "west" | "east" | undefined;
    trap("member", {
      when: "unseen",
      catches: ({ method, path }) => method === "POST" && path === `/api/v1/namespaces/${namespace}/pods`,
      onCaught: async (member) => {
        silent = member === "west" ? "west" : "east";
        await members[silent].apiServer.freeze();
      },
    });
    onTestFinished(async () => {
      if (silent !== undefined) await members[silent].apiServer.thaw();
      release();
    });
    await host.create(pods, delegatedPod(namespace, NAME));
    await podThat(
      host,
      namespace,
      NAME,
      (pod) => conditionOf(pod, PLACED_CONDITION)?.message?.startsWith(`${silent}: may have the pod`) === true,
      patient,
    );
    if (silent !== undefined) await members[silent].apiServer.thaw();
    release();
    const { spec } = await podThat(host, namespace, NAME, inPhase("Running"), patient);
    expect(spec?.nodeName).toBe(`legation-${silent}`);
    const delegates = await Promise.all(Object.values(members).map((member) => podLives(member, namespace)));
    expect(delegates.flat()).toHaveLength(1);
  });
});

test("a delegate whose creation was done but not answered, and that fills the quota for another try, is the only one", async () => {
  const { trap, release, legation } = gated();
  const { host } = clients();
  const members = { west: memberCluster("west"), east: memberCluster("east") };
  const labels = { "legation.dev/delegation": "annotated" };
  const namespace = await freshNamespace([hostCluster(), ...Object.values(members)], { prefix: "quota", labels });
  const collection = `/api/v1/namespaces/${namespace}/resourcequotas`;
  for (const member of Object.values(members)) {
    const body = { apiVersion: "v1", kind: "ResourceQuota", metadata: { name: "one" }, spec: { hard: { pods: "1" } } };
    expect((await apiRequest(member, "POST", collection, { body })).status).toBe(201);
    // Nothing is refused before it has been counted.
    await eventually(async () => (await apiRequest(member, "GET", `${collection}/one`)).text.includes('"used":{'));
  }
  let holder: string | undefined;
  trap("member", {
    when: "lost",
    catches: ({ method, path }) => method === "POST" && path === `/api/v1/namespaces/${namespace}/pods`,
    onCaught: async (member) => {
      holder = member;
    },
  });
  onTestFinished(release);
  const seen = legation.controller.log().length;
  await host.create(pods, delegatedPod(namespace, NAME));
  const refused = (): Promise<AuditEvent[]> =>
    auditEvents(
      members[holder === "east" ? "east" : "west"],
      ({ verb, objectRef, responseStatus }) =>
        verb === "create" &&
        objectRef?.namespace === namespace &&
        objectRef.resource === "pods" &&
        responseStatus?.code === 403,
      [namespace],
    );
  await eventually(async () => holder !== undefined && (await refused()).length > 0, patient);
  expect(legation.controller.log().slice(seen)).toContain("AnswerLost");
  release();
  const { spec } = await podThat(host, namespace, NAME, inPhase("Running"), patient);
  expect(spec?.nodeName).toBe(`legation-${holder}`);
  const delegates = await Promise.all(Object.values(members).map((member) => podLives(member, namespace)));
  expect(delegates.flat()).toHaveLength(1);
});
