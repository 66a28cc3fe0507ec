import { type SpawnOptions, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { get, type IncomingMessage } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { gzipSync } from "node:zlib";
import type { Page } from "playwright-core";
import { openPage } from "../../support/ui/browser.ts";
import { type Figure, quantile } from "../figures.ts";
import { rssMb } from "../process-usage.ts";
import type { Program } from "../scale/controller-process.ts";
import { kubeconfigOf } from "../scale/fleet.ts";
import { framesDuring, heapMb } from "../ui/frames.ts";
import { startViewedHost, type ViewedHost } from "./host.ts";

export interface ViewsBenchOptions extends Program {
  readonly members: number;
  readonly proxies: number;
  readonly onProgress: (line: string) => void;
  readonly onFigure: (figure: Figure) => void;
}

const MEMBER_TIMEOUT = "5s";
const PER_SECOND = 50;
const REPEATED = 3;

/** Measures what a user sees of many members and proxies, on a host that is not there. */
export async function benchViews(options: ViewsBenchOptions): Promise<void> {
  const { members, proxies, onProgress } = options;
  onProgress(`${members} members, ${proxies} proxies`);
  const directory = mkdtempSync(join(tmpdir(), "legation-views-"));
  const host = await startViewedHost({ members, proxies });
  try {
    const kubeconfig = join(directory, "host.yaml");
    writeFileSync(kubeconfig, kubeconfigOf("host", host.cluster.url), { mode: 0o600 });
    await benchCommands(kubeconfig, host.mostUnderWay, options);
    await benchPage(kubeconfig, host, options);
  } finally {
    await host.cluster.close();
    rmSync(directory, { recursive: true, force: true });
  }
}

async function benchCommands(
  kubeconfig: string,
  mostUnderWay: () => number,
  { onFigure, members, ...program }: ViewsBenchOptions,
): Promise<void> {
  const status = await leastOf(
    ({ ms }) => ms,
    () => run(program, ["status", `--kubeconfig=${kubeconfig}`]),
  );
  onFigure({ name: "views: legation status", value: status.ms / 1000, unit: "s", target: { atMost: 2 } });
  onFigure({ name: "views: legation status, memory", value: status.mb, unit: "MB" });
  const args = ["get", "pods", "-A", `--timeout=${MEMBER_TIMEOUT}`, `--kubeconfig=${kubeconfig}`];
  const get = await leastOf(
    ({ ms }) => ms,
    () => run(program, args),
  );
  onFigure({ name: "views: legation get pods -A, first line", value: get.firstMs / 1000, unit: "s" });
  onFigure({ name: "views: legation get pods -A", value: get.ms / 1000, unit: "s" });
  onFigure({ name: "views: legation get pods -A, memory", value: get.mb, unit: "MB" });
  onFigure({ name: "views: legation get pods -A, lines", value: get.lines, unit: "" });
  onFigure({ name: "views: legation get pods -A, members told of", value: get.told, unit: "" });
  onFigure({
    name: "views: most requests to members at a time",
    value: mostUnderWay(),
    unit: "",
    // Two of each of 64 members, and those that are late.
    target: { atMost: 2 * (64 + Math.ceil(members / 50)) },
  });
}

/** Repeats a measurement, which other programs of the machine disturb, and returns the least. */
async function leastOf<T>(by: (result: T) => number, measure: () => Promise<T>): Promise<T> {
  let least = await measure();
  for (let count = 1; count < REPEATED; count += 1) {
    const next = await measure();
    if (by(next) < by(least)) least = next;
  }
  return least;
}

interface Run {
  readonly ms: number;
  /** Until it had printed something. */
  readonly firstMs: number;
  readonly lines: number;
  /** Lines on standard error. */
  readonly told: number;
  /** Largest resident memory that was seen. */
  readonly mb: number;
}

async function run({ main, nodeFlags, env }: Program, args: readonly string[]): Promise<Run> {
  const begin = performance.now();
  const options: SpawnOptions = { stdio: ["ignore", "pipe", "pipe"], env: { ...process.env, ...env } };
  const child = spawn(process.execPath, [...nodeFlags, main, ...args], options);
  let [firstMs, lines, told, mb] = [Number.NaN, 0, 0, 0];
  const newlines = (chunk: Buffer): number => chunk.toString().split("\n").length - 1;
  child.stdout?.on("data", (chunk: Buffer) => {
    if (lines === 0) firstMs = performance.now() - begin;
    lines += newlines(chunk);
  });
  child.stderr?.on("data", (chunk: Buffer) => {
    told += newlines(chunk);
  });
  const timer = setInterval(() => {
    if (child.exitCode === null) mb = Math.max(mb, rssMb(child.pid ?? 0) || 0);
  }, 50);
  await once(child, "exit");
  clearInterval(timer);
  return { ms: performance.now() - begin, firstMs, lines, told, mb };
}

async function benchPage(
  kubeconfig: string,
  host: ViewedHost,
  { main, nodeFlags, env, members, proxies, onFigure, onProgress }: ViewsBenchOptions,
): Promise<void> {
  let opened = 0;
  const beforeOpening = async (pid: number): Promise<void> => {
    opened = performance.now();
    onProgress(`the page's server has pid ${pid}`);
  };
  const ui = await openPage(kubeconfig, { program: [...nodeFlags, main], env, beforeOpening });
  try {
    const { page, show, pid, origin } = ui;
    const all = `${proxies.toLocaleString("en-US")} pods`;
    await page.getByRole("heading", { name: "Overview", exact: true }).waitFor({ timeout: 120_000 });
    onFigure({ name: "views: page opened at once: overview", value: (performance.now() - opened) / 1000, unit: "s" });
    await page.getByText(all).first().waitFor({ timeout: 300_000 });
    onFigure({ name: "views: page opened at once: all pods", value: (performance.now() - opened) / 1000, unit: "s" });
    onFigure({ name: "views: page's server, memory", value: rssMb(pid), unit: "MB", target: { atMost: 300 } });
    for (const [name, view, shown] of [
      ["overview", "#/", all],
      ["members", "#/members", `${members.toLocaleString("en-US")} members`],
      ["workloads", "#/workloads", "workloads"],
      ["pods", "#/pods", all],
    ] as const) {
      await page.goto(`${origin}/${view}`);
      const seconds = await leastOf(Number, async () => {
        const begin = performance.now();
        await page.reload();
        await page.getByText(shown).first().waitFor({ timeout: 60_000 });
        return (performance.now() - begin) / 1000;
      });
      onFigure({
        name: `views: ${name}, all of it`,
        value: seconds,
        unit: "s",
        target: { atMost: 2 },
      });
    }
    const sent = await sentFirst(page, origin);
    onFigure({ name: "views: sent for the first view", value: sent.length / 1e6, unit: "MB" });
    const zipped = gzipSync(sent, { level: 1 }).length / 1e6;
    onFigure({ name: "views: the same for a team, compressed", value: zipped, unit: "MB" });
    onFigure({ name: "views: page's heap", value: await heapMb(page), unit: "MB" });
    const stop = new AbortController();
    const changing = changePods(host, stop.signal);
    for (const view of ["#/", "#/members", "#/workloads", "#/pods"]) {
      await show(view);
      await sleep(500);
      const frames = await framesDuring(page, async () => {
        await page.mouse.move(700, 500);
        for (let step = 0; step < 60; step += 1) {
          await page.mouse.wheel(0, 300);
          await sleep(50);
        }
      });
      onFigure({ name: `views: ${view}, P95 of frames`, value: quantile(frames, 0.95), unit: "ms" });
      onFigure({
        name: `views: ${view}, longest frame`,
        value: Math.max(...frames),
        unit: "ms",
        target: { atMost: 200 },
      });
    }
    stop.abort();
    await changing;
    onFigure({
      name: "views: page's server, memory at the end",
      value: rssMb(pid),
      unit: "MB",
      target: { atMost: 300 },
    });
  } finally {
    await ui.close();
  }
}

/** A live stream until all pods were sent. */
async function sentFirst(page: Page, origin: string): Promise<Buffer> {
  const cookies = await page.context().cookies(origin);
  const cookie = cookies.map(({ name, value }) => `${name}=${value}`).join("; ");
  const request = get(`${origin}/api/live`, { headers: { cookie } });
  const [response] = (await once(request, "response")) as [IncomingMessage];
  const chunks: Buffer[] = [];
  let tail = "";
  for await (const chunk of response) {
    chunks.push(chunk);
    tail = tail.slice(-100) + chunk.toString("latin1");
    if (tail.includes('"type":"complete"')) break;
  }
  return Buffer.concat(chunks);
}

/** Changes the status of pods at a rate, until the signal fires. */
async function changePods(host: ViewedHost, signal: AbortSignal): Promise<void> {
  for (let index = 0; !signal.aborted; index += 1) {
    host.change(index);
    await sleep(1000 / PER_SECOND, undefined, { signal }).catch(() => undefined);
  }
}
