import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { file, type Image, SLEEP, writeImages } from "../clusters/node/image.ts";
import type { Cluster } from "../clusters/types.ts";
import { ensurePrograms } from "../engines/programs.ts";
import { startProgram } from "../engines/run.ts";
import { kubectl } from "../harness/kubectl.ts";
import { parseNames, parseReport, type SpecResult } from "../kubernetes-suite/results.ts";

// Answers as the suite has socat answer: with what SYSTEM, the last argument, says. No spec calls by UDP.
const SOCAT = `#!/bin/sh
for last; do :; done
case "$*" in *TCP*) exec nc -ll -p 42 -e sh -c "\${last#SYSTEM:}" ;; esac
exec sleep 2147483647
`;

// The applet nc of busybox, which its shell runs whatever /bin/nc is, knows no families, and no -v.
const SHELL = `#!/bin/busybox sh
[ "$1" = -c ] && set -- -c "$(echo "$2" | sed 's/nc -v -w 2 -4/nc -w 2/')"
exec /bin/busybox sh "$@"
`;

const IMAGES: readonly Image[] = [
  { names: ["docker.io/alpine/socat:1.7.4.4"], layers: [[file("bin/socat", SOCAT, 0o755)]], config: { Cmd: SLEEP } },
  { names: ["docker.io/nicolaka/netshoot:v0.15"], layers: [[file("bin/sh", SHELL, 0o755)]], config: { Cmd: SLEEP } },
];

/** Writes the archive of the suite's images, which busybox replaces. */
export function writeConformanceImages(path: string, busybox: string): void {
  writeImages(path, busybox, IMAGES);
}

/** Installs the Multi-Cluster Services API as its authors release it. */
export async function installReleasedMcsApi(cluster: Cluster): Promise<void> {
  const crds = join(await ensurePrograms("mcs-api", tell), "crds");
  for (const plural of ["serviceexports", "serviceimports"]) {
    const name = `${plural}.multicluster.x-k8s.io`;
    await kubectl(cluster, ["apply", "--server-side", "-f", join(crds, `multicluster.x-k8s.io_${plural}.yaml`)]);
    await kubectl(cluster, ["wait", `crd/${name}`, "--for=condition=Established", "--timeout=30s"]);
  }
}

/** Specs of the suite that are not run, by a part of their text, with the reason. */
export const LEFT_OUT: Readonly<Record<string, string>> = {
  "<hostname>.<clusterid>":
    "needs CoreDNS' plugin multicluster: CoreDNS itself tells no clusters apart whose pods have one host name",
};

/** The results of the suite. */
export interface ConformanceResults {
  readonly results: readonly SpecResult[];
  /** Texts of all specs. */
  readonly specs: readonly string[];
  readonly output: string;
}

/** Runs the conformance suite of the API's authors; its first cluster exports, and the second where two do. */
export async function runConformance(clusters: readonly Cluster[], directory: string): Promise<ConformanceResults> {
  const programs = await ensurePrograms("mcs-conformance", tell);
  const kubeconfig = join(directory, "kubeconfig");
  writeFileSync(kubeconfig, JSON.stringify(merged(clusters)));
  const report = join(directory, "report.json");
  const flags = [
    `-kubeconfig=${kubeconfig}`,
    `-contexts=${clusters.map(({ name }) => name).join()}`,
    `-ginkgo.json-report=${report}`,
    "-ginkgo.no-color",
    "-ginkgo.v",
    ...Object.keys(LEFT_OUT).map((text) => `-ginkgo.skip=${text}`),
    "-test.timeout=40m",
  ];
  const options = { cwd: directory, env: process.env, logFile: join(directory, "conformance.log") };
  const { output } = await startProgram(join(programs, "conformance.test"), flags, options).ended;
  const text = readFileSync(report, "utf8");
  return { results: parseReport(text), specs: parseNames(text), output };
}

interface Config {
  readonly clusters: readonly { readonly cluster: object }[];
  readonly users: readonly { readonly user: object }[];
}

/** Returns a kubeconfig with a context for each cluster, by its name. */
function merged(clusters: readonly Cluster[]): object {
  const all = clusters.map(({ name, kubeconfig }) => {
    const config = JSON.parse(readFileSync(kubeconfig, "utf8")) as Config;
    return { name, cluster: config.clusters[0]?.cluster, user: config.users[0]?.user };
  });
  return {
    apiVersion: "v1",
    kind: "Config",
    clusters: all.map(({ name, cluster }) => ({ name, cluster })),
    users: all.map(({ name, user }) => ({ name, user })),
    contexts: all.map(({ name }) => ({ name, context: { cluster: name, user: name } })),
  };
}

function tell(line: string): void {
  process.stderr.write(`mcs-api: ${line}\n`);
}
