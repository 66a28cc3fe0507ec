import { describe, expect, test } from "vitest";
import { FORWARDED_ANNOTATION } from "../../../../../src/api/keys.ts";
import {
  type Container,
  objectKey,
  type Pod,
  type PodCondition,
  type PodStatus,
  type Stored,
} from "../../../../../src/api/kubernetes.ts";
import type { Member } from "../../../../../src/clusters/member.ts";
import { DelegateSync } from "../../../../../src/controllers/delegation/actions/delegate-sync.ts";
import { decide } from "../../../../../src/controllers/delegation/decide.ts";
import { forwards, refusedResize } from "../../../../../src/controllers/delegation/decision/forwarding.ts";
import type { ControllerEvents } from "../../../../../src/controllers/events.ts";
import { RefusedWrites } from "../../../../../src/controllers/refused-writes.ts";
import type { ClusterClient } from "../../../../../src/kube/client.ts";
import { statusFrom, statusPatch } from "../../../../../src/pods/feedback.ts";
import { specFollows } from "../../../../../src/pods/forward.ts";
import { conditionOf } from "../../../../../src/pods/pod-state.ts";
import type { Clock } from "../../../../../src/runtime/clock.ts";
import { Events } from "../../../../../src/runtime/event-bus.ts";
import type { NewEvent } from "../../../../../src/runtime/event-recorder.ts";
import { Memories } from "../../../../../src/scheduling/memories.ts";
import { createLogger } from "../../../../../src/telemetry/logger.ts";
import { fieldsOf } from "../../../../support/builders/answers.ts";
import { HOST } from "../../../../support/builders/claim.ts";
import { kubeError } from "../../../../support/builders/kube-error.ts";
import { member as memberOf } from "../../../../support/builders/member.ts";
import { proxyPod, runningStatus } from "../../../../support/builders/pod.ts";
import { fakeClient } from "../../../../support/clients/fake-client.ts";
import { registryOf } from "../../fleet.ts";
import { boundProxy, delegateOf, member, world } from "../world.ts";

const log = createLogger({ level: "silent" });
const GATE = { type: "example.com/open", status: "True" };
const NOW = 1_000_000;

type Resources = NonNullable<Container["resources"]>;

interface Body {
  readonly metadata: {
    readonly resourceVersion?: string;
    readonly labels?: Record<string, string>;
    readonly annotations?: Record<string, string>;
  };
  readonly spec?: { readonly containers?: readonly { readonly image?: string; readonly resources?: Resources }[] };
  readonly status?: { readonly conditions: readonly PodCondition[] };
}

/** A delegate in a member that refuses some patches, and changes others. */
class MemberPod {
  delegate: Stored<Pod>;
  readonly taken: Body[] = [];
  refuses: (body: Body) => string | boolean;
  requests = 0;
  #version = 1;

  constructor(delegate: Stored<Pod>, refuses: (body: Body) => string | boolean) {
    this.delegate = delegate;
    this.refuses = refuses;
  }

  patch(body: Body): Stored<Pod> {
    this.requests += 1;
    const refusal = { verb: "patch" };
    const asked = body.metadata.resourceVersion;
    if (asked !== undefined && asked !== this.delegate.metadata.resourceVersion) {
      throw kubeError("Conflict", "the object has been modified", refusal);
    }
    const refused = this.refuses(body);
    if (refused !== false) {
      const detail = refused === true ? "not in this cluster" : refused;
      throw kubeError(refused === true ? "Unprocessable" : "Forbidden", detail, refusal);
    }
    this.taken.push(body);
    return this.change(body);
  }

  /** Writes a change, whatever the member refuses. */
  change({ metadata, spec: change, status }: Partial<Body>): Stored<Pod> {
    this.#version += 1;
    const { delegate } = this;
    const resourceVersion = String(this.#version);
    // `null` removes a field.
    const set = (status?.conditions ?? []).map((condition) =>
      Object.fromEntries(Object.entries(condition).filter(([, value]) => value !== null)),
    ) as PodCondition[];
    const others = (delegate.status?.conditions ?? []).filter(({ type }) => set.every((other) => other.type !== type));
    const conditions = [...others, ...set];
    const containers = (delegate.spec?.containers ?? []).map((container, at) => {
      const { resources, ...rest } = change?.containers?.[at] ?? {};
      const requests = { ...container.resources?.requests, ...resources?.requests };
      return { ...container, ...rest, ...(Object.keys(requests).length === 0 ? {} : { resources: { requests } }) };
    });
    this.delegate = {
      ...delegate,
      metadata: {
        ...delegate.metadata,
        resourceVersion,
        labels: { ...delegate.metadata.labels, ...metadata?.labels },
        annotations: { ...delegate.metadata.annotations, ...metadata?.annotations },
      },
      spec: { ...delegate.spec, containers },
      status: { ...delegate.status, conditions },
    };
    return this.delegate;
  }
}

/** An exchange whose reports of refusals are collected, as the executor's are. */
function exchangeOf({
  memories,
  host = fakeClient({}),
  members = [],
  clock,
  onEvent = () => {},
}: {
  readonly memories: Memories;
  readonly host?: ClusterClient;
  readonly members?: readonly Member[];
  readonly clock: Pick<Clock, "now" | "wall">;
  readonly onEvent?: (event: NewEvent) => void;
}): DelegateSync {
  const recorder = { record: (_about: object, event: NewEvent) => onEvent(event) };
  const refusedWrites = new RefusedWrites({
    writes: memories.writes,
    recorder,
    events: new Events<ControllerEvents>(),
  });
  const options = { host, identity: HOST, registry: registryOf(members), recorder, refusedWrites, clock };
  return new DelegateSync(options, memories);
}

function exchange(refuses: (body: Body) => string | boolean, made = delegate) {
  const there = new MemberPod(made, refuses);
  const told: string[] = [];
  const clock = { at: NOW };
  const memories = new Memories({ now: () => clock.at });
  const west = fakeClient({
    patch: async (_resource, _ref, patch) => there.patch({ metadata: {}, ...fieldsOf(patch) }),
  });
  const subject = exchangeOf({
    onEvent: ({ message }) => told.push(message),
    memories,
    clock: { now: () => clock.at, wall: () => clock.at },
    members: [memberOf("west", west)],
  });
  const memory = () => memories.of("uid-1");
  const nextAction = (proxy: Stored<Pod>) => forwards(proxy, "west", there.delegate, { memory: memory() }, clock.at)[0];
  /** Carries out decisions until nothing is left to do. */
  const forward = async (proxy: Stored<Pod>): Promise<void> => {
    const context = {
      key: objectKey({ namespace: "team", name: "web-0" }),
      signal: new AbortController().signal,
      heardAt: 0,
      log,
    };
    for (let rounds = 0; rounds < 20; rounds += 1) {
      const action = nextAction(proxy);
      if (action?.type !== "forward") return;
      const before = there.delegate;
      const shown = await subject.forward(action, context);
      const written = before !== there.delegate;
      expect(shown?.(world(proxy, [member("west", { delegate: there.delegate })]))).toBe(true);
      if (written) expect(shown?.(world(proxy, [member("west", { delegate: before })]))).toBe(false);
    }
    throw new Error("it never comes to rest");
  };
  /** Returns the proxy's status on the host after that. */
  const shown = (proxy: Stored<Pod>): PodStatus | undefined =>
    statusFrom(proxy, there.delegate, { refused: refusedResize(proxy, there.delegate, { memory: memory() }) });
  return { forward, shown, there, told, clock, subject, nextAction, memory };
}

const spec = { readinessGates: [{ conditionType: GATE.type }], nodeName: "legation-west" };
const delegate = delegateOf(proxyPod({ spec }), { spec: { ...spec, nodeName: "n" }, status: runningStatus() });

function changed(parts: {
  readonly image?: string;
  readonly labels?: Record<string, string>;
}): ReturnType<typeof boundProxy> {
  const { image = "busybox", labels = {} } = parts;
  return boundProxy({
    metadata: { labels },
    spec: { ...spec, containers: [{ name: "main", image }] },
    status: { ...runningStatus(), conditions: [GATE] },
  });
}

function printsOf(body: Body | undefined): object {
  return JSON.parse(body?.metadata.annotations?.[FORWARDED_ANNOTATION] ?? "{}");
}

test("forwards gates and image, and sends a label that the member refuses once", async () => {
  const { forward, there, told } = exchange(({ metadata }) => metadata.labels !== undefined);
  await forward(changed({ image: "busybox:2", labels: { team: "red" } }));
  expect(there.taken.map(({ status, spec: image }) => status ?? image)).toEqual([
    { conditions: [expect.objectContaining(GATE)] },
    { containers: [{ name: "main", image: "busybox:2" }] },
  ]);
  // The record names the label's owner only when the member has it.
  expect(printsOf(there.taken[1])).toMatchObject({ labels: [] });
  expect(told).toEqual(["Cluster west did not take the changed labels and annotations: not in this cluster"]);
  const before = there.requests;
  await forward(changed({ image: "busybox:2", labels: { team: "red" } }));
  expect(there.requests).toBe(before);
  await forward(changed({ image: "busybox:3", labels: { team: "red" } }));
  expect(there.taken.at(-1)?.spec).toEqual({ containers: [{ name: "main", image: "busybox:3" }] });
  expect(told).toHaveLength(1);
});

test("shows a condition of the member although the member refuses a label", async () => {
  const { forward, shown, there, told } = exchange(({ metadata }) => metadata.labels !== undefined);
  const checked = { type: "example.com/checked", status: "True" };
  const proxy = changed({ labels: { team: "red" } });
  for (const status of ["True", "False"]) {
    there.change({ status: { conditions: [{ ...GATE, status }, checked] } });
    await forward(proxy);
    expect(shown(proxy)?.conditions).toContainEqual(checked);
  }
  expect(printsOf(there.taken.at(-1))).toMatchObject({ labels: [], conditions: [checked.type] });
  expect(told).toEqual(["Cluster west did not take the changed labels and annotations: not in this cluster"]);
});

test("repeats the event of a lasting refusal just before the last one expires", async () => {
  const { forward, told, clock } = exchange(({ metadata }) => metadata.labels !== undefined);
  const proxy = changed({ labels: { team: "red" } });
  for (let minutes = 0; minutes <= 110; minutes += 5) {
    clock.at = NOW + minutes * 60_000;
    await forward(proxy);
  }
  expect(told).toHaveLength(3);
});

test("forwards labels and records the attempt when the member refuses an image", async () => {
  const { forward, there, told } = exchange(({ spec: image }) => image !== undefined);
  await forward(changed({ image: "busybox:2", labels: { team: "red" } }));
  expect(there.delegate.metadata.labels).toMatchObject({ team: "red" });
  expect(printsOf(there.taken.at(-1))).toMatchObject({ labels: ["team"] });
  expect(told).toEqual(["Cluster west did not take the changed spec: not in this cluster"]);
});

test("forwards the rest when the member refuses gates, which stay the host's", async () => {
  const { forward, shown, there, told } = exchange(({ status }) => status !== undefined);
  await forward(changed({ labels: { team: "red" } }));
  expect(there.taken.map(({ metadata }) => metadata.labels)).toEqual([{ team: "red" }]);
  expect(shown(changed({ labels: { team: "red" } }))?.conditions).toContainEqual(GATE);
  expect(told).toEqual(["Cluster west did not take the conditions of the readiness gates: not in this cluster"]);
});

test("sends each change once to a member that refuses everything", async () => {
  const { forward, there } = exchange(() => true);
  const proxy = changed({ image: "busybox:2", labels: { team: "red" } });
  await forward(proxy);
  const before = there.requests;
  await forward(proxy);
  expect(there.requests).toBe(before);
});

test("retries a denial of a starting API server at once, and reports a missing right", async () => {
  const denial =
    'pods "web-0" is forbidden: User "system:serviceaccount:legation-system:legation-west" cannot patch resource "pods" in API group ""';
  const { forward, there, told, clock, memory } = exchange(({ metadata }) => metadata.labels !== undefined && denial);
  const proxy = changed({ labels: { team: "red" } });
  await expect(forward(proxy)).rejects.toMatchObject({ code: "Forbidden" });
  clock.at += 9_999;
  await expect(forward(proxy)).rejects.toMatchObject({ code: "Forbidden" });
  expect([told, memory().held]).toEqual([[], undefined]);
  clock.at += 1;
  await forward(proxy);
  expect(told).toEqual([
    `Cluster west did not take the changed labels and annotations: ${denial}; Legation's ClusterRole there lacks a right that manifests/member/role.yaml has`,
  ]);
  there.refuses = () => false;
  await forward(changed({ labels: { team: "blue" } }));
  expect(there.delegate.metadata.labels).toMatchObject({ team: "blue" });
});

describe("a resize", () => {
  const sized = (cpu: string, generation: number, parts: { readonly labels?: Record<string, string> } = {}) =>
    boundProxy({
      metadata: { generation, ...parts },
      spec: { containers: [{ name: "main", image: "busybox", resources: { requests: { cpu } } }] },
      status: { ...runningStatus(), observedGeneration: 1 },
    });
  const first = sized("100m", 1);
  const small = delegateOf(first, {
    metadata: { generation: 1 },
    spec: { ...first.spec, nodeName: "n" },
    status: { ...runningStatus(), observedGeneration: 1 },
  });
  const cpuOf = ({ spec: { containers = [] } = { containers: [] } }: Pod) => containers[0]?.resources?.requests?.cpu;
  const resizes = ({ spec: change }: Body) => change?.containers?.[0]?.resources !== undefined;
  const pending = (status: PodStatus | undefined) =>
    status?.conditions?.find(({ type }) => type === "PodResizePending");

  test.each([
    ["exceeded quota: small, requested: requests.cpu=100m", "Deferred"],
    ["it is not allowed here", "Infeasible"],
  ])("is pending if the member refuses it (%s), as on a kubelet that cannot do it: %s", async (detail, reason) => {
    const { forward, shown, there, told } = exchange((body) => resizes(body) && detail, small);
    const proxy = sized("200m", 2);
    await forward(proxy);
    expect(cpuOf(there.delegate)).toBe("100m");
    expect(shown(proxy)?.observedGeneration).toBe(2);
    const condition = pending(shown(proxy));
    expect(condition).toEqual({
      type: "PodResizePending",
      status: "True",
      reason,
      message: detail,
      lastTransitionTime: "1970-01-01T00:16:40Z",
      observedGeneration: 2,
    });
    expect(told).toEqual([`Cluster west did not take the changed resources: ${detail}`]);
    // Written once.
    const shows = { ...proxy, status: shown(proxy) ?? {} };
    expect(statusPatch(shows, shown(shows) ?? {})).toBeUndefined();
    // A new controller keeps the condition until it has asked the member itself.
    const restarted = statusFrom(shows, there.delegate);
    expect(pending(restarted)).toEqual(condition);
  });

  test("is repeated five minutes after a refusal, and done when it is accepted", async () => {
    const { forward, shown, there, clock, memory } = exchange(resizes, small);
    const proxy = sized("200m", 2, { labels: { team: "red" } });
    await forward(proxy);
    // The refusal holds up nothing else.
    expect(there.delegate.metadata.labels).toMatchObject({ team: "red" });
    const before = there.requests;
    clock.at += 299_999;
    await forward(proxy);
    expect(there.requests).toBe(before);
    const observed = world(proxy, [member("west", { delegate: there.delegate })], { memory: memory() });
    expect(decide(observed, clock.at).requeueAt).toBe(clock.at + 1);
    clock.at += 1;
    there.refuses = () => false;
    await forward(proxy);
    expect(cpuOf(there.delegate)).toBe("200m");
    expect(pending(shown({ ...proxy, status: { conditions: [{ type: "PodResizePending", status: "True" }] } }))).toBe(
      undefined,
    );
    expect(specFollows(proxy, there.delegate)).toBe(true);
    expect(printsOf(there.taken.at(-1))).toHaveProperty(["spec", "resources/main"]);
  });

  test("that is withdrawn after a refusal leaves later changes of the member alone", async () => {
    const { forward, there } = exchange(resizes, small);
    await forward(sized("200m", 2));
    there.refuses = () => false;
    await forward(sized("100m", 3));
    there.change({ spec: { containers: [{ resources: { requests: { cpu: "150m" } } }] } });
    await forward(sized("100m", 3));
    expect(cpuOf(there.delegate)).toBe("150m");
  });

  test("that happens long after it was given up, when another one has happened, is refused", async () => {
    const { forward, there, subject, nextAction } = exchange(() => false, small);
    const context = {
      key: objectKey({ namespace: "team", name: "web-0" }),
      signal: new AbortController().signal,
      heardAt: 0,
      log,
    };
    const proxy = sized("200m", 2);
    const opening = nextAction(proxy);
    if (opening?.type === "forward") await subject.forward(opening, context);
    const late = nextAction(proxy);
    if (late?.type !== "forward") throw new Error("no resize");
    expect(late.patch.subresource).toBe("resize");
    await forward(sized("300m", 3));
    await expect(subject.forward(late, context)).rejects.toMatchObject({ code: "Conflict" });
    expect(cpuOf(there.delegate)).toBe("300m");
  });
});

test.each(["Unprocessable", "Forbidden", "BadRequest"] as const)(
  "writes phase and reason alone of an end that the host's API server refuses (%s)",
  async (code) => {
    const written: object[] = [];
    const told: string[] = [];
    const host = fakeClient({
      patch: async (_resource, _ref, patch) => {
        const { status = {} }: { status?: object } = fieldsOf(patch);
        if ("containerStatuses" in status) {
          throw kubeError(code, "containerStatuses: Invalid value", { cluster: "host", verb: "patch" });
        }
        written.push(status);
        return { metadata: { uid: "proxy-uid", resourceVersion: "9" } };
      },
    });
    const subject = exchangeOf({
      host,
      memories: new Memories({ now: () => 1_000_000 }),
      clock: { now: () => 1_000_000, wall: () => 1_000_000 },
      onEvent: ({ reason }) => told.push(reason),
    });
    const context = {
      key: objectKey({ namespace: "team", name: "web-0" }),
      signal: new AbortController().signal,
      heardAt: 0,
      log,
    };
    const conditions = [{ type: "Ready", status: "False" }];
    const send = (status: Record<string, unknown>) =>
      subject.status(
        { type: "status", patch: { metadata: { uid: "proxy-uid" }, status }, resourceVersion: "1" },
        context,
      );

    await send({ phase: "Running", containerStatuses: [] });
    expect(written).toEqual([]);
    const shown = await send({ phase: "Failed", reason: "Evicted", conditions, containerStatuses: [], startTime: "t" });
    expect(written).toEqual([{ phase: "Failed", reason: "Evicted", conditions }]);
    expect(shown).toBeTypeOf("function");
    expect(told).toEqual(["StatusRefused"]);
  },
);

test("repeats an end that a starting API server denies before it knows the roles", async () => {
  const detail =
    'pods "web-0" is forbidden: User "system:serviceaccount:legation-system:legation-controller" cannot patch resource "pods/status"';
  const denied = kubeError("Forbidden", detail, { cluster: "host", verb: "patch" });
  const told: string[] = [];
  const subject = exchangeOf({
    host: fakeClient({ patch: () => Promise.reject(denied) }),
    memories: new Memories({ now: () => 1_000_000 }),
    clock: { now: () => 1_000_000, wall: () => 1_000_000 },
    onEvent: ({ reason }) => told.push(reason),
  });
  const context = {
    key: objectKey({ namespace: "team", name: "web-0" }),
    signal: new AbortController().signal,
    heardAt: 0,
    log,
  };
  const patch = { metadata: { uid: "proxy-uid" }, status: { phase: "Failed", reason: "Evicted" } };
  await expect(subject.status({ type: "status", patch, resourceVersion: "1" }, context)).rejects.toBe(denied);
  expect(told).toEqual([]);
});

describe("a write without effect", () => {
  const context = {
    key: objectKey({ namespace: "team", name: "web-0" }),
    signal: new AbortController().signal,
    heardAt: 0,
    log,
  };
  const clock = { now: () => NOW, wall: () => NOW };

  test("is not repeated at once if it is a status that the host's API server drops", async () => {
    let sent = 0;
    const host = fakeClient({
      patch: async () => {
        sent += 1;
        return { metadata: { uid: "proxy-uid", resourceVersion: "1" } };
      },
    });
    const subject = exchangeOf({ host, memories: new Memories(clock), clock });
    const patch = { metadata: { uid: "proxy-uid" }, status: { phase: "Running" } };
    await subject.status({ type: "status", patch, resourceVersion: "1" }, context);
    await subject.status({ type: "status", patch, resourceVersion: "1" }, context);
    expect(sent).toBe(1);
  });

  test("is refused if it is a resize in a member without resizes, and later changes are forwarded", async () => {
    const told: string[] = [];
    const memories = new Memories(clock);
    const detail = "the server could not find the requested resource";
    const unknown = kubeError("NotFound", detail, { verb: "patch", resource: "pods/resize" });
    const client = fakeClient({ patch: () => Promise.reject(unknown) });
    const subject = exchangeOf({
      members: [memberOf("west", client)],
      onEvent: ({ message }) => told.push(message),
      memories,
      clock,
    });
    const body = { metadata: { uid: "delegate-uid" }, spec: { containers: [{ name: "main", resources: {} }] } };
    const patch = { subresource: "resize", body } as const;
    const action = { type: "forward", member: "west", proxyUid: "uid-1", resourceVersion: "1", patch } as const;
    const shown = await subject.forward(action, context);
    expect(shown?.(world(undefined, []))).toBe(true);
    expect(told).toEqual([`Cluster west did not take the changed resources: ${detail}`]);
    expect(memories.of("uid-1").held?.resize?.refusal?.why).toEqual({ reason: "Infeasible", message: detail });
  });
});

describe("a write that another manager keeps undoing", () => {
  /** Returns the number of requests when another manager answers each write at once. */
  const contest = async (
    { forward, there }: ReturnType<typeof exchange>,
    wanted: (round: number) => Stored<Pod>,
    undo: (round: number) => Partial<Body>,
    rounds = 20,
  ): Promise<number> => {
    const before = there.requests;
    for (let round = 0; round < rounds; round += 1) {
      await forward(wanted(round));
      there.change(undo(round));
    }
    return there.requests - before;
  };
  const red = (): Stored<Pod> => changed({ labels: { team: "red" } });
  const blue = (): Partial<Body> => ({ metadata: { labels: { team: "blue" } } });
  const withGate = (gate: PodCondition): Stored<Pod> =>
    boundProxy({ spec, status: { ...runningStatus(), conditions: [gate] } });
  const at = (seconds: number): string => new Date(NOW + seconds * 1000).toISOString();

  test("is held for five minutes after five writes in the member, and reported once", async () => {
    const subject = exchange(() => false);
    const { forward, there, told, clock } = subject;
    // The first forwards the gate.
    expect(await contest(subject, red, blue)).toBe(6);
    expect(told).toEqual([
      "Cluster west: another client there keeps undoing the changed labels and annotations (team); they are left so for five minutes",
    ]);
    clock.at += 299_999;
    await forward(red());
    expect(there.delegate.metadata.labels).toMatchObject({ team: "blue" });
    clock.at += 1;
    await forward(red());
    expect(there.delegate.metadata.labels).toMatchObject({ team: "red" });
    expect(told).toHaveLength(1);
  });

  test("is decided on again when the hold is over", async () => {
    const subject = exchange(() => false);
    await contest(subject, red, blue);
    const { there, memory, clock } = subject;
    const proxy = { ...red(), status: subject.shown(red()) ?? {} };
    const observed = world(proxy, [member("west", { delegate: there.delegate })], { memory: memory() });
    expect(decide(observed, clock.at)).toMatchObject({ actions: [], requeueAt: clock.at + 300_000 });
  });

  test("does not hold up the author's next change", async () => {
    const subject = exchange(() => false);
    await contest(subject, red, blue);
    await subject.forward(changed({ labels: { team: "red", stage: "two" } }));
    expect(subject.there.delegate.metadata.labels).toMatchObject({ team: "red", stage: "two" });
  });

  test("is repeated each time if it is undone now and then", async () => {
    const subject = exchange(() => false);
    const later = (): Stored<Pod> => {
      subject.clock.at += 15_001;
      return red();
    };
    expect(await contest(subject, later, blue)).toBe(21);
    expect(subject.told).toEqual([]);
  });

  test("does not count changes of the author to and fro", async () => {
    const subject = exchange(() => false);
    const wanted = (round: number): Stored<Pod> =>
      changed({ labels: { role: round % 2 === 0 ? "leader" : "replica" } });
    expect(await contest(subject, wanted, () => ({}))).toBe(21);
    expect(subject.told).toEqual([]);
  });

  test.each([
    ["with its own time on each change", 1],
    ["without times", undefined],
  ])("is held if it is a readiness gate, %s", async (_name, times) => {
    const subject = exchange(() => false);
    const { there, forward } = subject;
    const sets = (status: string, time: number): PodCondition => ({
      ...GATE,
      status,
      ...(times === undefined ? {} : { lastTransitionTime: at(time) }),
    });
    let opened = 0;
    for (let round = 0; round < 20; round += 1) {
      // Each side sets it when it sees the other's change.
      await forward(withGate(sets("True", 2 * round)));
      if (conditionOf(there.delegate, GATE.type)?.status === "True") opened += 1;
      const shut = sets("False", 2 * round + 1);
      there.change({ status: { conditions: [shut] } });
      await forward(withGate(shut));
    }
    expect(opened).toBe(5);
    expect(subject.told).toEqual([
      "Cluster west: another client there keeps undoing the conditions of the readiness gates (example.com/open); they are left so for five minutes",
    ]);
  });

  test("does not count gates that open and shut on the host, or whose time alone changes", async () => {
    for (const wanted of [
      (round: number) =>
        withGate({ ...GATE, status: round % 2 === 0 ? "True" : "False", lastTransitionTime: at(round) }),
      (round: number) => withGate({ ...GATE, lastTransitionTime: at(round) }),
    ]) {
      const subject = exchange(() => false);
      await contest(subject, wanted, () => ({ status: { conditions: [] } }));
      expect(subject.told).toEqual([]);
    }
  });

  test("does not count gates that are shut together and opened one after the other", async () => {
    const types = ["example.com/a", "example.com/b"];
    const subject = exchange(() => false);
    const wanted = (round: number): Stored<Pod> => {
      const opened = round % 3;
      const conditions = types.map((type, index) => ({ type, status: index < opened ? "True" : "False" }));
      const readinessGates = types.map((conditionType) => ({ conditionType }));
      return boundProxy({
        spec: { ...spec, readinessGates },
        status: {
          ...runningStatus(),
          conditions: conditions.map((one) => ({ ...one, lastTransitionTime: at(round) })),
        },
      });
    };
    expect(await contest(subject, wanted, () => ({}), 30)).toBe(30);
    expect(subject.told).toEqual([]);
  });

  test("is held for five minutes after five writes on the host, and reported once", async () => {
    const told: string[] = [];
    const clock = { at: NOW };
    let version = 1;
    const memories = new Memories({ now: () => clock.at });
    const subject = exchangeOf({
      host: fakeClient({
        patch: () => {
          version += 2;
          return Promise.resolve({ metadata: { uid: "uid-1", resourceVersion: String(version) } });
        },
      }),
      memories,
      clock: { now: () => clock.at, wall: () => clock.at },
      onEvent: ({ reason, message }) => told.push(`${reason}: ${message}`),
    });
    const context = {
      key: objectKey({ namespace: "team", name: "web-0" }),
      signal: new AbortController().signal,
      heardAt: 0,
      log,
    };
    const send = (ip: string) =>
      subject.status(
        {
          type: "status",
          patch: { metadata: { uid: "uid-1" }, status: { podIP: ip } },
          resourceVersion: String(version),
        },
        context,
      );
    for (let round = 0; round < 20; round += 1) await send("10.0.0.1");
    expect(version).toBe(11);
    expect(told).toEqual([
      "StatusUndone: another client in this cluster keeps undoing the status that the member tells (podIP); it is left so for five minutes",
    ]);
    await send("10.0.0.2");
    expect(version).toBe(13);
    clock.at += 300_000;
    await send("10.0.0.1");
    expect(version).toBe(15);
    for (let round = 0; round < 10; round += 1) await send(`10.0.1.${round % 2}`);
    expect(version).toBe(35);
    expect(told).toHaveLength(1);
  });
});
