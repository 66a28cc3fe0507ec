import { expect, test } from "vitest";
import { KubeletMetrics } from "../../../src/telemetry/kubelet.ts";

async function samples(metrics: KubeletMetrics): Promise<Record<string, string>> {
  const lines = (await metrics.text()).split("\n").filter((line) => /^[a-z]/.test(line));
  return Object.fromEntries(lines.map((line) => [line.replace(/ \S+$/, ""), line.split(" ").at(-1) ?? ""]));
}

const EXEC = '{method="POST",path="exec",server_type="readwrite",long_running="true"}';

test("exports a node's name, and its pods at the time of the scrape", async () => {
  let running = 1;
  const metrics = new KubeletMetrics("legation-west", () => ({
    running,
    containers: { running: 2 * running, exited: 1 },
  }));
  expect(await samples(metrics)).toMatchObject({ kubelet_running_pods: "1" });
  running = 3;
  expect(await samples(metrics)).toEqual({
    'kubelet_node_name{node="legation-west"}': "1",
    kubelet_running_pods: "3",
    'kubelet_running_containers{container_state="running"}': "6",
    'kubelet_running_containers{container_state="exited"}': "1",
  });
});

test("counts a request from its beginning, and as in flight until its end", async () => {
  const metrics = new KubeletMetrics("legation-west", () => ({ running: 0, containers: { running: 0, exited: 0 } }));
  const end = metrics.begin("POST", "exec");
  expect(await samples(metrics)).toMatchObject({
    [`kubelet_http_requests_total${EXEC}`]: "1",
    [`kubelet_http_inflight_requests${EXEC}`]: "1",
  });
  end();
  expect(await samples(metrics)).toMatchObject({
    [`kubelet_http_requests_total${EXEC}`]: "1",
    [`kubelet_http_inflight_requests${EXEC}`]: "0",
    [`kubelet_http_requests_duration_seconds_count${EXEC}`]: "1",
  });
});
