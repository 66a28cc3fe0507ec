import { expect, onTestFinished, test } from "vitest";
import { type KubeObject, type ObjectKey, objectKey, type Pod, type Stored } from "../../../src/api/kubernetes.ts";
import { DelegateRequests } from "../../../src/clusters/delegate-requests.ts";
import { MemberDelegates } from "../../../src/clusters/member-delegates.ts";
import type { WatchEvent, WatchOptions } from "../../../src/kube/client.ts";
import { ByteBudget } from "../../../src/kube/limits.ts";
import type { Resource } from "../../../src/kube/resources.ts";
import { toDelegate } from "../../../src/pods/delegate.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { answerOf, listing } from "../../support/builders/answers.ts";
import { proxyPod } from "../../support/builders/pod.ts";
import { fakeClient } from "../../support/clients/fake-client.ts";
import { FakeClock } from "../../support/clock/fake-clock.ts";

const HOST = { id: "host-id", name: "cern" };

test("has no delegate in a pod that someone derived from one with its marks, neither now nor after its end", async () => {
  const made = toDelegate(proxyPod(), HOST);
  const inMember = (name: string, namespace = "team"): Stored<Pod> => ({
    ...made,
    metadata: { ...made.metadata, name, namespace, uid: `${namespace}/${name}`, resourceVersion: "1" },
  });
  const all = [inMember("web-0"), inMember("web-0-debug"), inMember("web-0", "elsewhere")];
  const goes = Promise.withResolvers<void>();
  const changed: ObjectKey[] = [];
  const delegates = new MemberDelegates({
    client: fakeClient({
      list: listing(() => all),
      watch: async function* <T extends KubeObject>(
        _resource: Resource<T>,
        { signal, onOpen }: WatchOptions,
      ): AsyncGenerator<WatchEvent<T>> {
        onOpen?.();
        await goes.promise;
        for (const object of all) yield { type: "DELETED", object: answerOf<T>(object), size: 1 };
        await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
      },
    }),
    hostId: HOST.id,
    requests: new DelegateRequests(),
    budget: new ByteBudget(1e6),
    clock: new FakeClock(),
    log: createLogger({ level: "silent" }),
    onChange: (key) => changed.push(key),
    onEnded: () => {},
    onState: () => {},
  });
  onTestFinished(() => delegates.reflector.stop());
  const keys = all.map(({ metadata }) => objectKey(metadata));
  delegates.reflector.start();
  await expect.poll(() => changed).toEqual(keys);
  expect(keys.map((key) => delegates.get(key) !== undefined)).toEqual([true, false, false]);
  goes.resolve();
  await expect.poll(() => changed).toEqual([...keys, ...keys]);
  expect(keys.map((key) => delegates.departed(key) !== undefined)).toEqual([true, false, false]);
});
