import { expect, test } from "vitest";
import { Registry } from "../../../src/clusters/registry.ts";
import type { WatchEvent } from "../../../src/kube/client.ts";
import { KubeError } from "../../../src/kube/errors.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { FakeClock } from "../../support/clock/fake-clock.ts";
import { fakeClient } from "../cli/client.ts";

const nothing = (): void => {};
const listener = {
  onDelegate: nothing,
  onEnded: nothing,
  onCapacity: nothing,
  onResponsive: nothing,
  onConnection: nothing,
  onCluster: nothing,
  onClusterStatus: nothing,
  onReconnected: nothing,
};
const cluster = {
  metadata: { name: "west", uid: "u", resourceVersion: "1" },
  spec: { credentialsSecret: { name: "member-west" }, probe: { periodSeconds: 300 } },
};
const secret = (kubeconfig: string): object => ({
  metadata: { namespace: "legation-system", name: "member-west", uid: "s", resourceVersion: kubeconfig },
  data: { kubeconfig: btoa(kubeconfig) },
});

test("probes a member at once after its credentials were replaced", async () => {
  const clock = new FakeClock();
  const written = Promise.withResolvers<WatchEvent<never>>();
  const host = fakeClient({
    list: (async ({ plural }: { plural: string }) => {
      const items = plural === "clusters" ? [cluster] : [secret("1")];
      return { items, resourceVersion: "1", size: 0 };
    }) as never,
    watch: async function* ({ plural }: { plural: string }, { onOpen }: { onOpen?: () => void }) {
      onOpen?.();
      if (plural === "secrets") yield await written.promise;
      await new Promise(nothing);
    } as never,
  });
  let current = "";
  const refused = { code: "Unauthorized", cluster: "west", verb: "get", resource: "/readyz" } as const;
  const client = fakeClient({
    raw: async () => {
      if (current === "1") throw new KubeError("the token has ended", refused);
      return {};
    },
    list: () => Promise.reject(new KubeError("not now", { ...refused, code: "ServerError" })),
  });
  const registry = new Registry({
    host,
    hostId: "host",
    connect: (_name, kubeconfig) => {
      current = kubeconfig;
      const renew = (next: string): boolean => {
        current = next;
        return true;
      };
      return { client, server: "https://192.0.2.1", renew };
    },
    listener,
    clock,
    log: createLogger({ level: "silent" }),
  });
  await registry.start(new AbortController().signal);
  await clock.advance(2_000);
  expect(registry.member("west")?.probed).toMatchObject({
    reachable: false,
    message: expect.stringContaining("ended"),
  });
  written.resolve({ type: "MODIFIED", object: secret("2") as never, size: 0 });
  await expect.poll(() => current).toBe("2");
  await clock.advance(1_000);
  expect(registry.member("west")?.probed.reachable).toBe(true);
  await registry.member("west")?.stop();
});
