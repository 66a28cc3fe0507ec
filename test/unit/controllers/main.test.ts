import { afterEach, beforeEach, expect, test } from "vitest";
import { startControllers } from "../../../src/controllers/main.ts";
import { createClusterClient } from "../../../src/kube/connect.ts";
import { credentialsFromKubeconfigText } from "../../../src/kube/kubeconfig.ts";
import { realClock } from "../../../src/runtime/clock.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { type Fleet, fleetOf, kubeconfigOf } from "../../bench/scale/fleet.ts";
import { eventually } from "../../support/harness/wait.ts";

let fleet: Fleet;
beforeEach(async () => {
  fleet = await fleetOf(2, 4);
});
afterEach(() => fleet.close());

const connect = (cluster: string, kubeconfig: string) =>
  createClusterClient({
    cluster,
    credentials: credentialsFromKubeconfigText(kubeconfig, { allowExec: false, env: {}, source: cluster }),
  });

test("controllers that are told to end before they have started leave no watch behind", async () => {
  const ended = new AbortController();
  const watches = (): number => [fleet.host, ...fleet.members].reduce((sum, { openWatches }) => sum + openWatches, 0);
  fleet.host.silent.add("pods");
  const host = connect("host", kubeconfigOf("host", fleet.host.url));
  const starting = startControllers(
    {
      host,
      connect: (name, kubeconfig) => ({
        client: connect(name, kubeconfig),
        server: "https://member",
        renew: () => false,
      }),
      clock: realClock,
      log: createLogger({ level: "silent" }),
    },
    ended.signal,
  );
  const refused = expect(starting).rejects.toThrow("the lease was lost");
  // Clusters, Secrets, nodes and what is read in members.
  await eventually(() => watches() > 6, { intervalMs: 20 });
  ended.abort(new Error("the lease was lost"));
  await refused;
  await eventually(() => watches() === 0, { intervalMs: 20 });
  await host.close();
});
