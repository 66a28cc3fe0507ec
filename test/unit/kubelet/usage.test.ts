import { describe, expect, test } from "vitest";
import { CpuCounters, podsOfNode, runningSince, sumOf } from "../../../src/kubelet/usage.ts";
import { containerStatus, pod } from "../../support/builders/pod.ts";

const STARTED = Date.UTC(2026, 0, 1);

function measured(seconds: number, cores: number) {
  return { at: STARTED + seconds * 1000, cores, memoryBytes: 1024 };
}

describe("counters from rates", () => {
  test("grow by the rate, over the time between two measurements", () => {
    const counters = new CpuCounters();
    const told = [measured(10, 0.5), measured(25, 2), measured(40, 0)].map((sample) => {
      counters.begin();
      return counters.count("main", sample, STARTED)?.coreSeconds;
    });
    expect(told).toEqual([expect.closeTo(5, 3), expect.closeTo(35, 3), expect.closeTo(35, 3)]);
  });

  test("stay when the same measurement is read again, or an older one", () => {
    const counters = new CpuCounters();
    const told = [measured(20, 1), measured(20, 1), measured(10, 1), measured(20, 1)].map((sample) => {
      counters.begin();
      return counters.count("main", sample, STARTED);
    });
    expect(told.map((usage) => usage?.coreSeconds)).toEqual(Array(4).fill(expect.closeTo(20, 3)));
    expect(told.map((usage) => usage?.at)).toEqual(Array(4).fill(STARTED + 20_000));
  });

  test("start below those of another leader, whatever a long-running container uses now", () => {
    const days = 30 * 24 * 60 * 60;
    const earlier = new CpuCounters();
    earlier.begin();
    earlier.count("main", measured(days - 3_600, 0.1), STARTED);
    earlier.begin();
    const last = earlier.count("main", measured(days, 0.1), STARTED);
    const next = new CpuCounters();
    const told = [measured(days + 15, 0.5), measured(days + 30, 0.5)].map((sample) => {
      next.begin();
      return next.count("main", sample, STARTED)?.coreSeconds ?? Number.NaN;
    });
    expect(told[0]).toBeLessThan(last?.coreSeconds ?? 0);
    expect(told).toEqual([expect.closeTo(0, 3), expect.closeTo(7.5, 3)]);
  });

  test.each([
    { age: 60, begins: 120 },
    { age: 61, begins: 0 },
  ])("begin with the use since the start in a container of $age s: $begins core seconds", ({ age, begins }) => {
    const counters = new CpuCounters();
    counters.begin();
    expect(counters.count("main", measured(age, 2), STARTED)?.coreSeconds).toBeCloseTo(begins, 3);
  });

  test("are never zero, which readers take for not measured", () => {
    const counters = new CpuCounters();
    counters.begin();
    expect(counters.count("idle", measured(10, 0), STARTED)?.coreSeconds).toBeGreaterThan(0);
    expect(counters.count("node", measured(10, 3))?.coreSeconds).toBeGreaterThan(0);
  });

  test("continue after a round without measurements", () => {
    const counters = new CpuCounters();
    counters.begin();
    counters.count("main", measured(10, 1), STARTED);
    counters.begin();
    expect(counters.count("main", undefined, STARTED)).toBeUndefined();
    counters.begin();
    expect(counters.count("main", measured(30, 1), STARTED)?.coreSeconds).toBeCloseTo(30, 3);
  });

  test("are forgotten if no caller reads them", () => {
    const counters = new CpuCounters();
    counters.begin();
    counters.count("main", measured(10, 1), STARTED);
    counters.begin();
    counters.begin();
    expect(counters.count("main", measured(20, 1), STARTED + 19_000)?.coreSeconds).toBeCloseTo(1, 3);
  });
});

test("dates the start of running containers alone, of any kind", () => {
  const running = (name: string) =>
    containerStatus({ name, state: { running: { startedAt: "2026-01-01T00:00:00Z" } } });
  const status = {
    initContainerStatuses: [
      running("sidecar"),
      containerStatus({ name: "init", state: { terminated: { exitCode: 0 } } }),
    ],
    containerStatuses: [running("main"), containerStatus({ name: "waiting", state: { waiting: {} } })],
    ephemeralContainerStatuses: [running("debugger")],
  };
  const named = (name: string) => ({ name, image: "busybox" });
  const spec = {
    containers: [named("main"), named("waiting")],
    initContainers: [named("sidecar"), named("init")],
    ephemeralContainers: [named("debugger")],
  };
  expect([...runningSince(pod({ spec }), pod({ status }))]).toEqual([
    ["sidecar", STARTED],
    ["main", STARTED],
    ["debugger", STARTED],
  ]);
});

test("has no start for a container that only the member knows", () => {
  const since = { running: { startedAt: "2026-01-01T00:00:00Z" } };
  const names = ["main", "injected", 'x"} 1\ncontainer_cpu_usage_seconds_total{container="a"'];
  const status = { containerStatuses: names.map((name) => containerStatus({ name, state: since })) };
  expect([...runningSince(pod(), pod({ status })).keys()]).toEqual(["main"]);
});

test("sums the use of a pod's containers", () => {
  const usage = (at: number, cores: number) => ({ at, cores, coreSeconds: cores * 10, memoryBytes: 100 });
  expect(
    sumOf([
      { name: "a", startedAt: 0, usage: usage(5, 1) },
      { name: "b", startedAt: 0, usage: usage(7, 0.5) },
    ]),
  ).toEqual({ at: 7, cores: 1.5, coreSeconds: 15, memoryBytes: 200 });
  expect(sumOf([])).toBeUndefined();
});

test("counts a pod as running while any of its containers runs", () => {
  const running = { running: { startedAt: "2026-01-01T00:00:00Z" } };
  const terminated = { terminated: { exitCode: 0 } };
  const status = (...states: readonly object[]) => ({
    containerStatuses: states.map((state) => containerStatus({ state })),
  });
  const pods = [
    pod({ status: status(running, terminated) }),
    pod({ status: { initContainerStatuses: [containerStatus({ state: running })], ...status({ waiting: {} }) } }),
    pod({ status: status(terminated) }),
    pod({ status: {} }),
  ];
  expect(podsOfNode(pods)).toEqual({ running: 2, containers: { running: 2, exited: 2 } });
});
