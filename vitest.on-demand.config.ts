import { defineConfig, type ViteUserConfigExport } from "vitest/config";

/** Tests that take minutes: on demand, by `npm run agents`, `airflow`, `door`, `operators` and `releases`, among others. */
const config: ViteUserConfigExport = defineConfig({
  test: {
    include: ["test/integration/on-demand/**/*.test.ts"],
    globalSetup: ["test/support/harness/global-setup.ts"],
    setupFiles: ["test/support/harness/take-turns.ts"],
    expect: { poll: { timeout: 10_000 } },
    isolate: false,
    testTimeout: 300_000,
    hookTimeout: 600_000,
  },
});
export default config;
