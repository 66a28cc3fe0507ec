import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { createInterface } from "node:readline";
import { describe, test } from "vitest";
import { apiRequest } from "../../support/clusters/api-request.ts";
import { clustersInfo } from "../../support/clusters/control-protocol.ts";
import { isAlive } from "../../support/clusters/lock.ts";
import { eventually } from "../../support/harness/wait.ts";

describe("the clusters of a killed test process", () => {
  const START = new URL("../../support/clusters/start.ts", import.meta.url).href;
  const SCRIPT = `
    import { startClusters } from "${START}";
    const clusters = await startClusters({ names: ["brief"], clusters: { brief: { nodes: [] } } });
    console.log(JSON.stringify(clusters.info));
    setInterval(() => {}, 1000);`;

  test.concurrent.for([
    { who: "the process is interrupted", victim: "parent", signal: "SIGINT" },
    { who: "the process is killed", victim: "parent", signal: "SIGKILL" },
    { who: "the keeper is terminated", victim: "keeper", signal: "SIGTERM" },
  ] as const)(
    "are removed with their files when $who",
    async ({ victim, signal }, { expect, onTestFinished: onFinished }) => {
      const parent = spawn(process.execPath, ["--input-type=module", "-e", SCRIPT], {
        stdio: ["ignore", "pipe", "inherit"],
      });
      onFinished(() => {
        parent.kill("SIGKILL");
      });
      const [line] = await once(createInterface(parent.stdout), "line");
      const info = clustersInfo.parse(JSON.parse(String(line)));
      const [brief] = info.clusters;
      if (brief === undefined) throw new Error("the other process started no cluster");
      expect((await apiRequest(brief, "GET", "/readyz")).status).toBe(200);

      process.kill(victim === "keeper" ? info.keeperPid : (parent.pid ?? 0), signal);

      await eventually(() => !isAlive(info.keeperPid), { what: "the keeper's end" });
      await expect(apiRequest(brief, "GET", "/readyz")).rejects.toThrow("ECONNREFUSED");
      expect(existsSync(info.directory)).toBe(false);
    },
  );
});
