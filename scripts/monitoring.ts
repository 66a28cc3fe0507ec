import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { createClusterClient } from "../src/kube/http-client.ts";
import { loadKubeConfig } from "../src/kube/kubeconfig.ts";
import { pods } from "../src/kube/resources.ts";
import { freePort } from "../test/support/clusters/ports.ts";
import { startClusters } from "../test/support/clusters/start.ts";
import { delegatedPod, numbered } from "../test/support/delegated/pods.ts";
import { freshNamespace } from "../test/support/harness/namespace.ts";
import { startLegation } from "../test/support/legation/start.ts";
import { ensurePrometheus } from "../test/support/monitoring/build.ts";
import { expressions, MONITORING } from "../test/support/monitoring/expressions.ts";
import { startPrometheus } from "../test/support/monitoring/server.ts";
import { readOptions } from "./options.ts";

const USAGE = `Checks the rules of examples/monitoring and runs their tests with promtool.

  npm run monitoring -- [--live]

  --live  asks a real Prometheus that scrapes a running Legation for whatever alerts and panels ask for`;
const { values } = readOptions(USAGE, { live: { type: "boolean", default: false } });
const progress = (line: string): void => console.error(`monitoring: ${line}`);

/** Series that a healthy Legation lacks, and why. */
const EMPTY: Readonly<Record<string, string>> = {
  "alert LegationWebhookMissing": "a webhook is scraped",
  "alert LegationRequestsFail": "no request fails",
  "alert LegationRequestsRefused": "nothing is refused",
  "alert LegationEventsLost": "no event is lost",
  "panel Errors": "no request fails",
  ...Object.fromEntries(
    ["alert LegationRelayFailing", "panel Connections open", "panel Bytes carried", "panel Connections cut"].map(
      (title) => [title, "no relay is scraped"],
    ),
  ),
  ...Object.fromEntries(
    [
      "Workloads that wait",
      "Workloads admitted",
      "Wait until admission",
      "Quota by flavor",
      "Quota used",
      "Workloads evicted",
    ].map((title) => [`panel ${title}`, "no Kueue is scraped"]),
  ),
};

const promtool = await ensurePrometheus("promtool", progress);
for (const args of [
  ["check", "rules", "alerts.yaml"],
  ["test", "rules", "alerts.test.yaml"],
]) {
  const { status } = spawnSync(promtool, args, { cwd: MONITORING, stdio: "inherit" });
  if (status !== 0) process.exit(status ?? 1);
}
if (!values.live) process.exit(0);

await using clusters = await startClusters({ names: ["host", "west", "east"], onProgress: progress });
const host = clusters.get("host");
const [controllerPort, webhookPort] = [await freePort(), await freePort()];
await using _legation = await startLegation({
  host,
  members: { west: clusters.get("west"), east: clusters.get("east") },
  env: {
    LEGATION_HEALTH_LISTEN: `127.0.0.1:${controllerPort}`,
    LEGATION_METRICS_LISTEN: `127.0.0.1:${webhookPort}`,
  },
  onProgress: progress,
});
const directory = mkdtempSync(join(tmpdir(), "legation-prometheus-"));
const targets = { controller: `127.0.0.1:${controllerPort}`, webhook: `127.0.0.1:${webhookPort}` };
let failed = false;
{
  await using prometheus = await startPrometheus({ directory, targets, onProgress: progress });
  const client = createClusterClient({
    cluster: "host",
    credentials: loadKubeConfig({ kubeconfig: host.kubeconfig, env: {} }),
  });
  const labels = { "legation.dev/delegation": "annotated" };
  // The folder is removed with its cluster.
  const namespace = await freshNamespace(host, { prefix: "monitored", labels, onFinished: () => undefined });
  progress("pods come and go for half a minute");
  for (let round = 0; round < 6; round += 1) {
    const names = numbered(`round-${round}`, 3);
    for (const name of names) await client.create(pods, delegatedPod(namespace, name));
    await sleep(4_000);
    for (const name of names.slice(1)) await client.delete(pods, { namespace, name });
    await sleep(1_500);
  }
  for (const { of, expr } of expressions()) {
    const samples = await prometheus.query(expr);
    const numbers = samples.filter(({ value }) => value !== "NaN");
    const reason = EMPTY[of];
    const fine = samples.length > 0 || reason !== undefined;
    failed ||= !fine;
    const [first] = numbers;
    const shown = samples.length === 0 ? `nothing${reason === undefined ? "" : `: ${reason}`}` : "";
    const example = first === undefined ? "" : `, e.g. ${JSON.stringify(first.labels)} ${first.value}`;
    console.log(`${fine ? "ok    " : "EMPTY "} ${of}: ${shown || `${samples.length} series${example}`}`);
  }
  const alerts = await prometheus.alerts();
  console.log(`alerts that are pending or firing: ${alerts.length === 0 ? "none" : JSON.stringify(alerts)}`);
  failed ||= alerts.length > 0;
  await client.close();
}
rmSync(directory, { recursive: true, force: true });
process.exitCode = failed ? 1 : 0;
