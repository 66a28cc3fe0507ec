import { describe, expect, test } from "vitest";
import { OVERFLOW_LABEL_VALUE, PROXY_LABEL } from "../../../../src/api/keys.ts";
import { objectKey, type Pod, type Stored } from "../../../../src/api/kubernetes.ts";
import type { OverflowPlacement } from "../../../../src/controllers/delegation/overflow-placement.ts";
import { Executor } from "../../../../src/controllers/overflow/execute.ts";
import type { Action } from "../../../../src/controllers/overflow/model.ts";
import { Unmarked } from "../../../../src/controllers/overflow/unmarked.ts";
import { KubeError } from "../../../../src/kube/errors.ts";
import { createLogger } from "../../../../src/telemetry/logger.ts";
import { pod } from "../../../support/builders/pod.ts";
import { fakeClient } from "../../cli/client.ts";

const log = createLogger({ level: "silent" });

const DELEGATE = pod({ uid: "", spec: { containers: [{ name: "main", image: "as-overridden" }] } });
const WAITING = pod({ metadata: { labels: { [PROXY_LABEL]: OVERFLOW_LABEL_VALUE } } });
const KEY = objectKey(WAITING.metadata);
const { uid, resourceVersion } = WAITING.metadata;
const OVERFLOW = { type: "overflow", uid, resourceVersion, member: "west", delegate: DELEGATE } as const;
const MARK = { type: "mark", uid, member: "west" } as const;

interface Setting {
  /** The pod as the host shows it after its Binding; absent: it is gone. */
  readonly stored?: Stored<Pod>;
  readonly reserve?: OverflowPlacement["reserve"];
  /** What comes of the Binding, and then of patches, in this order; nothing: they succeed. */
  readonly failures?: Partial<Record<"binding" | "patch", KubeError[]>>;
}

/** An executor whose host notes what is written to it. */
function executing({ stored, reserve = () => true, failures = {} }: Setting) {
  const writes: string[] = [];
  const fail = (what: "binding" | "patch"): void => {
    const failure = failures[what]?.shift();
    if (failure !== undefined) throw failure;
  };
  const host = fakeClient({
    createSubresource: (async (_resource: object, _ref: object, subresource: string) => {
      fail("binding");
      writes.push(subresource);
    }) as never,
    find: (async () => stored) as never,
    patch: (async (_resource: object, _ref: object, patch: { body: unknown }) => {
      fail("patch");
      writes.push(JSON.stringify(patch.body));
    }) as never,
    create: (async (_resource: object, { reason }: { reason: string }) => {
      writes.push(reason);
    }) as never,
  });
  const west = {
    name: "west",
    client: fakeClient({ create: (async () => ({})) as never }),
    cluster: { spec: {} },
    answerOf: (promise: Promise<unknown>) => promise,
  };
  const unmarked = new Unmarked();
  const given: string[] = [];
  const executor = new Executor({
    host,
    registry: { member: () => west },
    placement: { reserve, giveUp: (gone: string) => given.push(gone), leave: () => {}, acceptedBy: () => false },
    podOf: () => WAITING,
    unmarked,
    clock: { now: () => 0, wall: () => 0 },
    onRoom: () => {},
    log,
  } as never);
  const context = { key: KEY, signal: new AbortController().signal, heardAt: 0, log };
  return { writes, unmarked, given, execute: (action: Action) => executor.execute(action, context) };
}

function bound(proxyLabel: string, node = "legation-west"): Stored<Pod> {
  return pod({ metadata: { labels: { [PROXY_LABEL]: proxyLabel } }, spec: { nodeName: node } });
}

function failure(code: "AnswerLost" | "Conflict" | "ServerError"): KubeError {
  return new KubeError("no", { code, cluster: "host", verb: "patch", resource: "pods" });
}

const MARKS =
  '{"metadata":{"uid":"uid-1","labels":{"legation.dev/proxy":"true"},"annotations":{"legation.dev/cluster":"west"}}}';

describe("a pod that is bound to a virtual node", () => {
  test.each<[string, Stored<Pod> | undefined]>([
    ["its Binding has made it a proxy", bound("true")],
    ["it is gone", undefined],
  ])("is written to no more when %s", async (_, stored) => {
    const { execute, writes, unmarked } = executing(stored === undefined ? {} : { stored });
    await execute(OVERFLOW);
    expect(unmarked.get(KEY)?.spec?.nodeName).toBe("legation-west");
    await execute(MARK);
    expect(writes).toEqual(["binding", "Overflowed"]);
    expect(unmarked.get(KEY)).toBeUndefined();
  });

  test("is made a proxy by hand where an API server has not copied the Binding's labels, until that succeeds", async () => {
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

  test("by a Binding that nobody has answered is made a proxy, too", async () => {
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
    ["was not bound after all", WAITING, []],
    ["has a node of the host", bound("overflow", "node-1"), []],
    ["is gone, and what was kept for it is given up", undefined, [uid]],
  ])("is not touched when it %s", async (_, stored, givenUp) => {
    const { execute, writes, given } = executing(stored === undefined ? {} : { stored });
    await execute(MARK);
    expect(writes).toEqual([]);
    expect(given).toEqual(givenUp);
  });
});

test("a pod that the host's scheduler was faster with is not looked at for marks", async () => {
  const { execute, unmarked } = executing({ failures: { binding: [failure("Conflict")] } });
  await execute(OVERFLOW);
  expect(unmarked.get(KEY)).toBeUndefined();
});

test("room is kept for what the delegate requests, as overrides make it", async () => {
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

test("pods that an earlier leader has left bound and unmarked are found on the virtual nodes", async () => {
  const asked: (string | undefined)[] = [];
  const host = fakeClient({
    list: (async (_resource: object, { fieldSelector }: { fieldSelector?: string }) => {
      asked.push(fieldSelector);
      return { items: asked.length === 1 ? [bound("overflow")] : [] };
    }) as never,
  });
  const unmarked = new Unmarked();
  expect(await unmarked.find(host, ["west", "east"], new AbortController().signal)).toEqual([KEY]);
  expect(asked).toEqual(["spec.nodeName=legation-west", "spec.nodeName=legation-east"]);
});
