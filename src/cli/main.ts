#!/usr/bin/env -S MALLOC_ARENA_MAX=2 MALLOC_TRIM_THRESHOLD_=131072 UV_THREADPOOL_SIZE=64 node --max-semi-space-size=8 --heap-growing-percent=40 --optimize-for-size
import { runProgram } from "./commands/program.ts";
// What the controller keeps lives long: V8's defaults let its heap grow to several times that before they look for garbage,
// and glibc's keep what a burst of requests has freed: an arena for each thread, and more at the end of each the larger it was.
// Half of libuv's threads look names up, those of all members: see kube/name-lookup.ts.
import type { Connections } from "./connections.ts";
import { EXIT_CODES } from "./exit-codes.ts";
import { Interruption } from "./failure.ts";
import { packageVersion } from "./package-root.ts";
import { answerSignals } from "./signals.ts";
import { Terminal } from "./terminal.ts";

const { env, stdout, stderr } = process;
const version = packageVersion();
const terminal = new Terminal(stdout, stderr, env);

const interruption = new AbortController();
answerSignals(["SIGINT", "SIGTERM"], {
  first: (name) => interruption.abort(new Interruption(name)),
  again: (name) => process.exit(name === "SIGINT" ? EXIT_CODES.interrupted : EXIT_CODES.terminated),
});
// `legation status | head -1` closes the pipe: that is no error.
stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") throw error;
  process.exit(EXIT_CODES.ok);
});
// Standard error may be closed (`legation join … 2>&1 | tee log`, Ctrl-C); the undo still runs.
stderr.on("error", () => {});

// Loaded by who talks to a cluster: help and mistakes in the command line come at once.
let connections: Promise<Connections> | undefined;
async function open(): Promise<Connections> {
  const { Connections } = await import("./connections.ts");
  const { signal } = interruption;
  return new Connections(env, `legation/${version}`, {
    signal,
    onPluginStderr: (text) => terminal.complain(text),
  });
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
    terminal,
    signal: interruption.signal,
    connect: async (choice, as) => (await opened()).open(choice, as),
    connectText: async (kubeconfig, as) => (await opened()).openText(kubeconfig, as),
  },
  version,
);
await (await connections)?.close();
