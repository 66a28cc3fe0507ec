#!/usr/bin/env -S MALLOC_ARENA_MAX=2 MALLOC_TRIM_THRESHOLD_=131072 UV_THREADPOOL_SIZE=64 node --max-semi-space-size=8 --heap-growing-percent=40
// The controller's objects live long. V8's defaults would let its heap grow to several times their size, and glibc's would keep
// memory that a burst of requests freed. Half of libuv's threads resolve names of members: see kube/internal/dns-lookup.ts.

import { saveMemoryAtRest } from "./memory-at-rest.ts";
import { runProgram } from "./program.ts";
import type { CommandConnections } from "./shared/connections.ts";
import { EXIT_CODES, Interruption } from "./shared/failure.ts";
import { packageVersion } from "./shared/package-root.ts";
import { Terminal } from "./shared/terminal.ts";
import { answerSignals } from "./signals.ts";

saveMemoryAtRest();

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
// Ctrl-C in `legation join … 2>&1 | tee log` closes standard error; the clean-up still runs.
stderr.on("error", () => {});

// Loaded on first use, so that help and usage errors appear at once.
let connections: Promise<CommandConnections> | undefined;
async function open(): Promise<CommandConnections> {
  const { CommandConnections } = await import("./shared/connections.ts");
  const { signal } = interruption;
  return new CommandConnections(env, `legation/${version}`, {
    signal,
    onPluginStderr: (text) => terminal.complain(text),
  });
}
function opened(): Promise<CommandConnections> {
  connections ??= open();
  return connections;
}

process.exitCode = await runProgram(
  process.argv.slice(2),
  {
    env,
    // Opened on first use.
    get stdin() {
      return process.stdin;
    },
    terminal,
    signal: interruption.signal,
    connect: async (choice, as) => (await opened()).open(choice, as),
    connectText: async (kubeconfig, as) => (await opened()).openText(kubeconfig, as),
    openReading: async (host, member) => (await opened()).openReading(host, member),
  },
  version,
);
await (await connections)?.close();
