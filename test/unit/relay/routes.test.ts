import { afterEach, expect, test } from "vitest";
import { RELAY_SLICE_MANAGER } from "../../../src/api/relay.ts";
import { SERVICE_NAME_LABEL, SLICE_MANAGER_LABEL } from "../../../src/copies/services.ts";
import { Routes } from "../../../src/relay/routes.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { fakeClient } from "../../support/clients/fake-client.ts";
import { FakeClock } from "../../support/clock/fake-clock.ts";

const log = createLogger({ level: "silent" });

let routes: Routes | undefined;
afterEach(() => routes?.stop());

function slice(namespace: string, created: string, port: number): object {
  const labels = { [SERVICE_NAME_LABEL]: "far-web", [SLICE_MANAGER_LABEL]: RELAY_SLICE_MANAGER };
  const metadata = { namespace, name: `far-web-${port}`, labels, uid: `${namespace} ${port}`, resourceVersion: "1" };
  return {
    metadata: { ...metadata, creationTimestamp: created },
    addressType: "IPv4",
    ports: [{ name: "http", port }],
  };
}

test("a port leads to the Service whose slice has had it for longest, whatever other slices say", async () => {
  const slices = [
    slice("later", "2026-01-01T00:00:02Z", 40_001),
    slice("shop", "2026-01-01T00:00:01Z", 40_000),
    slice("shop-too", "2026-01-01T00:00:01Z", 40_001),
    slice("later", "2026-01-01T00:00:02Z", 40_000),
  ];
  const host = fakeClient({
    list: async ({ plural }, { labelSelector = "" } = {}) => ({
      items: plural === "endpointslices" && labelSelector.startsWith(SLICE_MANAGER_LABEL) ? slices : [],
      resourceVersion: "1",
      size: 0,
    }),
    watch: async function* (_resource, { signal, onOpen }) {
      onOpen?.();
      yield* [];
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
    },
  });
  routes = new Routes({ host, clock: new FakeClock(), log, onPorts: () => {}, onLost: () => {} });
  await routes.start(new AbortController().signal);
  expect([...routes.ports].map(([port, { namespace }]) => [port, namespace])).toEqual([
    [40_000, "shop"],
    [40_001, "shop-too"],
  ]);
});
