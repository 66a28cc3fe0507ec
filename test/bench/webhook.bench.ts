import { Agent, request } from "node:https";
import { setTimeout as sleep } from "node:timers/promises";
import { type Figure, quantile } from "./figures.ts";
import { cpuMs } from "./process-usage.ts";

const RATE = 500;
const SECONDS = 15;
const WARM_UP_SECONDS = 3;

/** Admission reviews at a steady rate against a running webhook, one pod each. */
export async function benchWebhook(port: number, pid: number): Promise<Figure[]> {
  const agent = new Agent({ keepAlive: true, maxSockets: 16, rejectUnauthorized: false });
  const latencies: number[] = [];
  const failures: string[] = [];
  const startedAt = performance.now();
  const total = RATE * (WARM_UP_SECONDS + SECONDS);
  const open = new Set<Promise<void>>();
  let cpuAtStart = 0;
  for (let index = 0; index < total; index++) {
    await sleep(Math.max(0, startedAt + (index * 1000) / RATE - performance.now()));
    if (index === RATE * WARM_UP_SECONDS) cpuAtStart = cpuMs(pid);
    const sentAt = performance.now();
    const answer = review(port, agent, index).then(
      (status) => {
        if (status !== 200) failures.push(String(status));
        else if (index >= RATE * WARM_UP_SECONDS) latencies.push(performance.now() - sentAt);
      },
      (error: unknown) => {
        failures.push(String(error));
      },
    );
    open.add(answer);
    void answer.then(() => open.delete(answer));
  }
  await Promise.all(open);
  const share = (100 * (cpuMs(pid) - cpuAtStart)) / (SECONDS * 1000);
  agent.destroy();
  return [
    { name: `webhook at ${RATE} reviews/s: P50`, value: quantile(latencies, 0.5), unit: "ms" },
    { name: `webhook at ${RATE} reviews/s: P99`, value: quantile(latencies, 0.99), unit: "ms", target: { atMost: 5 } },
    { name: `webhook at ${RATE} reviews/s: processor`, value: share, unit: "% of a core", target: { atMost: 100 } },
    { name: `webhook at ${RATE} reviews/s: failures`, value: failures.length, unit: "", target: { atMost: 0 } },
  ];
}

function review(port: number, agent: Agent, index: number): Promise<number> {
  const body = JSON.stringify({
    apiVersion: "admission.k8s.io/v1",
    kind: "AdmissionReview",
    request: {
      uid: `uid-${index}`,
      kind: { group: "", version: "v1", kind: "Pod" },
      resource: { group: "", version: "v1", resource: "pods" },
      namespace: "bench",
      operation: "CREATE",
      userInfo: { username: "system:serviceaccount:kube-system:replicaset-controller" },
      object: {
        apiVersion: "v1",
        kind: "Pod",
        metadata: {
          generateName: "web-",
          namespace: "bench",
          labels: { app: "web", "pod-template-hash": "b6c4b4d9f" },
          annotations: { "legation.dev/delegate": "true", "legation.dev/cluster-selector": "region in (eu,us)" },
        },
        spec: {
          containers: [
            {
              name: "main",
              image: "web:1",
              env: Array.from({ length: 20 }, (_, n) => ({ name: `V${n}`, value: "v" })),
            },
          ],
        },
      },
      options: { kind: "CreateOptions", apiVersion: "meta.k8s.io/v1" },
    },
  });
  return new Promise((resolve, reject) => {
    const sent = request(
      {
        host: "127.0.0.1",
        port,
        path: "/mutate/annotated",
        method: "POST",
        agent,
        headers: { "content-type": "application/json", "content-length": Buffer.byteLength(body) },
      },
      (answer) => {
        answer.resume();
        answer.once("end", () => resolve(answer.statusCode ?? 0));
      },
    );
    sent.once("error", reject);
    sent.end(body);
  });
}
