import { globSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, onTestFinished, test } from "vitest";
import { pods, services } from "../../../../../src/kube/resources.ts";
import { useEngine } from "../../../../support/engines/clusters.ts";
import { giveFiles } from "../../../../support/engines/given-files.ts";
import { pythonFiles } from "../../../../support/engines/python-in-pods.ts";
import { findJava, JAVA_OPTIONS, sparkFiles } from "../../../../support/engines/spark.ts";
import { ingressTo, runTraefik } from "../../../../support/engines/traefik.ts";
import { cleanUpFile } from "../../../../support/harness/after-file.ts";
import { applyAll, kubectl } from "../../../../support/harness/kubectl.ts";
import { freshNamespace } from "../../../../support/harness/namespace.ts";
import { eventuallyPasses } from "../../../../support/harness/wait.ts";
import { ROOT } from "../../../../support/legation/cli.ts";
import { type RelayedClusters, startRelayedClusters } from "../../../../support/relay/relayed-clusters.ts";

// Programs on the host whose other half is in a member behind an agent. The relay runs as it is installed, behind kube-proxy.

const PROGRAMS = join(ROOT, "test", "support", "relay", "programs");
const PATIENT = { timeoutMs: 120_000, intervalMs: 1_000 };
const SLEEPS = ["sh", "-c", "trap 'exit 0' TERM; sleep 3600 & wait"];
const SERVES = "trap 'exit 0' TERM; mkdir /www; hostname >/www/index.html; httpd -p 8080 -h /www; sleep 3600 & wait";

let clusters: RelayedClusters;
const dask = useEngine("dask");
const spark = useEngine("spark");
const jupyterhub = useEngine("jupyterhub");

beforeAll(async () => {
  clusters = await startRelayedClusters();
  return cleanUpFile;
}, 900_000);

function makeNamespace(): Promise<string> {
  const labels = { "legation.dev/delegation": "annotated" };
  return freshNamespace([clusters.host, clusters.west], { prefix: "relayed", labels, onFinished: onTestFinished });
}

/** Shell that prints what a web server answers. The static wget of the image cannot resolve names. */
function get(name: string, port = 80): string {
  return `printf 'GET / HTTP/1.0\\r\\n\\r\\n' | nc -w 3 ${name} ${port} | tail -n 1`;
}

test("a pod of the host reaches a pod behind an agent by the name, the address and the node port of a relayed Service alone", async () => {
  const namespace = await makeNamespace();
  await clusters.relay(namespace, "web", [{ name: "http", port: 80, targetPort: 8080 }]);
  const web = await clusters.run("west", { namespace, name: "web", command: ["sh", "-c", SERVES] });
  await clusters.run("host", { namespace, name: "client", command: SLEEPS });
  const says = (name: string, port?: number): Promise<string> =>
    clusters.exec(namespace, "client", ["sh", "-c", get(name, port)]);
  const ref = { namespace, name: "far-web" };
  const { spec } = await clusters.client.patch(services, ref, { type: "merge", body: { spec: { type: "NodePort" } } });
  for (const name of ["far-web", `far-web.${namespace}.svc.cluster.local`, spec?.clusterIP ?? ""]) {
    await eventuallyPasses(async () => expect(await says(name), name).toBe("web\n"), PATIENT);
  }
  const client = await clusters.client.get(pods, { namespace, name: "client" });
  await eventuallyPasses(async () => {
    expect(await says(client.status?.hostIP ?? "", spec?.ports?.[0]?.nodePort)).toBe("web\n");
  }, PATIENT);
  expect(await says(web.status?.podIP ?? "", 8080)).toBe("");
});

/** Runs Dask's scheduler and two workers in the member. */
async function runDask(namespace: string): Promise<void> {
  const module = (name: string): string[] => [dask().python, "-m", `distributed.cli.dask_${name}`];
  await clusters.relay(namespace, "scheduler", [
    { name: "scheduler", port: 8786 },
    { name: "dashboard", port: 8787 },
  ]);
  await giveFiles(clusters.host, namespace, [...pythonFiles(dask()), { from: PROGRAMS, to: "/programs" }]);
  const ready = { readinessProbe: { tcpSocket: { port: 8787 }, periodSeconds: 1 } };
  await clusters.run("west", { namespace, name: "scheduler", command: module("scheduler"), ...ready });
  const workers = ["worker-0", "worker-1"].map((name) =>
    clusters.run("west", {
      namespace,
      name,
      command: [...module("worker"), "tcp://scheduler:8786", "--nthreads=1", "--no-nanny", "--memory-limit=0"],
    }),
  );
  await Promise.all([...workers, clusters.run("host", { namespace, name: "client", command: SLEEPS })]);
}

/** Runs a program of `test/support/relay/programs` on the host. */
function onHost(namespace: string, program: string, ...args: readonly string[]): Promise<string> {
  return clusters.exec(namespace, "client", [dask().python, `/programs/dask_${program}.py`, ...args]);
}

/** Returns the folder of Debian's newest PostgreSQL; throws with what to install. */
function postgresql(): string {
  const [path = ""] = globSync("/usr/lib/postgresql/*/bin").toSorted().toReversed();
  if (path === "") throw new Error("These tests need PostgreSQL (on Debian: apt-get install postgresql).");
  return path;
}

test("a client of Dask on the host computes on workers in the member, and reads their dashboard", async () => {
  const namespace = await makeNamespace();
  await runDask(namespace);
  expect(await onHost(namespace, "client", "far-scheduler")).toBe("sum 328350\nworkers 2\nlarge 33554432 True\n");
  const seen = await onHost(namespace, "dashboard", "http://far-scheduler:8787");
  expect(seen).toBe("page True\nfigures True\n");
});

test("an Ingress controller on the host leads to a relayed Service, by HTTP and by WebSocket", async () => {
  const namespace = await makeNamespace();
  await runDask(namespace);
  await runTraefik(clusters.host, namespace);
  await applyAll(clusters.host, [ingressTo(namespace, { name: "far-scheduler", port: { name: "dashboard" } })]);
  await eventuallyPasses(async () => {
    expect(await onHost(namespace, "dashboard", "http://traefik")).toBe("page True\nfigures True\n");
  }, PATIENT);
});

test("the UI of a Spark application in the member shows its jobs on the host", async () => {
  const namespace = await makeNamespace();
  await clusters.relay(namespace, "spark", [{ name: "ui", port: 4040 }]);
  const java = findJava();
  const files = sparkFiles(spark(), java, clusters.host.directory);
  await giveFiles(clusters.host, namespace, [...files, { from: PROGRAMS, to: "/programs" }]);
  await clusters.run("west", {
    namespace,
    name: "spark",
    command: ["/opt/spark/bin/spark-submit", "--master", "local[1]", "/programs/application.py"],
    env: Object.entries({
      JAVA_HOME: java,
      SPARK_HOME: "/opt/spark",
      PYSPARK_PYTHON: spark().python,
      SPARK_SUBMIT_OPTS: JAVA_OPTIONS,
    }).map(([name, value]) => ({ name, value })),
    readinessProbe: { tcpSocket: { port: 4040 }, periodSeconds: 1 },
  });
  await clusters.run("host", { namespace, name: "client", command: SLEEPS });
  await eventuallyPasses(async () => {
    const seen = await clusters.exec(namespace, "client", [
      spark().python,
      "/programs/spark_ui.py",
      "http://far-spark:4040",
    ]);
    expect(seen).toBe("application relayed\njobs SUCCEEDED\npage True\n");
  }, PATIENT);
});

// relay-in-member.test.ts has the other way.
test("a PostgreSQL in the member serves clients on the host, many at a time", async () => {
  const namespace = await makeNamespace();
  await giveFiles(
    clusters.host,
    namespace,
    ["/usr", "/lib", "/lib64"].map((path) => ({ from: path, to: path })),
  );
  await clusters.relay(namespace, "db", [{ name: "postgresql", port: 5432 }]);
  const folder = postgresql();
  const serve = `${folder}/initdb -D /tmp/db -U postgres -A trust && echo host all all all trust >>/tmp/db/pg_hba.conf
    exec ${folder}/postgres -D /tmp/db -k /tmp -h 0.0.0.0`;
  const probe = { readinessProbe: { tcpSocket: { port: 5432 }, periodSeconds: 1 } };
  const nobody = { securityContext: { runAsUser: 65534 } };
  await clusters.run("west", { namespace, name: "db", command: ["sh", "-c", serve], ...probe }, nobody);
  await clusters.run("host", { namespace, name: "client", command: SLEEPS });
  const bench = `${folder}/pgbench -h far-db -U postgres`;
  const command = `${bench} --initialize --quiet postgres && ${bench} --client=8 --transactions=20 --connect postgres`;
  const said = await clusters.exec(namespace, "client", ["sh", "-c", command]);
  expect(said).toContain("number of failed transactions: 0 (0.000%)");
});

test("JupyterHub on the host runs its notebooks in the member, which report to it", async () => {
  const namespace = await makeNamespace();
  const own = [
    { from: PROGRAMS, to: "/programs" },
    { from: join(ROOT, "examples/relay"), to: "/examples" },
  ];
  await giveFiles(clusters.host, namespace, [...pythonFiles(jupyterhub()), ...own]);
  const resources = "--resource=pods,services,secrets,events,persistentvolumeclaims";
  const onHost = (...args: string[]): Promise<string> => kubectl(clusters.host, ["-n", namespace, ...args]);
  await onHost("create", "serviceaccount", "hub");
  await onHost("create", "role", "hub", "--verb=*", resources);
  await onHost("create", "rolebinding", "hub", "--role=hub", `--serviceaccount=${namespace}:hub`);
  await clusters.relay(namespace, "hub", [
    { name: "proxy", port: 8000 },
    { name: "api", port: 8081 },
  ]);
  await clusters.run(
    "host",
    {
      namespace,
      name: "hub",
      command: [jupyterhub().python, "-m", "jupyterhub", "-f", "/programs/jupyterhub_config.py"],
      workingDir: "/tmp",
      env: [{ name: "TOKEN", value: "of-the-test" }],
      readinessProbe: { httpGet: { path: "/hub/health", port: 8000 }, periodSeconds: 2 },
    },
    { serviceAccountName: "hub", automountServiceAccountToken: true },
  );
  const user = [jupyterhub().python, "/programs/jupyter_client.py", "hub:8000", "alice"];
  const said = await clusters.exec(namespace, "hub", user);
  expect(said).toBe("server ready\n42 on jupyter-alice\n");
  await eventuallyPasses(async () => {
    expect(await onHost("get", "services", "-o", "name")).not.toContain("jupyter-alice");
  }, PATIENT);
});
