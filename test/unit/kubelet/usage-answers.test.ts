import { expect, test } from "vitest";
import { cadvisorMetrics, resourceMetrics, statsSummary } from "../../../src/kubelet/usage-answers.ts";
import { containerStatus, pod } from "../../support/builders/pod.ts";

const AT = Date.UTC(2026, 0, 1, 12);
const used = (cores: number) => ({ at: AT, cores, coreSeconds: cores * 60, memoryBytes: 4096 });
const busy = {
  failed: false,
  node: used(4),
  pods: [
    {
      pod: pod({ name: "web", uid: "host-uid", status: { startTime: "2026-01-01T11:58:00Z" } }),
      containers: [
        { name: "main", startedAt: AT - 60_000, usage: used(0.5) },
        { name: "sidecar", startedAt: AT - 60_000, usage: used(0.25) },
      ],
    },
  ],
};

test("formats a kubelet's metrics: counters and gauges with the time of their measurement", () => {
  const lines = resourceMetrics(busy).split("\n");
  expect(lines.filter((line) => !line.startsWith("#") && line !== "")).toEqual([
    `container_cpu_usage_seconds_total{container="main",namespace="team",pod="web"} 30 ${AT}`,
    `container_cpu_usage_seconds_total{container="sidecar",namespace="team",pod="web"} 15 ${AT}`,
    `container_memory_working_set_bytes{container="main",namespace="team",pod="web"} 4096 ${AT}`,
    `container_memory_working_set_bytes{container="sidecar",namespace="team",pod="web"} 4096 ${AT}`,
    `container_start_time_seconds{container="main",namespace="team",pod="web"} ${AT / 1000 - 60}`,
    `container_start_time_seconds{container="sidecar",namespace="team",pod="web"} ${AT / 1000 - 60}`,
    `node_cpu_usage_seconds_total 240 ${AT}`,
    `node_memory_working_set_bytes 4096 ${AT}`,
    `pod_cpu_usage_seconds_total{namespace="team",pod="web"} 45 ${AT}`,
    `pod_memory_working_set_bytes{namespace="team",pod="web"} 8192 ${AT}`,
    "resource_scrape_error 0",
  ]);
  expect(lines).toContain("# TYPE pod_cpu_usage_seconds_total counter");
  expect(lines).toContain("# TYPE container_start_time_seconds gauge");
});

test("escapes labels, so that none can add a sample", () => {
  const name = 'x"} 1\nup{y="\\';
  const containers = [{ name, startedAt: AT, usage: used(1) }];
  const lines = resourceMetrics({ failed: false, pods: [{ pod: pod({ name: "web" }), containers }] }).split("\n");
  expect(lines.filter((line) => line.startsWith("up"))).toEqual([]);
  expect(lines).toContain(
    String.raw`container_cpu_usage_seconds_total{container="x\"} 1\nup{y=\"\\",namespace="team",pod="web"} 60 ${AT}`,
  );
});

test.each([
  [true, 1],
  [false, 0],
])("returns no samples of an unknown member; failed: %s", (failed, told) => {
  expect(resourceMetrics({ failed, pods: [] })).toMatch(
    new RegExp(`^# HELP .*\n# TYPE .*\nresource_scrape_error ${told}\n$`),
  );
  expect(statsSummary("legation-west", { failed, pods: [] })).toEqual({
    node: { nodeName: "legation-west" },
    pods: [],
  });
});

test("adds the running image to cAdvisor's metrics", () => {
  const status = { containerStatuses: [containerStatus({ image: "web:1" })] };
  const pods = [
    { pod: pod({ name: "web", status }), containers: [{ name: "main", startedAt: AT - 60_000, usage: used(0.5) }] },
  ];
  const lines = cadvisorMetrics({ failed: false, pods }).split("\n");
  expect(lines.filter((line) => !line.startsWith("#") && line !== "")).toEqual([
    `container_cpu_usage_seconds_total{cpu="total",container="main",image="web:1",namespace="team",pod="web"} 30 ${AT}`,
    `container_memory_working_set_bytes{container="main",image="web:1",namespace="team",pod="web"} 4096 ${AT}`,
    `container_start_time_seconds{container="main",image="web:1",namespace="team",pod="web"} ${AT / 1000 - 60}`,
    "container_scrape_error 0",
  ]);
});

test("names the host's pods in the summary, with rates beside counters", () => {
  const time = "2026-01-01T12:00:00.000Z";
  const startTime = "2026-01-01T11:59:00.000Z";
  const memory = { time, workingSetBytes: 4096 };
  expect(statsSummary("legation-west", busy)).toEqual({
    node: {
      nodeName: "legation-west",
      cpu: { time, usageNanoCores: 4e9, usageCoreNanoSeconds: 240e9 },
      memory,
    },
    pods: [
      {
        podRef: { name: "web", namespace: "team", uid: "host-uid" },
        startTime: "2026-01-01T11:58:00Z",
        containers: [
          { name: "main", startTime, cpu: { time, usageNanoCores: 5e8, usageCoreNanoSeconds: 30e9 }, memory },
          { name: "sidecar", startTime, cpu: { time, usageNanoCores: 25e7, usageCoreNanoSeconds: 15e9 }, memory },
        ],
        cpu: { time, usageNanoCores: 75e7, usageCoreNanoSeconds: 45e9 },
        memory: { time, workingSetBytes: 8192 },
      },
    ],
  });
});
