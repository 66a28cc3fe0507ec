import { join } from "node:path";
import { VIRTUAL_NODE_TAINT } from "../../../src/api/keys.ts";
import { ensurePrograms } from "../engines/programs.ts";
import type { SuitePrograms } from "./programs.ts";
import { isOfKueue, type Side, type SideName } from "./sides.ts";

const AGNHOST = "registry.k8s.io/e2e-test-images/agnhost";

/** A program of Ginkgo's specs. */
export interface Suite {
  readonly program: string;
  /** Ginkgo matches it together with a spec's text. */
  readonly name: string;
  /** Flags and variables of every run. */
  readonly flags: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Further ones of a run on a side, which keeps its files in a folder. */
  on(side: Side, directory: string): { readonly flags: readonly string[]; readonly env: Suite["env"] };
}

/** Returns the suite that runs on a side. Builds Kueue's the first time. */
export async function suiteOf(
  side: SideName,
  programs: SuitePrograms,
  onProgress: (line: string) => void,
): Promise<Suite> {
  return isOfKueue(side) ? kueuesOwn(await ensurePrograms("kueue-suite", onProgress)) : kubernetesOwn(programs.suite);
}

function kubernetesOwn(program: string): Suite {
  return {
    program,
    name: "Kubernetes e2e suite",
    flags: ["--provider=skeleton"],
    env: {},
    on: ({ kubeconfig, kubectl }, directory) => ({
      flags: [
        `--kubeconfig=${kubeconfig}`,
        `--kubectl-path=${kubectl}`,
        `--non-blocking-taints=${VIRTUAL_NODE_TAINT}`,
        "--disable-log-dump",
        `--e2e-output-dir=${directory}`,
      ],
      env: {},
    }),
  };
}

function kueuesOwn(folder: string): Suite {
  return {
    program: join(folder, "baseline.test"),
    name: "End To End Baseline Suite",
    // The suite waits for Prometheus if these specs may run.
    flags: ["--ginkgo.label-filter=!feature:prometheus"],
    // The suite looks for its sources, of which no selected spec needs any, and for the names of images in them.
    env: {
      PROJECT_DIR: folder,
      E2E_TEST_AGNHOST_IMAGE: `${AGNHOST}:2.63.0`,
      E2E_TEST_AGNHOST_IMAGE_OLD: `${AGNHOST}:2.55`,
    },
    on: ({ kubeconfig }) => ({ flags: [], env: { KUBECONFIG: kubeconfig } }),
  };
}
