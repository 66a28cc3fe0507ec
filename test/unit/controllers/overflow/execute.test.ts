import { expect, test } from "vitest";
import type { ObjectKey, Pod, Stored } from "../../../../src/api/kubernetes.ts";
import type { Delegation } from "../../../../src/controllers/overflow/controller.ts";
import { Executor } from "../../../../src/controllers/overflow/execute.ts";
import { createLogger } from "../../../../src/telemetry/logger.ts";
import { pod } from "../../../support/builders/pod.ts";
import { fakeClient } from "../../cli/client.ts";

const log = createLogger({ level: "silent" });

const DELEGATE = pod({ uid: "", spec: { containers: [{ name: "main", image: "as-overridden" }] } });

/** What is written to the host for a pod that overflows to `west`, after its Binding showed `stored`. */
async function writesAfterBinding(
  stored: Stored<Pod> | undefined,
  reserve: Delegation["reserve"] = () => true,
): Promise<string[]> {
  const writes: string[] = [];
  const waiting = pod({ metadata: { labels: { "legation.dev/proxy": "overflow" } } });
  const host = fakeClient({
    createSubresource: (async (_resource: object, _ref: object, subresource: string) => {
      writes.push(subresource);
    }) as never,
    find: (async () => stored) as never,
    patch: (async (_resource: object, _ref: object, patch: { body: unknown }) => {
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
  const executor = new Executor({
    host,
    registry: { member: () => west },
    delegation: { reserve, giveUp: () => {}, leave: () => {}, acceptedBy: () => false },
    podOf: () => waiting,
    clock: { now: () => 0, wall: () => 0 },
    onRoom: () => {},
    log,
  } as never);
  const { uid, resourceVersion } = waiting.metadata;
  const action = { type: "overflow", uid, resourceVersion, member: "west", delegate: DELEGATE } as const;
  const context = { key: "team/web-0" as ObjectKey, signal: new AbortController().signal, heardAt: 0, log };
  await executor.execute(action, context);
  return writes;
}

test("a pod that its Binding has made a proxy is written to no more", async () => {
  const proxy = pod({ metadata: { labels: { "legation.dev/proxy": "true" } } });
  expect(await writesAfterBinding(proxy)).toEqual(["binding", "Overflowed"]);
  expect(await writesAfterBinding(undefined)).toEqual(["binding", "Overflowed"]);
});

test("where an API server has not copied the Binding's labels, the pod is made a proxy by hand", async () => {
  const bound = pod({ metadata: { labels: { "legation.dev/proxy": "overflow" } } });
  expect(await writesAfterBinding(bound)).toEqual([
    "binding",
    '{"metadata":{"uid":"uid-1","labels":{"legation.dev/proxy":"true"},"annotations":{"legation.dev/cluster":"west"}}}',
    "Overflowed",
  ]);
});

test("room is kept for what the delegate requests, as overrides make it", async () => {
  const kept: (Pod | undefined)[] = [];
  const refused = await writesAfterBinding(undefined, (_pod, _member, delegate) => {
    kept.push(delegate);
    return false;
  });
  expect(kept).toEqual([DELEGATE]);
  expect(refused).toEqual([]);
});
