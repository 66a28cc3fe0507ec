import { describe, expect, test } from "vitest";
import { OVERFLOW_LABEL_VALUE, PROXY_LABEL } from "../../../../src/api/keys.ts";
import { type KubeObject, objectKey, type Pod, type Stored } from "../../../../src/api/kubernetes.ts";
import type { Member } from "../../../../src/clusters/member.ts";
import { UnmarkedPods } from "../../../../src/controllers/overflow/binding-labels.ts";
import { Executor } from "../../../../src/controllers/overflow/execute.ts";
import type { Action, Observed } from "../../../../src/controllers/overflow/model.ts";
import type { OverflowPlacement } from "../../../../src/controllers/overflow/placement.ts";
import { DEPENDENCIES } from "../../../../src/copies/dependencies.ts";
import { toCopy } from "../../../../src/copies/kind.ts";
import type { ListOptions } from "../../../../src/kube/client.ts";
import { KubeError } from "../../../../src/kube/errors.ts";
import type { NewEvent } from "../../../../src/runtime/event-recorder.ts";
import { createLogger } from "../../../../src/telemetry/logger.ts";
import { kubeError } from "../../../support/builders/kube-error.ts";
import { cluster, member } from "../../../support/builders/member.ts";
import { pod } from "../../../support/builders/pod.ts";
import { fakeClient } from "../../../support/clients/fake-client.ts";
import { noting, type Write } from "../writes.ts";

const log = createLogger({ level: "silent" });

const DELEGATE = pod({ uid: "", spec: { containers: [{ name: "main", image: "as-overridden" }] } });
const WAITING = pod({ metadata: { labels: { [PROXY_LABEL]: OVERFLOW_LABEL_VALUE } } });
const KEY = objectKey(WAITING.metadata);
const { uid, resourceVersion } = WAITING.metadata;
const STARTED_AT = Date.parse("2026-11-24T12:00:00Z");
const OVERFLOW = { type: "overflow", uid, resourceVersion, member: "west" } as const;
const MARK = { type: "mark", uid, member: "west" } as const;

interface Setting {
  /** The pod without a node. */
  readonly waiting?: Stored<Pod>;
  /** Results of lists in the member and on the host, or their error. */
  readonly inMember?: readonly KubeObject[] | KubeError;
  readonly onHost?: readonly KubeObject[];
  /** The pod as the host shows it after its Binding; absent if it is gone. */
  readonly stored?: Stored<Pod>;
  readonly reserve?: OverflowPlacement["reserve"];
  /** The member gets the classes that the pod names. */
  readonly provided?: boolean;
  /** The member's answer to a dry-run, if a test waits for that. */
  readonly trial?: Promise<object>;
  /** By that answer, the member has no room for the pod. */
  readonly overfull?: boolean;
  /** Why the member cannot have the pod's NetworkPolicies. */
  readonly rules?: string;
  /** Errors of the Binding and of patches, in order; none means success. */
  readonly failures?: Partial<Record<"binding" | "patch", KubeError[]>>;
}

/** Returns a pod as the controller observes it when it is not due. */
function observedOf(shown: Stored<Pod>): Observed {
  const view = (): never => {
    throw new Error("the pod is not due");
  };
  return { pod: shown, supported: true, optedIn: true, seen: { unplacedAt: 0 }, afterMs: 0, reported: false, view };
}

/** Returns an executor whose host records its writes. */
function executing(setting: Setting) {
  const { waiting = WAITING, inMember = [], onHost = [], stored, reserve = () => true, failures = {} } = setting;
  const writes: string[] = [];
  const refusals: string[] = [];
  const asked: string[] = [];
  const fail = (what: "binding" | "patch"): void => {
    const failure = failures[what]?.shift();
    if (failure !== undefined) throw failure;
  };
  const demanded: Write[] = [];
  const answers = fakeClient({
    cluster: "host",
    createSubresource: async (_resource: object, _ref: object, subresource: string) => {
      fail("binding");
      writes.push(subresource);
    },
    find: async () => stored,
    list: async () => ({ items: onHost }),
    patch: async (_resource, _ref, patch) => {
      fail("patch");
      writes.push(JSON.stringify(patch.body));
      return {};
    },
  });
  const host = noting(answers, demanded);
  const client = fakeClient({
    create: async () => setting.trial ?? {},
    list: async ({ kind }: { kind: string }, { namespace, fieldSelector }: ListOptions = {}) => {
      asked.push(`${kind} ${namespace} ${fieldSelector}`);
      if (inMember instanceof KubeError) throw inMember;
      return { items: inMember };
    },
  });
  const west = member("west", client);
  const registry: { west: Member | undefined } = { west };
  const unmarked = new UnmarkedPods();
  const given: string[] = [];
  const executor = new Executor({
    host,
    identity: { id: "host-1", name: "host" },
    registry: { member: () => registry.west },
    placement: {
      delegateIn: () => DELEGATE,
      reserve,
      giveUp: (gone) => void given.push(gone),
      leave: () => {},
      acceptedBy: () => false,
      noteStored: () => setting.overfull !== true,
      refusedBy: (_pod, { cluster, reason, message }) => void refusals.push(`${cluster}: ${reason}: ${message}`),
    },
    copyRefusal: () => setting.rules,
    providesClasses: () => setting.provided === true,
    recorder: {
      record: (_about: object, { reason, mayExist = false }: NewEvent) =>
        writes.push(mayExist ? `${reason}, if missing` : reason),
    },
    podOf: () => waiting,
    unmarked,
    groups: { read: async () => {} },
    clock: { wall: () => STARTED_AT },
    onReported: () => {},
    onRoom: () => {},
  });
  const context = { key: KEY, signal: new AbortController().signal, heardAt: 0, log };
  return {
    writes,
    demanded,
    refusals,
    asked,
    unmarked,
    given,
    west,
    registry,
    bindingTo: (member: string) => executor.bindingTo(member),
    execute: (action: Action) => executor.execute(action, context),
  };
}

function bound(proxyLabel: string, node = "legation-west"): Stored<Pod> {
  return pod({ metadata: { labels: { [PROXY_LABEL]: proxyLabel } }, spec: { nodeName: node } });
}

function failure(code: "AnswerLost" | "Conflict" | "ServerError"): KubeError {
  return kubeError(code, "no", { cluster: "host", verb: "patch" });
}

const MARKS =
  '{"metadata":{"uid":"uid-1","labels":{"legation.dev/proxy":"true"},"annotations":{"legation.dev/cluster":"west"}}}';

describe("a pod that is bound to a virtual node", () => {
  test.each<[string, Stored<Pod> | undefined]>([
    ["its Binding has made it a proxy", bound("true")],
    ["it is gone", undefined],
  ])("gets no further write when %s", async (_, stored) => {
    const { execute, writes, unmarked } = executing(stored === undefined ? {} : { stored });
    await execute(OVERFLOW);
    expect(unmarked.get(KEY)?.spec?.nodeName).toBe("legation-west");
    await execute(MARK);
    expect(writes).toEqual(["binding", "Overflowed"]);
    expect(unmarked.get(KEY)).toBeUndefined();
  });

  test("is patched into a proxy if an API server has not copied the Binding's labels, until that succeeds", async () => {
    const { execute, writes, unmarked } = executing({
      stored: bound("overflow"),
      failures: { patch: [failure("ServerError")] },
    });
    await execute(OVERFLOW);
    await expect(execute(MARK)).rejects.toThrow("no");
    expect(unmarked.get(KEY)).toBeDefined();
    await execute(MARK);
    expect(writes).toEqual(["binding", "Overflowed", MARKS]);
    expect(unmarked.get(KEY)).toBeUndefined();
  });

  test("is made a proxy after a Binding without a response, too", async () => {
    const { execute, writes, unmarked } = executing({
      stored: bound("overflow"),
      failures: { binding: [failure("AnswerLost")] },
    });
    await expect(execute(OVERFLOW)).rejects.toThrow("no");
    expect(unmarked.get(KEY)).toBeDefined();
    await execute(MARK);
    expect(writes).toEqual([MARKS]);
  });

  test.each<[string, Stored<Pod> | undefined, string[]]>([
    ["was not bound", WAITING, []],
    ["has a node of the host", bound("overflow", "node-1"), []],
    ["is gone, and its reservation is released", undefined, [uid]],
  ])("is left alone when it %s", async (_, stored, givenUp) => {
    const { execute, writes, given } = executing(stored === undefined ? {} : { stored });
    await execute(MARK);
    expect(writes).toEqual([]);
    expect(given).toEqual(givenUp);
  });
});

test("leaves a pod on the host if the member would make it larger than its room, and ranks the members anew", async () => {
  const { execute, writes, given } = executing({ overfull: true });
  const shown = await execute(OVERFLOW);
  expect([writes, given]).toEqual([[], [uid]]);
  expect(shown?.(observedOf(WAITING))).toBe(true);
});

test.each([
  ["2026-11-24T11:59:59Z", "NotOverflowed, if missing"],
  ["2026-11-24T12:00:01Z", "NotOverflowed"],
])("records why a pod of %s stays on the host, once in the pod's life: %s", async (creationTimestamp, recorded) => {
  const { execute, writes } = executing({ waiting: pod({ metadata: { creationTimestamp } }) });
  await execute({ type: "tell", uid, message: "no member has room" });
  expect(writes).toEqual([recorded]);
});

describe("a Cluster that is deleted while its member is asked about a pod", () => {
  const trial = Promise.withResolvers<object>();

  test.each<[string, (scene: ReturnType<typeof executing>) => void]>([
    [
      "is leaving",
      ({ west }) => (west.cluster = cluster("west", { metadata: { deletionTimestamp: "2026-11-24T00:00:00Z" } })),
    ],
    ["has left", ({ registry }) => (registry.west = undefined)],
    ["was created anew", ({ registry, west }) => (registry.west = member("west", west.client))],
  ])("does not get the pod once it %s", async (_, change) => {
    const scene = executing({ trial: trial.promise });
    const done = scene.execute(OVERFLOW);
    change(scene);
    trial.resolve({});
    const shown = await done;
    expect(scene.writes).toEqual([]);
    expect(scene.given).toEqual([uid]);
    // The pod is decided on again at once.
    expect(shown?.(observedOf(WAITING))).toBe(true);
  });

  test("stays until it is known whether the pod was bound", async () => {
    const asked = Promise.withResolvers<object>();
    const { execute, bindingTo } = executing({
      trial: asked.promise,
      stored: bound("true"),
      failures: { binding: [failure("AnswerLost")] },
    });
    const done = execute(OVERFLOW);
    expect([bindingTo("west"), bindingTo("east")]).toEqual([1, 0]);
    asked.resolve({});
    await expect(done).rejects.toThrow("no");
    expect(bindingTo("west")).toBe(1);
    await execute(MARK);
    expect(bindingTo("west")).toBe(0);
  });

  test("is not held up by a pod that its member refuses", async () => {
    const { execute, bindingTo } = executing({ rules: "refused" });
    await execute(OVERFLOW);
    expect(bindingTo("west")).toBe(0);
  });
});

test.each([
  ["binds it where the class follows", true, ["binding", "Overflowed"], []],
  [
    "refuses it where the class does not follow",
    false,
    [],
    ["west: RefusedByMember: its API server refused the pod: no PriorityClass with name batch was found"],
  ],
] as const)("handles a pod whose class the member lacks: %s", async (_, provided, written, refused) => {
  const lacking = kubeError("Forbidden", "no PriorityClass with name batch was found");
  const { execute, writes, refusals } = executing({ trial: Promise.reject(lacking), provided });
  await execute(OVERFLOW);
  expect([writes, refusals]).toEqual([written, refused]);
});

test("looks for no marks on a pod that the host's scheduler has placed first", async () => {
  const { execute, unmarked } = executing({ failures: { binding: [failure("Conflict")] } });
  await execute(OVERFLOW);
  expect(unmarked.get(KEY)).toBeUndefined();
});

test("reserves room for the delegate's requests, as overrides make it", async () => {
  const kept: Pod[] = [];
  const reserve: OverflowPlacement["reserve"] = (_pod, _member, delegate) => {
    kept.push(delegate);
    return false;
  };
  const { execute, writes } = executing({ reserve });
  await execute(OVERFLOW);
  expect(kept).toEqual([DELEGATE]);
  expect(writes).toEqual([]);
});

test("finds bound pods without marks of an earlier leader on the virtual nodes", async () => {
  const asked: (string | undefined)[] = [];
  const host = fakeClient({
    list: async (_resource: object, { fieldSelector }: { fieldSelector?: string }) => {
      asked.push(fieldSelector);
      return { items: asked.length === 1 ? [bound("overflow")] : [] };
    },
  });
  const unmarked = new UnmarkedPods();
  expect(await unmarked.find(host, ["west", "east"], new AbortController().signal)).toEqual([KEY]);
  expect(asked).toEqual(["spec.nodeName=legation-west", "spec.nodeName=legation-east"]);
});

describe("a pod that needs a ConfigMap", () => {
  const configMap = {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { namespace: "team", name: "settings", uid: "source", resourceVersion: "1" },
  };
  const copy = toCopy(DEPENDENCIES.ConfigMap, configMap, { id: "host-1", name: "host" });
  const elsewhere = toCopy(DEPENDENCIES.ConfigMap, configMap, { id: "host-2", name: "another" });
  const waiting = needing("settings");
  const FOREIGN =
    "west: RefusedByMember: ConfigMap settings, which the pod needs, is there already and was not made by Legation for this host";

  function needing(name: string): Stored<Pod> {
    const envFrom = [{ configMapRef: { name } }];
    return pod({
      metadata: { labels: { [PROXY_LABEL]: OVERFLOW_LABEL_VALUE } },
      spec: { serviceAccountName: "robot", containers: [{ name: "main", image: "busybox", envFrom }] },
    });
  }

  test.each<[string, KubeObject]>([
    ["a foreign one", configMap],
    ["another host's copy", elsewhere],
  ])("is not bound to a member that has %s of that name", async (_, there) => {
    const { execute, writes, refusals, given, asked } = executing({ waiting, inMember: [there], onHost: [configMap] });
    await execute(OVERFLOW);
    expect(writes).toEqual([]);
    expect(refusals).toEqual([FOREIGN]);
    expect(given).toEqual([uid]);
    // The member's service account is used in place.
    expect(asked).toEqual(["ConfigMap team metadata.name=settings"]);
  });

  test.each<[string, Setting]>([
    ["there is none", { onHost: [configMap] }],
    ["there is this host's copy", { inMember: [copy], onHost: [configMap] }],
    ["there is one, and none on the host", { inMember: [configMap] }],
    [
      "it is each cluster's own",
      { waiting: needing("istio-ca-root-cert"), inMember: [configMap], onHost: [configMap] },
    ],
  ])("is bound to a member where %s", async (_, setting) => {
    const { execute, writes, refusals } = executing({ waiting, ...setting });
    await execute(OVERFLOW);
    expect(writes).toEqual(["binding", "Overflowed"]);
    expect(refusals).toEqual([]);
  });

  test("is not bound to a member whose ConfigMaps cannot be read", async () => {
    const { execute, writes, refusals } = executing({ waiting, inMember: unread("Forbidden") });
    await execute(OVERFLOW);
    expect(writes).toEqual([]);
    expect(refusals).toEqual([
      "west: RefusedByMember: whether it has ConfigMap settings, which the pod needs, cannot be read: no",
    ]);
  });

  test("is tried again later in a member that does not answer", async () => {
    const { execute, writes, refusals } = executing({ waiting, inMember: unread("AnswerLost") });
    await expect(execute(OVERFLOW)).rejects.toThrow("no");
    expect([...writes, ...refusals]).toEqual([]);
  });

  function unread(code: "Forbidden" | "AnswerLost"): KubeError {
    return kubeError(code, "no", { verb: "list", resource: "configmaps" });
  }
});

test("binds no pod to a member that cannot have its NetworkPolicies", async () => {
  const { execute, writes, refusals } = executing({ rules: "its API server refused NetworkPolicy rules" });
  await execute(OVERFLOW);
  expect(writes).toEqual([]);
  expect(refusals).toEqual(["west: RefusedByMember: its API server refused NetworkPolicy rules"]);
});

describe("a pod that becomes a proxy", () => {
  test.each<[string, Action, string, object]>([
    [
      "is bound in the version for which the host had no node",
      OVERFLOW,
      "host create binding",
      { uid, resourceVersion },
    ],
    ["is patched by the uid that was bound", MARK, "host patch", { uid }],
  ])("%s", async (_, action, to, demands) => {
    const { execute, demanded } = executing({ stored: bound("overflow") });
    await execute(action);
    expect(demanded).toEqual([{ to, demands }]);
  });
});
