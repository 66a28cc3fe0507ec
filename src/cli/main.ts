#!/usr/bin/env -S node --max-semi-space-size=8 --heap-growing-percent=40
// What the controller keeps lives long: V8's defaults let its heap grow to several times that before they look for garbage.
import type { Connections } from "./connections.ts";
import { EXIT_CODES } from "./exit-codes.ts";
import { Interruption } from "./failure.ts";
import { packageVersion } from "./package-root.ts";
import { runProgram } from "./program.ts";
import { Terminal } from "./terminal.ts";

const { env, stdout, stderr } = process;
const version = packageVersion();

const interruption = new AbortController();
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.on(signal, () => {
    // The first one lets the command clean up; who asks again does not want to wait for that.
    if (interruption.signal.aborted) process.exit(signal === "SIGINT" ? EXIT_CODES.interrupted : EXIT_CODES.terminated);
    interruption.abort(new Interruption(signal));
  });
}
// `legation status | head -1` closes the pipe: that is no error.
stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") throw error;
  process.exit(EXIT_CODES.ok);
});

// Loaded by who talks to a cluster: help and mistakes in the command line come at once.
let connections: Promise<Connections> | undefined;
async function open(): Promise<Connections> {
  const { Connections } = await import("./connections.ts");
  return new Connections(env, `legation/${version}`);
}
function opened(): Promise<Connections> {
  connections ??= open();
  return connections;
}

process.exitCode = await runProgram(
  process.argv.slice(2),
  {
    env,
    // Opened by who reads it.
    get stdin() {
      return process.stdin;
    },
    terminal: new Terminal(stdout, stderr, env),
    signal: interruption.signal,
    connect: async (choice, as) => (await opened()).open(choice, as),
    connectText: async (kubeconfig, as) => (await opened()).openText(kubeconfig, as),
  },
  version,
);
await (await connections)?.close();
