import { spawnSync } from "node:child_process";

/** Goes before a command: on Linux the kernel then ends it when the process that started it dies, even by SIGKILL. */
export const DEATH_SIGNAL: readonly string[] =
  process.platform === "linux" && spawnSync("setpriv", ["--pdeathsig", "KILL", "true"]).status === 0
    ? ["setpriv", "--pdeathsig", "KILL", "--"]
    : [];
