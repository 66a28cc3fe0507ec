import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import axe from "axe-core";
import { type Browser, chromium, type Page } from "playwright-core";
import { DEATH_SIGNAL } from "../clusters/death-signal.ts";
import { MAIN } from "../legation/cli.ts";

const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";

/** A browser with the page. */
export interface BrowserPage {
  readonly page: Page;
  /** Address of the page without the token. */
  readonly origin: string;
  /** Errors of the page's scripts, and messages of its console. */
  readonly errors: readonly string[];
  /** Opens a view, such as `#/pods`. */
  show(view: string): Promise<void>;
  close(): Promise<void>;
}

/** A browser with the page of a `legation ui` of its own. */
export interface OpenPage extends BrowserPage {
  /** Process of `legation ui`. */
  readonly pid: number;
}

/** Starts Chromium. */
async function openBrowser(): Promise<Browser> {
  if (!existsSync(CHROMIUM)) throw new Error(`${CHROMIUM} is missing: install Chromium, or name it in CHROMIUM`);
  // Root's Chromium has no sandbox; the page is Legation's own.
  return await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox"] });
}

/** Settings of `openPage`. */
export interface OpenOptions {
  /** Further flags of `legation ui`. */
  readonly args?: readonly string[];
  /** Node options and script to run in place of the sources, and variables of the process. */
  readonly program?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Pixels of a picture for each of the page; default 1. */
  readonly scale?: number;
  /** Waits before the address is opened. */
  readonly beforeOpening?: (pid: number) => Promise<void>;
}

/** Runs `legation ui` with a kubeconfig, and opens the printed address in Chromium. */
export async function openPage(kubeconfig: string, options: OpenOptions = {}): Promise<OpenPage> {
  const { args = [], program = [MAIN], env = {}, scale = 1, beforeOpening } = options;
  const [command = "", ...rest] = [...DEATH_SIGNAL, process.execPath, ...program, "ui", ...args];
  const server = spawn(command, [...rest, `--kubeconfig=${kubeconfig}`], {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, ...env },
  });
  const address = await printedAddress(server);
  await beforeOpening?.(server.pid ?? 0);
  const opened = await openAddress(address, scale);
  return {
    ...opened,
    pid: server.pid ?? 0,
    close: async () => {
      await opened.close();
      server.kill();
    },
  };
}

/** Opens the page at an address in Chromium. */
export async function openAddress(address: string, deviceScaleFactor = 1): Promise<BrowserPage> {
  const browser = await openBrowser();
  const context = await browser.newContext({
    viewport: { width: 1280, height: 800 },
    deviceScaleFactor,
    colorScheme: "light",
    // The page for a team has a certificate of its own.
    ignoreHTTPSErrors: true,
  });
  const page = await context.newPage();
  const errors: string[] = [];
  page.on("pageerror", (error) => errors.push(error.message));
  page.on("console", (message) => errors.push(message.text()));
  await page.goto(address);
  return {
    page,
    origin: new URL(address).origin,
    errors,
    show: async (view) => {
      await page.evaluate(`location.assign(${JSON.stringify(view)})`);
    },
    close: () => browser.close(),
  };
}

function printedAddress(server: ReturnType<typeof spawn>): Promise<string> {
  return new Promise((resolve, reject) => {
    let output = "";
    const read = (chunk: Buffer): void => {
      output += chunk.toString();
      const [address] = /https?:\/\/\S+/.exec(output) ?? [];
      if (address !== undefined) resolve(address);
    };
    server.stdout?.on("data", read);
    server.stderr?.on("data", read);
    server.once("error", reject);
    server.once("close", () => reject(new Error(`legation ui ended: ${output}`)));
  });
}

/** Returns what some users could not read or reach in the present view, by the rules of WCAG 2.1 AA, in both themes. */
export async function accessibilityProblems(page: Page): Promise<string[]> {
  const problems: string[] = [];
  for (const colorScheme of ["dark", "light"] as const) {
    await page.emulateMedia({ colorScheme });
    await page.evaluate(axe.source);
    const found: unknown = await page.evaluate(
      `axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"] }).then(({ violations }) =>
        violations.map(({ id, nodes }) => id + ": " + nodes.map(({ html }) => html).join(" | ")))`,
    );
    problems.push(...(Array.isArray(found) ? found.map((each) => `${colorScheme}: ${each}`) : [`no answer of axe`]));
  }
  return problems;
}
