import { defineConfig, type ViteUserConfigExport } from "vitest/config";
import { EvenSequencer } from "./test/support/harness/sequencer.ts";

const config: ViteUserConfigExport = defineConfig({
  test: {
    sequence: { sequencer: EvenSequencer },
    // A machine that does other things, too.
    expect: { poll: { timeout: 10_000 } },
    projects: [
      {
        test: {
          name: "unit",
          include: ["test/unit/**/*.test.ts"],
          setupFiles: ["test/support/harness/one-seed.ts"],
          // Properties run hundreds of cases, beside three other workers on two cores, of which a busy machine gives a fifth.
          testTimeout: 180_000,
          hookTimeout: 60_000,
          // Starting a process and loading the sources per file would double the cost.
          isolate: false,
          // Most workers wait for timers, so two per core keep the cores busy.
          maxWorkers: 4,
          sequence: { groupOrder: 0 },
        },
      },
      {
        test: {
          name: "integration",
          include: ["test/integration/**/*.test.ts"],
          // By `npm run agents`, `npm run airflow` and others.
          exclude: ["test/integration/on-demand/**"],
          globalSetup: ["test/support/harness/global-setup.ts"],
          setupFiles: ["test/support/harness/take-turns.ts"],
          // Four run: two on sets of shared clusters, one on real nodes, one with clusters of its own. One more waits for each turn.
          maxWorkers: 8,
          // Concurrent tests mostly wait.
          maxConcurrency: 8,
          // A process and its modules serve one file after the other: both cost a second of processor time for each.
          isolate: false,
          sequence: { groupOrder: 1 },
          // Real processes on a shared machine: what fails once is shown as retried, what fails twice has a reason.
          retry: 1,
          testTimeout: 180_000,
          hookTimeout: 300_000,
        },
      },
      {
        // After everything that uses them.
        test: { name: "rights", include: ["test/rights/**/*.test.ts"], sequence: { groupOrder: 2 } },
      },
    ],
  },
});
export default config;
