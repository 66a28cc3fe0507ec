import { defineConfig, type ViteUserConfigExport } from "vitest/config";

const config: ViteUserConfigExport = defineConfig({
  test: {
    projects: [
      { test: { name: "unit", include: ["test/unit/**/*.test.ts"], testTimeout: 20_000 } },
      {
        test: {
          name: "integration",
          include: ["test/integration/**/*.test.ts"],
          globalSetup: ["test/support/harness/global-setup.ts"],
          // All files share one set of clusters and two cores: one file at a time keeps timings honest.
          fileParallelism: false,
          // Real processes on a shared machine: what fails once is shown as retried, what fails twice has a reason.
          retry: 1,
          testTimeout: 180_000,
          hookTimeout: 180_000,
        },
      },
    ],
  },
});
export default config;
