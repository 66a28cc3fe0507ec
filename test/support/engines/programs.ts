import { spawnSync } from "node:child_process";
import { chmodSync, copyFileSync, cpSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ensureBuilt, type GoPrograms, moduleFolder } from "../clusters/build.ts";
import { ensureDeviceDriver } from "./device-driver-program.ts";

/** A release of an engine as Go's module proxy has it, with the versions of all that it needs in its own go.mod. */
interface Release {
  readonly module: string;
  readonly version: string;
  /** Checksum as in go.sum. */
  readonly sum: string;
  /** Files to copy within the sources, by their new names: links of the engine's repository, for instance, which modules leave out. */
  readonly links?: Readonly<Record<string, string>>;
  /** Go package of each binary. */
  readonly packages: Readonly<Record<string, string>>;
  /** Texts of the sources that suit a container only: each file with what is replaced, and by what. */
  readonly edits?: Readonly<Record<string, readonly [from: string, to: string]>>;
  /** The packages' tests are the binaries. */
  readonly isTest?: boolean;
  /** Folders of the sources to keep beside the binaries, by the names that they get there. */
  readonly keeps: Readonly<Record<string, string>>;
  /** Programs of the engine that are no part of its module: each with a file here. */
  readonly adds?: Readonly<Record<string, string>>;
  /** Variables that the engine's own build sets by the linker. */
  readonly variables?: Readonly<Record<string, string>>;
}

/** Programs of a release, built in a copy of its sources, since the cache of modules must stay as it is. */
function programsOf(name: string, release: Release): GoPrograms {
  const {
    module,
    version,
    sum,
    links = {},
    packages,
    isTest = false,
    keeps,
    adds = {},
    edits = {},
    variables = {},
  } = release;
  const added = Object.entries(adds).map(([to, from]) => [to, moduleFolder(from)] as const);
  const extras = Object.entries(keeps).map(([kept, folder]) => {
    const keep = (to: string, sources: string): void => cpSync(join(sources, folder), to, { recursive: true });
    return [kept, keep] as const;
  });
  return {
    name,
    packages,
    ldflags: ["-s -w", ...Object.entries(variables).map(([key, value]) => `-X ${key}=${value}`)].join(" "),
    isStatic: true,
    isTest,
    extras: Object.fromEntries(extras),
    pins: () => [JSON.stringify(release), ...added.map(([, from]) => readFileSync(from, "utf8"))],
    sources: (work) => {
      const download = spawnSync("go", ["mod", "download", "-json", `${module}@${version}`], { encoding: "utf8" });
      const found = JSON.parse(download.stdout || "{}") as { Dir?: string; Sum?: string; Error?: string };
      if (found.Dir === undefined) {
        throw new Error(`${module} ${version} cannot be downloaded: ${found.Error ?? download.stderr.trim()}`);
      }
      if (found.Sum !== sum) {
        throw new Error(`${module} ${version} is another one than before: its sum is ${found.Sum}.`);
      }
      cpSync(found.Dir, work, { recursive: true });
      makeWritable(work);
      for (const [link, target] of Object.entries(links)) copyFileSync(join(work, target), join(work, link));
      for (const [to, from] of added) cpSync(from, join(work, to));
      for (const [file, [from, to]] of Object.entries(edits)) {
        const text = readFileSync(join(work, file), "utf8");
        if (!text.includes(from)) throw new Error(`${file} of ${module} ${version} has no ${from}.`);
        writeFileSync(join(work, file), text.replace(from, to));
      }
      return work;
    },
  };
}

/** Modules are read-only, folders included; what is to be removed must not be. */
function makeWritable(folder: string): void {
  chmodSync(folder, 0o755);
  for (const entry of readdirSync(folder, { withFileTypes: true, recursive: true })) {
    chmodSync(join(entry.parentPath, entry.name), entry.isDirectory() ? 0o755 : 0o644);
  }
}

/** Engines that are Go programs and that every run of the integration tests needs. */
const NAMES = ["argo", "jobset", "kueue-definitions"] as const;

/** Name of one of them, or of a program that takes minutes to build and runs on demand. */
export type ProgramEngine =
  | (typeof NAMES)[number]
  | "tekton"
  | "cert-manager"
  | "kueue"
  | "kueue-suite"
  | "coscheduling"
  | "coredns"
  | "helm"
  | "helm3"
  | "krew"
  | "external-dns"
  | "gateway-api"
  | "traefik"
  | "prometheus-operator"
  | "mcs-api"
  | "mcs-conformance";

const TRAEFIK = "github.com/traefik/traefik/v3";
const KUEUE = {
  module: "sigs.k8s.io/kueue",
  version: "v0.19.1",
  sum: "h1:5zAYwG/F8z19noTwCIHsTEckttrThAVJvaskWMT6pYg=",
};

const JOBSET_SPECS = "test/e2e/singlecluster/baseline/jobset_test.go";

/** Programs built from their own sources, with the objects that they need. */
const RELEASES: Readonly<Record<ProgramEngine, Release>> = {
  argo: {
    module: "github.com/argoproj/argo-workflows/v3",
    version: "v3.7.14",
    sum: "h1:ptbGB8ljmDgV3PlX0dEMfHwuq1P9DklQ5Hi4XzHBVLA=",
    links: { "workflow/executor/osspecific/signal_linux.go": "workflow/executor/osspecific/signal_darwin.go" },
    packages: { "workflow-controller": "./cmd/workflow-controller", argoexec: "./cmd/argoexec" },
    keeps: { crds: "manifests/base/crds/minimal" },
  },
  tekton: {
    module: "github.com/tektoncd/pipeline",
    version: "v1.12.0",
    sum: "h1:/a2ENIZYLwvvApWU8KHL5CWCj/fNjiGU/aTUu3up2YQ=",
    packages: {
      controller: "./cmd/controller",
      webhook: "./cmd/webhook",
      entrypoint: "./cmd/entrypoint",
      nop: "./cmd/nop",
    },
    keeps: { config: "config" },
  },
  jobset: {
    module: "sigs.k8s.io/jobset",
    version: "v0.12.0",
    sum: "h1:YYPuV0px8Ongq/RXmJg6V0w2UC67aiR+rCMD06vhQQQ=",
    packages: { jobset: "." },
    keeps: { config: "config" },
  },
  "cert-manager": {
    module: "github.com/cert-manager/cert-manager",
    version: "v1.21.2",
    sum: "h1:UWgoYM+KLNtRlqmoWOKjKBOBUPVHeepQ6/ac3ERJW68=",
    adds: {
      "cmd/controller/main.go": "../engines/cert-manager/controller/main.go",
      "cmd/cainjector/main.go": "../engines/cert-manager/cainjector/main.go",
      "cmd/webhook/main.go": "../engines/cert-manager/webhook/main.go",
    },
    packages: { controller: "./cmd/controller", cainjector: "./cmd/cainjector", webhook: "./cmd/webhook" },
    keeps: { crds: "deploy/crds", chart: "deploy/charts/cert-manager" },
  },
  kueue: {
    ...KUEUE,
    adds: { "cmd/multikueue/main.go": "../engines/kueue/main.go" },
    edits: { "cmd/kueue/main.go": ['"/etc/kueue/metrics/certs"', 'os.Getenv("METRICS_CERTS")'] },
    packages: { multikueue: "./cmd/multikueue", kueue: "./cmd/kueue" },
    keeps: {
      crds: "config/components/crd/bases",
      rbac: "config/components/rbac",
      webhook: "config/components/webhook",
    },
  },
  // The definitions are all that tests of admission checks need.
  "kueue-definitions": {
    ...KUEUE,
    packages: {},
    keeps: { crds: "config/components/crd/bases" },
  },
  // Kueue's own end-to-end suite, with the configuration that it expects of Kueue.
  "kueue-suite": {
    ...KUEUE,
    // The suite that has them waits for the operators of all kinds of jobs.
    links: { [JOBSET_SPECS]: "test/e2e/singlecluster/extended/jobset_test.go" },
    edits: { [JOBSET_SPECS]: ["package extended", "package baseline"] },
    isTest: true,
    packages: { "baseline.test": "./test/e2e/singlecluster/baseline" },
    keeps: { config: "test/e2e/config/default" },
  },
  // The project's newest release in the module proxy, which stands on Kubernetes 1.33.
  coscheduling: {
    module: "sigs.k8s.io/scheduler-plugins",
    version: "v0.33.5",
    sum: "h1:9u4QAYbuoxa59aStrJKP4Bii2EQrZmGPN2tzvfs2gL0=",
    packages: { scheduler: "./cmd/scheduler", controller: "./cmd/controller" },
    keeps: { crds: "config/crd/bases", rbac: "config/rbac" },
  },
  coredns: {
    module: "github.com/coredns/coredns",
    version: "v1.15.0",
    sum: "h1:OBT+OEyHVdUiVxPhrNlC5XZVq3RkSxzQXfZQ76gm5ck=",
    adds: { "cmd/cluster/main.go": "../engines/coredns/main.go" },
    packages: { coredns: "./cmd/cluster" },
    keeps: {},
  },
  helm: {
    module: "helm.sh/helm/v4",
    version: "v4.3.1",
    sum: "h1:UndCoLe9UPmNoL7IvWzaUXveL7T5t/ijoorEmgJdI9g=",
    packages: { helm: "./cmd/helm" },
    keeps: {},
  },
  helm3: {
    module: "helm.sh/helm/v3",
    version: "v3.22.0",
    sum: "h1:n1if5iQgHYsujPAcO5oonH/KiSNUmqmUF0iGVjSF3AU=",
    packages: { helm: "./cmd/helm" },
    keeps: {},
    // Helm's Makefile takes them from the version of k8s.io/client-go. The default is Kubernetes 1.20.
    variables: {
      "helm.sh/helm/v3/pkg/chartutil.k8sVersionMajor": "1",
      "helm.sh/helm/v3/pkg/chartutil.k8sVersionMinor": "37",
      "helm.sh/helm/v3/pkg/lint/rules.k8sVersionMajor": "1",
      "helm.sh/helm/v3/pkg/lint/rules.k8sVersionMinor": "37",
    },
  },
  krew: {
    module: "sigs.k8s.io/krew",
    version: "v0.4.3",
    sum: "h1:nvV4ifUM+wuy8ITy32FAib240lXSbMeHOxizqVy6+U0=",
    packages: { "validate-krew-manifest": "./cmd/validate-krew-manifest", "kubectl-krew": "./cmd/krew" },
    keeps: {},
  },
  // The newest release of which the module proxy has all that it needs.
  "external-dns": {
    module: "sigs.k8s.io/external-dns",
    version: "v0.21.0",
    sum: "h1:YAC7ERW32eZAjSdhu44taaZGII6nwz2/wteT+BtpFzM=",
    packages: { "external-dns": "." },
    keeps: {},
  },
  // The definitions are all that tests need.
  "gateway-api": {
    module: "sigs.k8s.io/gateway-api",
    version: "v1.6.1",
    sum: "h1:mock6phZbI6rvZerwrVNk7hVNymQgHo+6sJ81Ia7ftY=",
    packages: {},
    keeps: { crds: "config/crd/standard" },
  },
  // Without the parts of which the module proxy lacks what they need.
  traefik: {
    module: TRAEFIK,
    version: "v3.7.13",
    sum: "h1:T8wy9KuaFzCkmXCqAzDy7t73pBDR1DHrJe3pqXpNXTw=",
    adds: {
      "pkg/config/dynamic/ext/go.mod": "../engines/traefik/ext/go.mod",
      "pkg/config/dynamic/ext/ext.go": "../engines/traefik/ext/ext.go",
      "pkg/provider/acme/dns/dns.go": "../engines/traefik/dns.go",
      "pkg/middlewares/auth/goauth/goauth.go": "../engines/traefik/goauth.go",
    },
    edits: {
      "pkg/provider/acme/provider.go": ["github.com/go-acme/lego/v5/providers/dns", `${TRAEFIK}/pkg/provider/acme/dns`],
      "pkg/middlewares/auth/basic_auth.go": ["github.com/abbot/go-http-auth", `${TRAEFIK}/pkg/middlewares/auth/goauth`],
      "pkg/middlewares/auth/digest_auth.go": [
        "github.com/abbot/go-http-auth",
        `${TRAEFIK}/pkg/middlewares/auth/goauth`,
      ],
    },
    packages: { traefik: "./cmd/traefik" },
    keeps: {},
  },
  // The definitions are all that tests need.
  "mcs-api": {
    module: "sigs.k8s.io/mcs-api",
    version: "v0.5.0",
    sum: "h1:UMgKuFFIRVEy4LR2LQovPnBkV9rgmZMT+sJO7MkaVj4=",
    packages: {},
    keeps: { crds: "config/crd" },
  },
  "mcs-conformance": {
    module: "sigs.k8s.io/mcs-api/conformance",
    version: "v0.5.0",
    sum: "h1:qSYVPKBJpl8CEDtHx7uW6V01QWS9Afuv5g1kpIOYhQ4=",
    // Outside its repository the suite takes the API from the module proxy.
    edits: {
      "go.mod": ["replace sigs.k8s.io/mcs-api => ..", ""],
      "go.sum": [
        "sigs.k8s.io/structured-merge-diff",
        "sigs.k8s.io/mcs-api v0.5.0 h1:UMgKuFFIRVEy4LR2LQovPnBkV9rgmZMT+sJO7MkaVj4=\n" +
          "sigs.k8s.io/mcs-api v0.5.0/go.mod h1:zZ5CK8uS6HaLkxY4HqsmcBHfzHuNMrY2uJy8T7jffK4=\nsigs.k8s.io/structured-merge-diff",
      ],
    },
    isTest: true,
    packages: { "conformance.test": "." },
    keeps: {},
  },
  "prometheus-operator": {
    module: "github.com/prometheus-operator/prometheus-operator",
    version: "v0.85.0",
    sum: "h1:M5xLCLEoaW2IJfnuCwFzzpL+jSVQu3KGT84Pye+fW8s=",
    packages: {},
    keeps: { crds: "example/prometheus-operator-crd" },
  },
};

/** Builds what is not cached yet of an engine; resolves to the folder of its programs and of the objects that they need. */
export async function ensurePrograms(engine: ProgramEngine, onProgress: (line: string) => void): Promise<string> {
  const programs = programsOf(engine, RELEASES[engine]);
  return ensureBuilt(programs, Object.keys(programs.packages), onProgress);
}

/** Builds every engine of the integration tests that the cache lacks, one after another: each takes all processors. */
export async function ensureAllPrograms(onProgress: (line: string) => void): Promise<void> {
  for (const engine of NAMES) await ensurePrograms(engine, onProgress);
  await ensureDeviceDriver(onProgress);
}
