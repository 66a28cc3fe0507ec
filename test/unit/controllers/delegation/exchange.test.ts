import { expect, test } from "vitest";
import { FORWARDED_ANNOTATION } from "../../../../src/api/keys.ts";
import { forwards } from "../../../../src/controllers/delegation/decide-forwarding.ts";
import { Exchange } from "../../../../src/controllers/delegation/exchange.ts";
import { Memories } from "../../../../src/controllers/delegation/memory.ts";
import { KubeError } from "../../../../src/kube/errors.ts";
import { createLogger } from "../../../../src/telemetry/logger.ts";
import { proxyPod, runningStatus } from "../../../support/builders/pod.ts";
import { fakeClient } from "../../cli/client.ts";
import { boundProxy, delegateOf, member } from "./world.ts";

const log = createLogger({ level: "silent" });
const GATE = { type: "example.com/open", status: "True" };

interface Body {
  readonly metadata: {
    readonly labels?: Record<string, string>;
    readonly annotations?: Record<string, string>;
  };
  readonly spec?: { readonly containers?: readonly object[] };
  readonly status?: object;
}

/** What a member that refuses some patches has taken, and what the author was told, after all forwards of one decision. */
function exchange(refuses: (body: Body) => boolean): {
  readonly forward: (proxy: ReturnType<typeof boundProxy>, delegate: ReturnType<typeof delegateOf>) => Promise<void>;
  readonly taken: Body[];
  readonly told: string[];
  readonly requests: () => number;
} {
  const taken: Body[] = [];
  const told: string[] = [];
  let requests = 0;
  const west = {
    name: "west",
    noteFailure: () => {},
    client: fakeClient({
      patch: (async (_resource: unknown, _ref: unknown, { body }: { readonly body: Body }) => {
        requests += 1;
        if (refuses(body)) {
          const refusal = { code: "Unprocessable", cluster: "west", verb: "patch", resource: "pods" } as const;
          throw new KubeError("not in this cluster", refusal);
        }
        taken.push(body);
        return { metadata: { uid: "delegate-uid", resourceVersion: String(requests + 1) } };
      }) as never,
    }),
  };
  const options = {
    authorEvents: { tell: (_about: unknown, { message }: { readonly message: string }) => told.push(message) },
    memories: new Memories(),
    clock: { now: () => 1_000_000, wall: () => 1_000_000 },
    registry: { member: () => west },
  };
  const subject = new Exchange(options as never);
  const forward = async (proxy: ReturnType<typeof boundProxy>, delegate: ReturnType<typeof delegateOf>) => {
    const context = { key: "team/web-0" as never, signal: new AbortController().signal, heardAt: 0, log };
    for (const action of forwards(proxy, member("west"), delegate)) {
      if (action.type === "forward") await subject.forward(action, context);
    }
  };
  return { forward, taken, told, requests: () => requests };
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

test("a label that the member refuses holds up neither the gates nor the image, and is tried once", async () => {
  const { forward, taken, told, requests } = exchange(({ metadata }) => metadata.labels !== undefined);
  const proxy = changed({ image: "busybox:2", labels: { team: "red" } });
  await forward(proxy, delegate);
  expect(taken.map(({ status, spec: image }) => status ?? image)).toEqual([
    { conditions: [expect.objectContaining(GATE)] },
    { containers: [{ name: "main", image: "busybox:2" }] },
  ]);
  // Who has the label is not said before the member has it.
  expect(printsOf(taken[1])).toMatchObject({ labels: [] });
  expect(told).toEqual(["Cluster west did not take the changed labels and annotations: not in this cluster"]);
  const before = requests();
  const annotations = { ...delegate.metadata.annotations, ...taken[1]?.metadata.annotations };
  const conditions = [...(delegate.status?.conditions ?? []), GATE];
  const followed = {
    ...delegate,
    metadata: { ...delegate.metadata, annotations },
    spec: { ...delegate.spec, containers: [{ name: "main", image: "busybox:2" }] },
    status: { ...delegate.status, conditions },
  };
  await forward(proxy, followed);
  expect(requests()).toBe(before);
  await forward(changed({ image: "busybox:3", labels: { team: "red" } }), followed);
  expect(taken.at(-1)?.spec).toEqual({ containers: [{ name: "main", image: "busybox:3" }] });
  expect(told).toHaveLength(1);
});

test("an image that the member refuses does not hold up the labels, and counts as tried", async () => {
  const { forward, taken, told } = exchange(({ spec: image }) => image !== undefined);
  await forward(changed({ image: "busybox:2", labels: { team: "red" } }), delegate);
  expect(taken.at(-1)?.metadata.labels).toEqual({ team: "red" });
  expect(printsOf(taken.at(-1))).toMatchObject({ labels: ["team"] });
  expect(told).toEqual(["Cluster west did not take the changed spec: not in this cluster"]);
});

test("gates that the member refuses do not hold up the rest", async () => {
  const { forward, taken, told } = exchange(({ status }) => status !== undefined);
  await forward(changed({ labels: { team: "red" } }), delegate);
  expect(taken.map(({ metadata }) => metadata.labels)).toEqual([{ team: "red" }]);
  expect(told).toEqual(["Cluster west did not take the conditions of the readiness gates: not in this cluster"]);
});

test.each(["Unprocessable", "Forbidden", "BadRequest"] as const)(
  "an end that the host's API server refuses (%s) is told by its phase and reason alone",
  async (code) => {
    const written: Record<string, unknown>[] = [];
    const told: string[] = [];
    const host = fakeClient({
      patch: (async (
        _resource: unknown,
        _ref: unknown,
        { body }: { readonly body: { status: Record<string, unknown> } },
      ) => {
        if ("containerStatuses" in body.status) {
          const refusal = { code, cluster: "host", verb: "patch", resource: "pods" } as const;
          throw new KubeError("containerStatuses: Invalid value", refusal);
        }
        written.push(body.status);
        return { metadata: { uid: "proxy-uid", resourceVersion: "9" } };
      }) as never,
    });
    const subject = new Exchange({
      host,
      memories: new Memories(),
      clock: { now: () => 1_000_000, wall: () => 1_000_000 },
      authorEvents: { tell: (_about: unknown, { reason }: { readonly reason: string }) => told.push(reason) },
    } as never);
    const context = { key: "team/web-0" as never, signal: new AbortController().signal, heardAt: 0, log };
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

test("an end that an API server denies which has just started, and knows no roles yet, is told when it does", async () => {
  const detail =
    'pods "web-0" is forbidden: User "system:serviceaccount:legation-system:legation-controller" cannot patch resource "pods/status"';
  const denied = new KubeError(detail, { code: "Forbidden", cluster: "host", verb: "patch", resource: "pods" });
  const told: string[] = [];
  const subject = new Exchange({
    host: fakeClient({ patch: (() => Promise.reject(denied)) as never }),
    memories: new Memories(),
    clock: { now: () => 1_000_000, wall: () => 1_000_000 },
    authorEvents: { tell: (_about: unknown, { reason }: { readonly reason: string }) => told.push(reason) },
  } as never);
  const context = { key: "team/web-0" as never, signal: new AbortController().signal, heardAt: 0, log };
  const patch = { metadata: { uid: "proxy-uid" }, status: { phase: "Failed", reason: "Evicted" } };
  await expect(subject.status({ type: "status", patch, resourceVersion: "1" }, context)).rejects.toBe(denied);
  expect(told).toEqual([]);
});
